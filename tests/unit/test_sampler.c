/*
 * The sampler, over a process that is made up: its threads run, block, appear and end, it
 * executes another program, loads modules and ends, between two ticks or in the middle of
 * one. No process is accessed, and no time passes.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/gather.h"
#include "sample/sampler.h"

enum {
	THREADS_MAX = 32,
	FIRST_TID = 100,
	CODE = 0x400000,
	STOP_NS = 1000,
	MOVING_CALL = 1,
	RUN_NS = 100 * 1000 * 1000
};

struct thread {
	pid_t tid; /* 0: none */
	uint64_t runs;
	bool runs_now; /* not blocked */
	bool fragile;
	bool deaf;	    /* does not stop in time */
	bool in_call;	    /* runs in a call, and is read without a stop */
	bool moves;	    /* in_call: the call moves data */
	bool sleeps_deeply; /* in state D */
	bool slow;	    /* as the last stop was told */
	bool observed;	    /* what is left of it can be read */
	uint64_t system_ticks;
	bool short_runs;  /* its runs take no time */
	uint64_t wait_ns; /* it waited for CPUs for so long */
	bool computes;	  /* as the last stop was told */
	bool spared;	  /* likewise: it may be in a call that must not be interrupted */
	bool on_cpu;	  /* runs_now: it does not wait for a CPU at the stop */
};

/* Where in a tick the event happens. */
enum moment { NEVER, AFTER_LISTING, BEFORE_CHECK, BEFORE_STOP, BEFORE_NAME };

struct process {
	struct ss_target target; /* first: callbacks cast it back */
	struct process *self;
	struct thread threads[THREADS_MAX];
	pid_t tids[THREADS_MAX];
	bool no_memory; /* for the list of threads */
	/* what the next update of the address space finds */
	enum ss_address_space_change change;
	enum ss_error_code refused; /* or it fails so */
	enum ss_mapping_check check;
	unsigned updates;
	unsigned stops;	  /* of threads */
	uint64_t stop_ns; /* each takes; 0: STOP_NS */
	unsigned looks;	  /* at threads that run in a call */
	unsigned reads;	  /* of all of a thread */
	unsigned checks;  /* of mappings */
	bool keeps_files;
	const char *name;  /* of all threads; NULL: "thread" */
	size_t stack_size; /* of each, in the arena; 0: elsewhere */
	enum moment moment;
	void (*event)(struct process *process);
	struct ss_sampler sampler;
	struct ss_arena arena;
	struct ss_tick tick;
};

static struct thread *find(struct process *process, pid_t tid)
{
	for (size_t i = 0; i < THREADS_MAX; i++) {
		if (tid && process->threads[i].tid == tid)
			return &process->threads[i];
	}
	return NULL;
}

static void happen(struct process *process, enum moment moment)
{
	if (process->moment != moment)
		return;
	process->moment = NEVER;
	process->event(process);
}

/* The threads of the sampler's list --------------------------------------- */

static struct process *of(const struct ss_target *target)
{
	return ((const struct process *)target)->self;
}

static struct process *process_of(const struct ss_target_threads *threads)
{
	return of(threads->target);
}

static bool list(void *data, const pid_t **ret, size_t *ret_count)
{
	struct process *process = process_of(data);

	*ret = process->tids;
	*ret_count = 0;
	for (size_t i = 0; i < THREADS_MAX; i++) {
		if (process->threads[i].tid)
			process->tids[(*ret_count)++] = process->threads[i].tid;
	}
	return !process->no_memory;
}

static size_t count(void *data)
{
	const struct process *process = process_of(data);
	size_t found = 0;

	for (size_t i = 0; i < THREADS_MAX; i++)
		found += process->threads[i].tid != 0;
	return found;
}

/* The run count of a stopped thread is read only from an open file. */
static int open_nothing(void *data, pid_t tid)
{
	(void)data;
	(void)tid;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool read_schedstat(void *data, pid_t tid, int fd, struct ss_schedstat *ret)
{
	const struct thread *thread = find(process_of(data), tid);

	(void)fd;
	if (thread)
		*ret = (struct ss_schedstat){ .run_count = thread->runs,
					      .wait_ns = thread->wait_ns,
					      .run_ns = thread->short_runs ?
								0 :
								thread->runs * RUN_NS };
	return thread != NULL;
}

static bool read_no_time(void *data, uint64_t *ret)
{
	(void)data;
	(void)ret;
	return false;
}

/* The process -------------------------------------------------------------- */

static struct ss_error *update(struct ss_address_space *space,
			       enum ss_address_space_change *ret)
{
	struct process *process = of(space->target);

	process->updates++;
	if (process->refused)
		return ss_error_new(process->refused, "no");
	if (!space->capture) {
		space->capture = ss_capture_new();
		assert_non_null(space->capture);
		struct ss_area *area = ss_vector_push(&space->capture->areas);
		assert_non_null(area);
		*area = (struct ss_area){
			.start = CODE, .end = CODE + 4096, .module = -1, .name = "//anon"
		};
	}
	*ret = process->change;
	if (process->change != SS_ADDRESS_SPACE_ENDED)
		process->change = SS_ADDRESS_SPACE_SAME;
	return NULL;
}

static enum ss_mapping_check check(struct ss_address_space *space, uint64_t address)
{
	(void)address;
	of(space->target)->checks++;
	return of(space->target)->check;
}

static void read_now(struct ss_tracee *task, const struct ss_target *target,
		     const struct ss_capture_options *options, struct ss_buffer *text)
{
	struct process *process = of(target);

	(void)text;
	happen(process, AFTER_LISTING);
	task->fragile = false;
	const struct thread *thread = find(process, task->tid);
	if (!thread) {
		task->phase = SS_TASK_GONE;
		return;
	}
	task->state = thread->runs_now ? 'R' : thread->sleeps_deeply ? 'D' : 'S';
	task->runs = thread->runs_now;
	task->system_ticks = thread->system_ticks;
	(void)strcpy(task->comm, "made-up");
	if (!options->filter(options->filter_data, task->tid, task->comm, task->state)) {
		task->phase = SS_TASK_EXCLUDED;
	} else if (!thread->runs_now) {
		task->run_count = task->counted ? task->counted : thread->runs;
		task->call = (struct ss_syscall_text){ .kind = SS_SYSCALL_BLOCKED,
						       .pc = CODE,
						       .sp = 1 };
		task->fragile = thread->fragile;
		ss_task_enter(task, SS_TASK_WATCHED);
	}
}

static void read_task(struct ss_tracee *task, const struct ss_target *target,
		      const struct ss_capture_options *options, struct ss_buffer *text)
{
	of(target)->reads++;
	read_now(task, target, options, text);
}

/* It does not read CPU ticks. */
static void read_call_again(struct ss_tracee *task, const struct ss_target *target,
			    const struct ss_capture_options *options,
			    struct ss_buffer *text)
{
	const struct ss_tracee before = *task;

	read_now(task, target, options, text);
	task->user_ticks = before.user_ticks;
	task->system_ticks = before.system_ticks;
}

static void keep_files(const struct ss_target *target, pid_t tid,
		       struct ss_kept_thread *ret)
{
	if (!of(target)->keeps_files)
		return;
	ret->stat = open_nothing(NULL, tid) + 1;
	ret->syscall = open_nothing(NULL, tid) + 1;
}

static uint64_t read_run_count(const struct ss_target *target, pid_t tid,
			       struct ss_buffer *text)
{
	const struct thread *thread = find(of(target), tid);

	(void)text;
	return thread ? thread->runs : 0;
}

/* A stop of a blocked thread puts it on a CPU; so does its release. */
static void check_fragile(struct ss_tracee *task, const struct ss_target *target,
			  struct ss_buffer *text)
{
	(void)task;
	(void)target;
	(void)text;
}

/* Whether this program has to wait for a CPU also while it stops threads. */
static bool waits;

static bool stop(struct ss_freeze *freeze, struct ss_look *look, ss_freeze_copier *copy,
		 void *data)
{
	struct process *process = of(freeze->target);

	(void)look;
	happen(process, BEFORE_STOP);
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		struct thread *thread = find(process, task->tid);
		if (task->phase != SS_TASK_SEEN || task->limited)
			continue;
		task->put_off &= !thread || !thread->on_cpu || task->woken;
		if (task->put_off)
			continue;
		if (thread) {
			thread->computes = task->computes;
			thread->spared = task->fragile;
			thread->slow = ss_task_is_slow(task);
		}
		task->in_call = thread && thread->in_call;
		task->fragile |= task->in_call;
		if (task->in_call)
			ss_task_enter(task, SS_TASK_WATCHED);
		if (task->in_call)
			task->call.number = thread->moves ? MOVING_CALL : -1;
		if (task->in_call || task->moves_data)
			continue;
		task->attached = thread && thread->deaf;
		task->phase = thread ? SS_TASK_INTERRUPTED : SS_TASK_GONE;
		if (!thread || thread->deaf)
			continue;
		task->phase = SS_TASK_STOPPED;
		task->runs = thread->runs_now;
		task->stopped_ns = process->stop_ns ? process->stop_ns : STOP_NS;
		thread->runs += !thread->runs_now;
		copy(data);
		task->phase = SS_TASK_RELEASED;
		thread->runs += !thread->runs_now;
		freeze->duration_ns += STOP_NS;
		freeze->max_thread_ns = STOP_NS;
		process->stops++;
	}
	return waits;
}

/* None has stopped by then. */
static bool release_late(struct ss_freeze *freeze)
{
	return freeze->tasks->items.count > 0;
}

/* How long this program waited for a CPU before each tick. */
static uint64_t waits_ns;

static uint64_t read_waited_ns(void)
{
	static uint64_t waited_ns = 1;

	waited_ns += waits_ns;
	return waited_ns;
}

static bool find_call(const struct ss_target *target,
		      const struct ss_process_memory *memory,
		      const ss_kernel_regs *kernel, struct ss_syscall_text *ret)
{
	(void)target;
	(void)memory;
	(void)kernel;
	*ret = (struct ss_syscall_text){ .number = MOVING_CALL };
	return true;
}

/* Whether a socket was looked at. */
static bool looked;

static bool moves_data(const struct ss_target *target, pid_t tid,
		       const struct ss_syscall_text *call, bool look)
{
	looked |= look;
	(void)target;
	(void)tid;
	return call->number == MOVING_CALL;
}

static bool read_name(const struct ss_target *target, pid_t tid, struct ss_buffer *text,
		      char *ret, size_t size)
{
	struct process *process = of(target);

	(void)text;
	happen(process, BEFORE_NAME);
	if (find(process, tid))
		(void)snprintf(ret, size, "%s", process->name ? process->name : "thread");
	return find(process, tid);
}

static void copy_wanted(struct ss_task_list *tasks, ss_task_predicate *wanted)
{
	static uint8_t stack[16];

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (wanted(task))
			task->stacks[0] = (struct ss_stack_copy){ .size = sizeof(stack),
								  .bytes = stack };
	}
}

static void copy(struct ss_arena *arena, const struct ss_capture *capture,
		 struct ss_task_list *tasks, const struct ss_process_memory *memory,
		 const struct ss_capture_options *options, ss_task_predicate *wanted)
{
	const struct process *process =
		(const struct process *)((const char *)arena -
					 offsetof(struct process, arena));

	(void)capture;
	(void)memory;
	(void)options;
	copy_wanted(tasks, wanted);
	for (size_t i = 0; process->stack_size && i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (!wanted(task))
			continue;
		const uint8_t *bytes = ss_arena_take(arena, process->stack_size);
		task->stacks[0] =
			(struct ss_stack_copy){ .size = bytes ? process->stack_size : 0,
						.bytes = bytes };
	}
}

static bool is_watched(const struct ss_tracee *task)
{
	return ss_task_is_watched(task);
}

static void copy_watched(struct ss_arena *arena, const struct ss_capture *capture,
			 struct ss_task_list *tasks,
			 const struct ss_process_memory *memory,
			 const struct ss_capture_options *options, unsigned freeze_round)
{
	(void)arena;
	(void)capture;
	(void)memory;
	(void)options;
	(void)freeze_round;
	copy_wanted(tasks, is_watched);
	for (size_t i = 0; i < tasks->items.count; i++)
		tasks->items.items[i].partial |=
			ss_task_is_watched(&tasks->items.items[i]);
}

static size_t check_watched(const struct ss_target *target, struct ss_task_list *tasks,
			    struct ss_look *look, size_t *fragile)
{
	struct process *process = of(target);
	size_t moved = 0;

	(void)fragile;
	process->looks += look != NULL;
	happen(process, BEFORE_CHECK);
	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		const struct thread *thread = find(process, task->tid);
		if (task->phase != SS_TASK_WATCHED || (task->in_call && !look))
			continue;
		task->partial = task->consistent =
			thread && (task->in_call || thread->runs == task->run_count);
		ss_task_enter(task, task->consistent ? SS_TASK_STEADY :
				    thread	     ? SS_TASK_SEEN :
						       SS_TASK_GONE);
		if (task->phase == SS_TASK_SEEN) {
			task->state = thread->runs_now ? 'R' : 'S';
			task->moved = true;
			task->turn = SS_TURN_OTHER;
			moved++;
		}
	}
	return moved;
}

/* What is left: reads it as it is now. */
static void observe(struct ss_arena *arena, const struct ss_capture *capture,
		    const struct ss_target *target, struct ss_task_list *tasks,
		    const struct ss_process_memory *memory,
		    const struct ss_capture_options *options, struct ss_look *look)
{
	(void)arena;
	(void)capture;
	(void)memory;
	(void)options;
	(void)look;
	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		const struct thread *thread = find(of(target), task->tid);
		if (task->phase != SS_TASK_SEEN && task->phase != SS_TASK_WATCHED &&
		    task->phase != SS_TASK_INTERRUPTED)
			continue;
		if (!thread) {
			task->phase = SS_TASK_GONE;
		} else if (thread->observed) {
			task->partial = task->consistent = true;
			task->run_count = thread->runs;
		}
	}
}

static const struct ss_process_access made_up = {
	.threads = { .list = list,
		     .count = count,
		     .open = open_nothing,
		     .read = read_schedstat,
		     .cpu_time = read_no_time },
	.update = update,
	.update_if_due = update,
	.check = check,
	.read = read_task,
	.read_again = read_call_again,
	.keep_files = keep_files,
	.read_run_count = read_run_count,
	.check_fragile = check_fragile,
	.stop = stop,
	.read_waited_ns = read_waited_ns,
	.find_call = find_call,
	.moves_data = moves_data,
	.read_name = read_name,
	.release_late = release_late,
	.copy = copy,
	.copy_watched = copy_watched,
	.check_watched = check_watched,
	.observe = observe,
};

/* Tests -------------------------------------------------------------------- */

static void begin_filtered(struct process *process, unsigned threads,
			   ss_thread_filter *filter)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .max_stack = 4096,
						    .max_total = 1 << 20,
						    .filter = filter };

	*process = (struct process){ .self = process,
				     .target.pid = FIRST_TID,
				     .target.arch = &ss_arch_host,
				     .check = SS_MAPPING_SAME };
	for (unsigned i = 0; i < threads; i++)
		process->threads[i] =
			(struct thread){ .tid = FIRST_TID + (pid_t)i, .runs = 1 };
	ss_sampler_init(&process->sampler, &process->target, &options, &process->arena,
			&made_up);
}

/* A process whose threads are blocked. */
static void begin(struct process *process, unsigned threads)
{
	begin_filtered(process, threads, NULL);
}

static void end(struct process *process)
{
	ss_sampler_deinit(&process->sampler);
	ss_arena_deinit(&process->arena);
}

static void tick(struct process *process)
{
	process->stops = process->updates = process->looks = 0;
	process->reads = process->checks = 0;
	assert_null(ss_sampler_tick(&process->sampler, &process->tick));
}

/* The threads of the last capture, a bit for each; all are accepted. */
static unsigned accept_all(struct process *process, bool needs_register)
{
	const struct ss_capture *capture = process->tick.capture;
	unsigned captured = 0;

	for (size_t i = 0; capture && i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct ss_sampled_thread *sampled =
			ss_thread_list_find(&process->sampler.threads, thread->tid);
		captured |= 1U << (thread->tid - FIRST_TID);
		assert_non_null(sampled);
		if (sampled->state != SS_THREAD_GONE)
			ss_thread_accept(sampled, thread->stopped_ns > 0, needs_register);
	}
	return captured;
}

static unsigned captured(struct process *process)
{
	tick(process);
	return accept_all(process, false);
}

static void reject_all(struct process *process)
{
	for (size_t i = 0; i < process->sampler.threads.items.count; i++) {
		struct ss_sampled_thread *thread =
			&process->sampler.threads.items.items[i];
		if (thread->due)
			ss_thread_reject(thread, true);
	}
}

/* What has not run is not captured, not stopped, and costs no look at the maps. */
TEST(test_blocked_threads)
{
	struct process process;

	begin(&process, 3);
	assert_int_equal(captured(&process), 0x7);
	assert_int_equal(process.stops, 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(captured(&process), 0);
		assert_int_equal(process.updates + process.stops, 0);
	}
	process.threads[1].runs++;
	assert_int_equal(captured(&process), 0x2);
	assert_int_equal(process.stops, 0);
	assert_int_equal(captured(&process), 0);
	end(&process);
}

/* A thread that was stopped for 1 % of its time, and one that would be. */
TEST(test_share_of_stops)
{
	struct process process;

	begin(&process, 2);
	process.stop_ns = 2 * SS_NS_PER_MS;
	process.threads[0].runs_now = process.threads[1].runs_now = true;
	unsigned stops = 0;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(captured(&process), 0x3);
		stops += process.stops;
	}
	/* Three of each exceed the 5 ms that do not count; the test takes less than 0.1 s. */
	assert_in_range(stops, 6, 8);
	assert_int_equal(process.sampler.thread_stops, stops);
	assert_int_equal(process.sampler.limit.not_stopped, 40 - stops);
	end(&process);
}

/* After one that took too long, no thread is stopped for a while. */
TEST(test_long_stop)
{
	struct process process;

	begin(&process, 2);
	process.stop_ns = SS_NS_PER_SECOND;
	process.threads[0].runs_now = true;
	(void)captured(&process);
	assert_int_equal(process.stops, 1);
	process.threads[1].runs_now = true;
	process.threads[1].runs++;
	for (int i = 0; i < 5; i++) {
		(void)captured(&process);
		assert_int_equal(process.stops, 0);
	}
	end(&process);
}

/* Threads that do not stop: fewer are tried in the next ticks, and others. */
TEST(test_late_stops)
{
	struct process process;

	begin(&process, 4);
	for (unsigned i = 0; i < 4; i++)
		process.threads[i].runs_now = process.threads[i].deaf = true;
	process.sampler.limit.most = 2;
	(void)captured(&process);
	assert_true(process.sampler.late);
	assert_int_equal(process.sampler.limit.most, 1);
	process.sampler.limit.pause_until_ns = 0;
	for (unsigned i = 0; i < 4; i++)
		process.threads[i].deaf = i < 2;
	(void)captured(&process);
	assert_int_equal(process.stops, 1); /* the third */
	assert_int_equal(process.sampler.limit.most, 2);
	end(&process);
}

/* This program waited for a CPU for longer than it may hold a thread. */
TEST(test_starved)
{
	struct process process;

	begin(&process, 1);
	process.threads[0].runs_now = true;
	(void)captured(&process);
	assert_int_equal(process.stops, 1);
	waits_ns = 6 * SS_NS_PER_MS;
	waits = true;
	for (int i = 0; i < 2; i++) {
		/* Until now, it did not while it stopped threads, or for an unknown time. */
		(void)captured(&process);
		assert_int_equal(process.stops, 1);
	}
	(void)captured(&process);
	assert_int_equal(process.stops, 0);
	waits_ns = 0;
	(void)captured(&process);
	assert_int_equal(process.stops, 1);
	waits = false;
	end(&process);
}

TEST(test_running_threads)
{
	struct process process;

	begin(&process, 3);
	process.threads[0].runs_now = process.threads[2].runs_now = true;
	assert_int_equal(captured(&process), 0x7);
	for (int i = 0; i < 3; i++) {
		/* also a thread that never leaves its CPU */
		assert_int_equal(captured(&process), 0x5);
		assert_int_equal(process.stops, 2);
		assert_int_equal(process.tick.stopped_ns, 2 * STOP_NS);
		assert_int_equal(process.tick.stopped_max_ns, STOP_NS);
	}
	assert_int_equal(process.sampler.thread_stops, 8);
	assert_false(process.sampler.late);
	/* it blocks: the last capture without a stop, then none */
	process.threads[2].runs_now = false;
	process.threads[2].runs++;
	assert_int_equal(captured(&process), 0x5);
	assert_int_equal(process.stops, 1);
	assert_int_equal(captured(&process), 0x1);
	end(&process);
}

/* Its stack may change although it is not put on a CPU again. */
/* A thread that was on a CPU at the tick has the kernel's sample, and is not stopped, unless it is
   known to need a stop. */
TEST(test_sampled_by_the_kernel)
{
	struct ss_on_cpu_sample samples[] = {
		{ .clock = { .tid = FIRST_TID, .time_ns = 10, .has_regs = true },
		  .stack = { .size = 16 } },
		{ .clock = { .tid = FIRST_TID + 40,
			     .time_ns = 11 } }, /* not in the list */
	};
	struct process process;

	begin(&process, 3);
	process.sampler.by_kernel = SS_SAMPLES_OF_STACKS;
	process.threads[0].runs_now = process.threads[2].runs_now = true;
	process.sampler.clocked = samples;
	process.sampler.clocked_count = SS_ARRAY_SIZE(samples);
	assert_int_equal(captured(&process), 0x7);
	assert_int_equal(process.stops, 1); /* the third thread */
	struct ss_sampled_thread *thread =
		ss_thread_list_find(&process.sampler.threads, FIRST_TID);
	assert_int_equal(thread->origin, SS_THREAD_SAMPLED);
	assert_int_equal(thread->sampled_ns, 10);
	assert_int_equal(thread->kernel_state, 'R');
	process.threads[2].runs_now = false;
	assert_int_equal(captured(&process), 0x5);
	assert_int_equal(process.stops, 0);
	/* It sleeps at the tick. */
	process.sampler.clocked_count = 0;
	process.threads[0].runs_now = false;
	process.threads[0].runs++;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(thread->origin, SS_THREAD_READ);
	/* Its stack is too large for the kernel. */
	process.sampler.clocked_count = SS_ARRAY_SIZE(samples);
	process.threads[0].runs_now = true;
	process.threads[0].runs++;
	thread->deep = 3;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(captured(&process), 0x1);
		assert_int_equal(process.stops, 1);
	}
	/* It is tried again. */
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.stops, 0);
	assert_int_equal(thread->origin, SS_THREAD_SAMPLED);
	/* Frames of runtimes. */
	process.sampler.by_kernel = SS_SAMPLES_OF_TIMES;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.stops, 1);
	end(&process);
}

/* However many captures there are, the arena has room for the next one; what the caller keeps at its
   beginning stays. */
TEST(test_room_for_stacks)
{
	struct process process;

	begin(&process, 3);
	process.stack_size = 16 << 10;
	process.threads[0].runs_now = process.threads[2].runs_now = true;
	assert_int_equal(captured(&process), 0x7);
	for (size_t i = 0; i < 200; i++) {
		/* As if samples of the CPUs were there. */
		process.arena.used = process.arena.kept = i / 100 * 4096;
		tick(&process);
		reject_all(&process);
		assert_null(ss_sampler_retry(&process.sampler, &process.tick));
		const struct ss_capture *capture = process.tick.capture;
		assert_non_null(capture);
		assert_int_equal(capture->threads.count, 2);
		for (size_t t = 0; t < 2; t++) {
			const struct ss_stack_copy *copy =
				&capture->threads.items[t].stacks[0];
			assert_int_equal(copy->size, process.stack_size);
			assert_true(copy->bytes >=
				    process.arena.bytes + process.arena.kept);
		}
		assert_int_equal(process.arena.kept, i / 100 * 4096);
		assert_int_equal(accept_all(&process, false), 0x5);
	}
	end(&process);
}

/* What a thread is sampled for when it leaves a CPU must be seldom. */
TEST(test_switches)
{
	struct process process;

	begin(&process, 2);
	process.sampler.by_kernel = SS_SAMPLES_OF_STACKS;
	process.threads[0].runs_now = process.threads[1].runs_now = true;
	process.threads[0].runs = 1000;
	process.threads[1].runs = 1000;
	process.threads[1].short_runs = true;
	tick(&process);
	const struct ss_sampled_thread *threads = process.sampler.threads.items.items;
	assert_int_equal(threads[0].switches, 0);
	assert_int_equal(threads[1].switches, 1000);
	process.threads[0].runs += 500;
	tick(&process);
	threads = process.sampler.threads.items.items;
	assert_int_equal(threads[0].switches, 500);
	assert_int_equal(threads[1].switches, 0);
	/* The same in another try. */
	reject_all(&process);
	assert_null(ss_sampler_retry(&process.sampler, &process.tick));
	assert_int_equal(threads[0].switches, 500);
	end(&process);
}

static void end_first(struct process *process)
{
	process->threads[0].tid = 0;
}

static const char *name_of_first(const struct process *process)
{
	return process->sampler.threads.items.items[0].name;
}

/* What the kernel samples has its name: at first, that of its creator. */
TEST(test_names)
{
	const struct ss_on_cpu_sample sample = {
		.clock = { .tid = FIRST_TID, .time_ns = 10, .has_regs = true },
		.stack = { .size = 16 }
	};
	struct process process;

	begin(&process, 2);
	process.sampler.by_kernel = SS_SAMPLES_OF_STACKS;
	process.threads[0].runs_now = process.threads[0].short_runs = true;
	assert_int_equal(captured(&process), 0x3);
	assert_string_equal(name_of_first(&process), "made-up");
	process.sampler.clocked = &sample;
	process.sampler.clocked_count = 1;
	assert_int_equal(captured(&process), 0x1);
	assert_string_equal(name_of_first(&process), "thread");
	process.name = "worker";
	assert_int_equal(captured(&process), 0x1);
	assert_string_equal(name_of_first(&process), "worker");
	/* Later it is read seldom, unless the program is another one. */
	process.threads[0].short_runs = false;
	process.name = "other";
	assert_int_equal(captured(&process), 0x1);
	assert_string_equal(name_of_first(&process), "worker");
	process.change = SS_ADDRESS_SPACE_REPLACED;
	assert_int_equal(captured(&process), 0x1);
	assert_string_equal(name_of_first(&process), "other");
	end(&process);
	/* One that ends before its name is read has the one of before, if there was one. */
	for (int known = 0; known < 2; known++) {
		begin(&process, 2);
		process.sampler.by_kernel = SS_SAMPLES_OF_STACKS;
		process.threads[0].runs_now = process.threads[0].short_runs = true;
		if (known)
			assert_int_equal(captured(&process), 0x3);
		process.sampler.clocked = &sample;
		process.sampler.clocked_count = 1;
		process.moment = BEFORE_NAME;
		process.event = end_first;
		tick(&process);
		assert_string_equal(name_of_first(&process),
				    known ? "made-up" : "(ended)");
		end(&process);
	}
}

/* The samples of a thread are not those of the next one with its id. */
TEST(test_end_of_switches)
{
	struct process process;

	begin(&process, 1);
	process.threads[0].tid = gettid();
	ss_switch_stacks_open(&process.sampler.switches);
	if (!ss_switch_stacks_start(&process.sampler.switches, gettid())) {
		end(&process);
		print_message("perf_event_open(2) is not allowed\n");
		skip();
	}
	tick(&process);
	assert_int_equal(process.sampler.switches.events.count, 1);
	process.threads[0].tid = 0;
	tick(&process);
	process.threads[0].tid = gettid();
	tick(&process);
	assert_int_equal(process.sampler.switches.events.count, 0);
	assert_true(ss_switch_stacks_start(&process.sampler.switches, gettid()));
	end(&process);
}

TEST(test_running_in_a_call)
{
	struct process process;

	begin(&process, 2);
	process.threads[0].runs_now = process.threads[0].in_call = true;
	assert_int_equal(captured(&process), 0x3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(captured(&process), 0x1);
		assert_int_equal(process.stops, 0);
	}
	process.threads[0].in_call = false;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.stops, 1);
	end(&process);
}

static const struct ss_capture_thread *captured_first(const struct process *process)
{
	const struct ss_capture *capture = process->tick.capture;

	assert_non_null(capture);
	assert_int_equal(capture->threads.items[0].tid, FIRST_TID);
	return &capture->threads.items[0];
}

/* What was seen in a call that moves data may begin the next one at any time: while it runs it is not
   stopped, until it has not been seen in one for a while. */
TEST(test_moves_data)
{
	struct ss_on_cpu_sample sample = {
		.clock = { .tid = FIRST_TID, .has_regs = true, .in_kernel = true },
		.stack = { .size = 16 }
	};
	struct process process;

	for (size_t by_kernel = 0; by_kernel < 2; by_kernel++) {
		begin(&process, 2);
		process.threads[0].runs_now = true;
		process.threads[0].in_call = process.threads[0].moves = !by_kernel;
		process.sampler.by_kernel = SS_SAMPLES_OF_STACKS;
		sample.clock.time_ns = ss_now_ns();
		process.sampler.clocked = &sample;
		process.sampler.clocked_count = by_kernel;
		looked = false;
		assert_int_equal(captured(&process), 0x3);
		assert_int_equal(process.stops, 0);
		assert_int_equal(looked, !by_kernel);
		process.threads[0].in_call = false;
		process.sampler.clocked_count = 0;
		for (uint64_t i = 1; i < 4; i++) {
			process.threads[0].runs++;
			assert_int_equal(captured(&process), 0x1);
			assert_int_equal(process.stops, 0);
			assert_int_equal(captured_first(&process)->end, SS_END_RUNNABLE);
			assert_int_equal(process.sampler.limit.not_stopped, i);
		}
		ss_thread_list_find(&process.sampler.threads, FIRST_TID)->moved_data_ns -=
			60 * SS_NS_PER_SECOND;
		assert_int_equal(captured(&process), 0x1);
		assert_int_equal(process.stops, 1);
		end(&process);
	}
}

/* A thread that computes for a fifth of a second is not looked at before its stops, until it has
   spent a clock tick in the kernel. */
TEST(test_computing)
{
	struct process process;

	begin(&process, 1);
	process.threads[0].runs_now = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(captured(&process), 0x1);
		assert_false(process.threads[0].computes);
		process.threads[0].runs++;
	}
	assert_int_equal(captured(&process), 0x1);
	assert_true(process.threads[0].computes);
	process.threads[0].system_ticks++;
	assert_int_equal(captured(&process), 0x1);
	assert_false(process.threads[0].computes);
	end(&process);
}

static void begin_thread(struct process *process)
{
	process->threads[3] = (struct thread){ .tid = FIRST_TID + 3, .runs = 1 };
}

static void end_last(struct process *process)
{
	process->threads[2].tid = 0;
}

TEST(test_threads_start_and_end)
{
	const enum moment moments[] = { AFTER_LISTING, BEFORE_CHECK, BEFORE_STOP };
	struct process process;

	begin(&process, 3);
	assert_int_equal(captured(&process), 0x7);
	begin_thread(&process);
	assert_int_equal(captured(&process), 0x8);
	end_last(&process);
	assert_int_equal(captured(&process), 0);
	assert_int_equal(captured(&process), 0);
	assert_null(ss_thread_list_find(&process.sampler.threads, FIRST_TID + 2));
	end(&process);
	/* It ends in the middle of a tick, blocked or running. */
	for (size_t i = 0; i < 2 * SS_ARRAY_SIZE(moments); i++) {
		begin(&process, 3);
		process.threads[2].runs_now = i % 2;
		process.moment = moments[i / 2];
		process.event = end_last;
		bool stopped = moments[i / 2] == BEFORE_CHECK && i % 2;
		assert_int_equal(captured(&process), stopped ? 0x7 : 0x3);
		assert_int_equal(process.moment, NEVER);
		enum ss_thread_state last =
			ss_thread_list_find(&process.sampler.threads, FIRST_TID + 2)
				->state;
		assert_int_equal(last == SS_THREAD_GONE, !stopped);
		assert_int_equal(captured(&process), 0);
		assert_int_equal(captured(&process), 0);
		assert_int_equal(process.sampler.threads.items.count, 2);
		end(&process);
	}
}

static void wake_first(struct process *process)
{
	process->threads[0].runs++;
	process->threads[0].runs_now = true;
}

static void wake_second(struct process *process)
{
	process->threads[1].runs++;
	process->threads[1].runs_now = true;
}

static void wake_both(struct process *process)
{
	wake_first(process);
	wake_second(process);
}

static void run_first(struct process *process)
{
	process->threads[0].runs++;
	process->moment = process->threads[0].runs < 8 ? BEFORE_CHECK : NEVER;
}

/* The call that it was in is known at the stop, too: it may still be in it. */
TEST(test_wakes_in_fragile_call)
{
	struct process process;

	for (int fragile = 0; fragile < 2; fragile++) {
		begin(&process, 2);
		process.threads[0].fragile = fragile;
		process.moment = BEFORE_CHECK;
		process.event = wake_first;
		assert_int_equal(captured(&process), 0x3);
		assert_int_equal(process.moment, NEVER);
		assert_int_equal(process.threads[0].spared, fragile);
		assert_false(process.threads[1].spared);
		end(&process);
	}
}

/* From now on, memory of runtimes is copied with the stacks, and threads in groups. The files of all
   threads stay open. */
static void begin_gathering(struct process *process)
{
	const struct ss_gather_plan plan = {
		.size = sizeof(plan),
		.step_count = 1,
		.max_nodes = 1,
		.max_bytes = 64,
		.max_reads = 1,
		.steps[0] = { .base = SS_GATHER_ROOT,
			      .size = 8,
			      .max_nodes = 1,
			      .mask = UINT64_MAX },
	};

	assert_null(ss_gathers_set(&process->sampler.gathers, &plan));
	process->keeps_files = true;
	for (int i = 0; i < 4; i++) {
		for (size_t t = 0; t < THREADS_MAX; t++)
			process->threads[t].runs++;
		(void)captured(process);
	}
	const struct ss_sampled_thread *first =
		ss_thread_list_find(&process->sampler.threads, FIRST_TID);
	assert_true(first->files.stat && first->files.syscall);
}

static void sleep_otherwise(struct process *process)
{
	process->threads[0].runs++;
	process->threads[0].sleeps_deeply = false;
}

static void run_after_sleep(struct process *process)
{
	sleep_otherwise(process);
	process->threads[0].runs_now = true;
}

/* A thread that was in uninterruptible sleep when it was read, and has run when its group is copied,
   is what it is then. */
TEST(test_runs_before_its_group)
{
	static const struct {
		void (*event)(struct process *process);
		unsigned captured;
		unsigned stops;
		char state;
	} cases[] = {
		{ run_after_sleep, 0x1, 1, 'R' },
		{ sleep_otherwise, 0x1, 0, 'S' },
		{ end_first, 0, 0, 0 },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		struct process process;
		begin(&process, 2);
		begin_gathering(&process);
		process.threads[0].runs++;
		process.threads[0].sleeps_deeply = process.threads[0].slow = true;
		process.moment = BEFORE_STOP;
		process.event = cases[i].event;
		assert_int_equal(captured(&process), cases[i].captured);
		assert_int_equal(process.moment, NEVER);
		assert_int_equal(process.stops, cases[i].stops);
		assert_int_equal(process.threads[0].slow,
				 cases[i].stops == 0); /* the freeze waits for its stop */
		if (cases[i].state)
			assert_int_equal(captured_first(&process)->state, cases[i].state);
		end(&process);
	}
}

/* Of a thread that sleeps as it did before, only the call is read; its name now and then. */
TEST(test_sleeps_again)
{
	struct process process;
	unsigned reads = 0;

	begin(&process, 2);
	begin_gathering(&process);
	for (int i = 0; i < 200; i++) {
		process.threads[0].runs++;
		assert_int_equal(captured(&process), 0x1);
		assert_int_equal(captured_first(&process)->state, 'S');
		assert_string_equal(captured_first(&process)->name, "made-up");
		assert_int_equal(process.stops, 0);
		reads += process.reads;
	}
	assert_in_range(reads, 2, 4);
	/* It runs while it is read, and sleeps again. */
	process.threads[0].runs++;
	process.moment = AFTER_LISTING;
	process.event = run_first;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.stops, 0);
	assert_int_equal(captured(&process), 0);
	/* It does not sleep any more, or as another program. */
	process.threads[0].runs++;
	process.threads[0].runs_now = true;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.reads, 1);
	assert_int_equal(process.stops, 1);
	process.threads[0].runs_now = false;
	for (int i = 0; i < 3; i++) {
		process.threads[0].runs++;
		if (i == 2)
			process.change = SS_ADDRESS_SPACE_REPLACED;
		assert_int_equal(captured(&process), 0x1);
		assert_int_equal(process.reads, i != 1);
	}
	end(&process);
}

static void sleep_first(struct process *process)
{
	process->threads[0].runs++;
	process->threads[0].runs_now = false;
}

/* Where the kernel samples the CPUs, a thread that slept before, and was not on a CPU at the tick, may go
   to sleep again if it is not on one now, or has got one at once. */
TEST(test_sleeps_soon)
{
	const struct ss_on_cpu_sample sample = {
		.clock = { .tid = FIRST_TID, .time_ns = 10, .has_regs = true },
		.stack = { .size = 16 }
	};
	/* Cases: it sleeps soon; it runs on; it is on a CPU, for which it has waited; it was on one at
	   the tick; the kernel does not sample; it is on a CPU and sleeps soon. */
	for (int i = 0; i < 6; i++) {
		const bool sleeps = i == 0 || i == 5;
		struct process process;
		begin(&process, 2);
		begin_gathering(&process);
		process.sampler.threads.sampled = i != 4;
		process.sampler.by_kernel = SS_SAMPLES_OF_RUNTIMES;
		process.threads[0].runs++;
		process.threads[0].runs_now = true;
		process.threads[0].on_cpu = i == 2 || i == 5;
		process.threads[0].wait_ns = i == 2 ? RUN_NS : 0;
		process.sampler.clocked = &sample;
		process.sampler.clocked_count = i == 3;
		process.moment = sleeps ? BEFORE_CHECK : NEVER;
		if (sleeps) { /* the other one is checked meanwhile */
			process.threads[1].runs++;
			process.event = sleep_first;
		}
		assert_int_equal(captured(&process), sleeps ? 0x3 : 0x1);
		assert_int_equal(process.moment, NEVER);
		assert_int_equal(process.stops, !sleeps);
		assert_int_equal(captured_first(&process)->state, sleeps ? 'S' : 'R');
		end(&process);
	}
	(void)state;
}

/* One that runs now, and whose CPU ticks were not read while it slept, may be in a call: it is looked
   at before it is stopped. */
TEST(test_ticks_that_were_not_read)
{
	struct process process;

	begin(&process, 2);
	begin_gathering(&process);
	process.sampler.threads.sampled = true;
	for (int i = 0; i < 4; i++) {
		process.threads[0].runs++;
		process.threads[0].system_ticks++;
		assert_int_equal(captured(&process), 0x1);
		assert_int_equal(process.stops, 0);
	}
	process.threads[0].runs++;
	process.threads[0].runs_now = process.threads[0].on_cpu = true;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.stops, 1);
	assert_false(process.threads[0].computes);
	end(&process);
}

/* A thread of a runtime that was on a CPU for a moment at the tick: it is seen to run, not to sleep
   where it sleeps when it is read. */
TEST(test_slept_since)
{
	const struct ss_on_cpu_sample sample = {
		.clock = { .tid = FIRST_TID, .time_ns = 10, .has_regs = true },
		.stack = { .size = 16 }
	};
	/* Cases: it does; it slept at the tick, too; it runs for long; it does, and the kernel's copy of its
	   stack was not enough before. */
	for (int i = 0; i < 4; i++) {
		const bool slept = i == 0 || i == 3;
		struct process process;
		begin(&process, 2);
		process.threads[0].short_runs = i != 2;
		begin_gathering(&process);
		process.sampler.threads.sampled = true;
		process.threads[0].runs++;
		process.sampler.clocked = &sample;
		process.sampler.clocked_count = i != 1;
		struct ss_sampled_thread *thread =
			ss_thread_list_find(&process.sampler.threads, FIRST_TID);
		thread->deep = i == 3 ? 4 : 0;
		assert_int_equal(captured(&process), 0x1);
		assert_int_equal(process.stops, 0);
		assert_int_equal(captured_first(&process)->state, slept ? 'R' : 'S');
		assert_int_equal(thread->origin,
				 slept ? SS_THREAD_SLEPT : SS_THREAD_READ);
		/* The next tick finds where it sleeps. */
		process.sampler.clocked_count = 0;
		assert_int_equal(captured(&process), slept ? 0x1 : 0);
		assert_int_equal(thread->origin, SS_THREAD_READ);
		end(&process);
	}
	(void)state;
}

/* What was copied with the sample of a thread is not enough: it is captured, as one that runs. */
TEST(test_copied_in_vain)
{
	const struct ss_on_cpu_sample sample = {
		.clock = { .tid = FIRST_TID, .time_ns = 10, .has_regs = true },
		.stack = { .size = 16 },
		.copied = true
	};
	/* Cases: it runs on; it sleeps by then; it is in its wait when it is stopped. */
	for (int i = 0; i < 3; i++) {
		struct process process;
		begin(&process, 2);
		process.threads[0].short_runs = true;
		begin_gathering(&process);
		process.sampler.threads.sampled = true;
		process.threads[0].runs++;
		process.threads[0].runs_now = true;
		process.sampler.clocked = &sample;
		process.sampler.clocked_count = 1;
		tick(&process);
		struct ss_sampled_thread *thread =
			ss_thread_list_find(&process.sampler.threads, FIRST_TID);
		assert_int_equal(thread->origin, SS_THREAD_COPIED);
		reject_all(&process);
		thread->deep = 2;
		process.threads[0].runs_now = i != 1;
		process.moment = i == 2 ? BEFORE_STOP : NEVER;
		process.event = sleep_first;
		assert_null(ss_sampler_retry(&process.sampler, &process.tick));
		assert_int_equal(accept_all(&process, false), 0x1);
		assert_int_equal(process.stops, i != 1);
		assert_int_equal(thread->origin,
				 i == 1 ? SS_THREAD_SLEPT : SS_THREAD_READ);
		assert_int_equal(captured_first(&process)->state, 'R');
		end(&process);
	}
	(void)state;
}

/* A thread that runs while its group is copied, and cannot be stopped then, but be read. */
TEST(test_gathered_at_last)
{
	struct process process;

	begin(&process, 2);
	begin_gathering(&process);
	process.threads[0].runs++;
	process.threads[0].deaf = process.threads[0].observed = true;
	process.moment = BEFORE_CHECK;
	process.event = wake_first;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.moment, NEVER);
	assert_int_equal(process.stops, 0);
	assert_int_equal(captured_first(&process)->turn, process.sampler.gathers.used);
	end(&process);
}

/* However many groups there are: a look takes time, and the samples of all CPUs. */
TEST(test_one_look_for_all_groups)
{
	struct process process;

	begin(&process, THREADS_MAX);
	begin_gathering(&process);
	for (size_t i = 0; i < THREADS_MAX; i++) {
		struct thread *thread = &process.threads[i];
		thread->runs++;
		thread->runs_now = thread->in_call = i % 4 == 0;
	}
	assert_int_equal(captured(&process), UINT_MAX);
	assert_int_equal(process.stops, 0);
	assert_true(process.sampler.gathers.used >= 4);
	assert_int_equal(process.looks, 1);
	end(&process);
}

/* What sleeps again when its stack is copied is not stopped. */
TEST(test_thread_runs_briefly_in_a_tick)
{
	struct process process;

	begin(&process, 2);
	process.moment = BEFORE_CHECK;
	process.event = run_first;
	process.threads[0].runs = 6;
	assert_int_equal(captured(&process), 0x3);
	assert_int_equal(process.threads[0].runs, 8);
	assert_int_equal(process.stops, 0);
	assert_int_equal(captured(&process), 0);
	/* Each time that it is copied: it runs too often. */
	process.threads[0].runs = 1;
	process.moment = BEFORE_CHECK;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.stops, 1);
	end(&process);
}

/* A thread that runs while it is read without a stop, and goes on, is stopped. */
TEST(test_thread_wakes_up_in_a_tick)
{
	struct process process;

	begin(&process, 2);
	process.moment = BEFORE_CHECK;
	process.event = wake_first;
	assert_int_equal(captured(&process), 0x3);
	assert_int_equal(process.stops, 1);
	const struct ss_capture_thread *woken = process.tick.capture->threads.items;
	assert_true(woken->tid == FIRST_TID && woken->stopped_ns == STOP_NS);
	assert_int_equal(captured(&process), 0x1);
	end(&process);
	/* both */
	begin(&process, 2);
	process.moment = BEFORE_CHECK;
	process.event = wake_both;
	assert_int_equal(captured(&process), 0x3);
	assert_int_equal(process.stops, 2);
	end(&process);
}

/* A register that only a stop gives is fetched once, unless a stop would end the call;
   the stop itself is not taken for a wake-up. */
TEST(test_register)
{
	struct process process;

	begin(&process, 2);
	process.threads[1].fragile = true;
	tick(&process);
	assert_int_equal(accept_all(&process, true), 0x3);
	tick(&process);
	assert_int_equal(process.stops, 1);
	assert_int_equal(accept_all(&process, true), 0x3);
	const struct ss_capture_thread *first = process.tick.capture->threads.items;
	assert_true(first[0].stopped_ns == STOP_NS && first[1].stopped_ns == 0);
	tick(&process);
	assert_int_equal(process.stops, 0);
	assert_int_equal(accept_all(&process, true) & 0x1, 0);
	assert_int_equal(ss_thread_list_find(&process.sampler.threads, FIRST_TID)->state,
			 SS_THREAD_IDLE);
	end(&process);
}

TEST(test_thread_that_does_not_stop)
{
	struct process process;

	begin(&process, 1);
	process.threads[0].runs_now = process.threads[0].deaf = true;
	assert_int_equal(captured(&process), 0x1);
	assert_true(process.sampler.late);
	assert_int_equal(process.tick.capture->threads.items[0].stacks[0].size, 0);
	process.threads[0].deaf = false;
	assert_int_equal(captured(&process), 0x1);
	assert_false(process.sampler.late);
	end(&process);
}

static bool is_first(void *data, pid_t tid, const char *name, char state)
{
	(void)data;
	(void)name;
	(void)state;
	return tid == FIRST_TID;
}

TEST(test_filter)
{
	struct process process;

	begin_filtered(&process, 3, is_first);
	assert_int_equal(captured(&process), 0x1);
	assert_true(
		ss_thread_list_find(&process.sampler.threads, FIRST_TID + 1)->excluded);
	assert_int_equal(captured(&process), 0);
	end(&process);
}

/* What a change of the address space means for a capture, and for the next one. */
TEST(test_modules_change)
{
	static const struct {
		enum ss_mapping_check check;
		enum ss_address_space_change change;
		bool stale;
	} cases[] = {
		{ SS_MAPPING_SAME, SS_ADDRESS_SPACE_CHANGED, false }, /* not asked */
		{ SS_MAPPING_DIFFERS, SS_ADDRESS_SPACE_SAME, false },
		{ SS_MAPPING_DIFFERS, SS_ADDRESS_SPACE_MORE, true },
		{ SS_MAPPING_UNKNOWN, SS_ADDRESS_SPACE_MORE, false },
		{ SS_MAPPING_UNKNOWN, SS_ADDRESS_SPACE_CHANGED, true },
		{ SS_MAPPING_UNKNOWN, SS_ADDRESS_SPACE_REPLACED, true },
		{ SS_MAPPING_DIFFERS, SS_ADDRESS_SPACE_ENDED, false },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		struct process process;
		bool stale;
		bool asked = cases[i].check != SS_MAPPING_SAME;
		begin(&process, 2);
		tick(&process);
		process.change = cases[i].change;
		assert_null(ss_sampler_confirm(&process.sampler, cases[i].check,
					       &process.tick, &stale));
		assert_int_equal(stale, cases[i].stale);
		assert_int_equal(process.tick.change, asked ? cases[i].change : 0);
		/* Rejected threads are captured again, the others are not. */
		reject_all(&process);
		ss_thread_accept(ss_thread_list_find(&process.sampler.threads, FIRST_TID),
				 false, false);
		assert_null(ss_sampler_retry(&process.sampler, &process.tick));
		assert_int_equal(accept_all(&process, false), 0x2);
		end(&process);
	}
}

TEST(test_modules_change_between_ticks)
{
	struct process process;

	begin(&process, 2);
	assert_int_equal(captured(&process), 0x3);
	/* what maps a module has run */
	process.threads[0].runs++;
	process.change = SS_ADDRESS_SPACE_MORE;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.updates, 1);
	assert_int_equal(process.tick.change, SS_ADDRESS_SPACE_MORE);
	end(&process);
}

TEST(test_exec)
{
	struct process process;

	begin(&process, 3);
	assert_int_equal(captured(&process), 0x7);
	/* Only the leader is left, and it has run. */
	process.threads[1].tid = process.threads[2].tid = 0;
	process.threads[0].runs++;
	process.change = SS_ADDRESS_SPACE_REPLACED;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.tick.change, SS_ADDRESS_SPACE_REPLACED);
	assert_int_equal(captured(&process), 0);
	assert_int_equal(process.sampler.threads.items.count, 1);
	end(&process);
}

/* Whether a thread whose memory was mapped anew while it could run is believed. */
TEST(test_mappings_are_verified)
{
	static const uint64_t start = CODE;
	struct process process;

	begin(&process, 1);
	process.threads[0].runs_now = true;
	assert_int_equal(captured(&process), 0x1);
	struct ss_sampled_thread *thread =
		ss_thread_list_find(&process.sampler.threads, FIRST_TID);
	ss_area_check_remember(&thread->areas, &start, 1);
	assert_int_equal(captured(&process), 0x1);
	assert_true(ss_area_check_contains(&thread->areas, CODE));
	assert_true(process.checks > 0);
	process.check = SS_MAPPING_DIFFERS;
	assert_int_equal(captured(&process), 0x1);
	assert_false(ss_area_check_contains(&thread->areas, CODE));
	/* The kernel reports mappings, and has reported none. */
	process.sampler.is_current = true;
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(process.checks, 0);
	assert_false(ss_area_check_contains(&thread->areas, CODE));
	end(&process);
}

TEST(test_the_end)
{
	struct process process;

	begin(&process, 2);
	assert_int_equal(captured(&process), 0x3);
	process.threads[0].tid = process.threads[1].tid = 0;
	process.change = SS_ADDRESS_SPACE_ENDED;
	for (int i = 0; i < 3; i++) {
		tick(&process);
		assert_int_equal(process.tick.change, SS_ADDRESS_SPACE_ENDED);
		assert_null(process.tick.capture);
	}
	end(&process);
}

static void assert_fails(struct process *process, enum ss_error_code code)
{
	_cleanup_error_ struct ss_error *error =
		ss_sampler_tick(&process->sampler, &process->tick);

	assert_non_null(error);
	assert_int_equal(ss_error_code(error), code);
	assert_null(process->tick.capture);
}

/* After an error the next tick captures what was due. */
TEST(test_errors)
{
	struct process process;
	bool stale;

	begin(&process, 2);
	process.no_memory = true;
	assert_fails(&process, SS_ERROR_NO_MEMORY);
	process.no_memory = false;
	process.refused = SS_ERROR_DENIED;
	assert_fails(&process, SS_ERROR_DENIED);
	process.refused = 0;
	assert_int_equal(captured(&process), 0x3);
	process.threads[0].runs++;
	process.refused = SS_ERROR_SYSTEM;
	assert_fails(&process, SS_ERROR_SYSTEM);
	process.refused = 0;
	tick(&process);
	process.refused = SS_ERROR_DENIED;
	_cleanup_error_ struct ss_error *error = ss_sampler_confirm(
		&process.sampler, SS_MAPPING_DIFFERS, &process.tick, &stale);
	assert_non_null(error);
	process.refused = 0;
	/* The caller drops a tick that it cannot use. */
	ss_sampler_discard(&process.sampler);
	assert_int_equal(captured(&process), 0x1);
	assert_int_equal(captured(&process), 0);
	end(&process);
}

/* After missed ticks, however many, one tick has everything that happened since. */
TEST(test_missed_ticks)
{
	struct process process;

	begin(&process, 3);
	assert_int_equal(captured(&process), 0x7);
	process.threads[0].runs += 1000;
	end_last(&process);
	begin_thread(&process);
	process.change = SS_ADDRESS_SPACE_CHANGED;
	assert_int_equal(captured(&process) & 0x7, 0x1);
	assert_int_equal(process.tick.change, SS_ADDRESS_SPACE_CHANGED);
	(void)captured(&process);
	assert_non_null(ss_thread_list_find(&process.sampler.threads, FIRST_TID + 3));
	assert_null(ss_thread_list_find(&process.sampler.threads, FIRST_TID + 2));
	end(&process);
}

/* All maps are read if the number of pages has changed, at most 1 % of the time, and each
   second. */
TEST(test_when_maps_are_read)
{
	const struct ss_address_space space = { .pages = 50,
						.updated_ns = 1000 * SS_NS_PER_MS,
						.cost_ns = SS_NS_PER_MS };

	assert_false(ss_address_space_is_due(&space, 50, 1001 * SS_NS_PER_MS));
	assert_false(ss_address_space_is_due(&space, 51, 1099 * SS_NS_PER_MS));
	assert_true(ss_address_space_is_due(&space, 51, 1100 * SS_NS_PER_MS));
	assert_false(ss_address_space_is_due(&space, 50, 1999 * SS_NS_PER_MS));
	assert_true(ss_address_space_is_due(&space, 50, 2000 * SS_NS_PER_MS));
	/* an exec, or the end */
	assert_true(ss_address_space_is_due(&space, 0, 1001 * SS_NS_PER_MS));
}
