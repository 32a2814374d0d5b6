#include "sample/sampler.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "capture/result.h"

enum {
	TURNS = 3,	   /* for threads that wake up during the read */
	FILTER_TICKS = 64, /* captures of a thread after which its filter is read again */
	NAME_TICKS = 64,   /* likewise, its name */
	/* A thread that has run for so long without a clock tick (10 ms) in the kernel is
	   in a system call less than one time in twenty. */
	COMPUTES_NS = 200 * 1000 * 1000,
	LOOK_NS = 2 * 1000 * 1000,    /* for a thread that waits for a CPU */
	YOUNG_NS = 100 * 1000 * 1000, /* on a CPU: a new thread may get its own name */
	SWITCHES_MAX = 16,	      /* between two ticks: more are not sampled */
	SWITCH_NS = 500 * 1000,	      /* on a CPU for each: likewise, of a new thread */
	PAUSES_MAX = 4,		      /* in a tick */
	BRIEF_NS = 400 * 1000,	      /* to look at a thread and stop it takes as long */
	/* To wait for a CPU each time: much less than from a tick until threads are read. */
	PROMPT_NS = 20 * 1000,
	KEEP_CAPTURES = 4, /* of a thread, after which its files stay open */
	GROUP_MIN = 8,	   /* threads that are copied together */
	GROUPS_MAX = 16,
	PAUSE_NS = 100 * 1000,
	PAUSE_KINDS = 7,
	/* A thread is stopped for at most this part of its time, in the long run. */
	STOP_SHARE = 100,
	STOP_BURST_NS = 5 * 1000 * 1000, /* before that counts */
	STOP_MAX_NS = 5 * 1000 * 1000,	 /* at once */
	/* Threads in a tick: with that many, all wait until the slowest has got a CPU. */
	STOPS_FIRST = 32,
	STOPS_MAX = 4096,
	/* If threads did not stop, because they got no CPU: no stops for so many times as long as the
	   tick waited for them. */
	LATE_SHARE = 4,
};

/* For so long after a call that moved data a thread is not stopped. */
#define MOVES_DATA_NS (10 * SS_NS_PER_SECOND)

static bool want_all(void *data, pid_t tid, const char *name, char state)
{
	(void)data;
	(void)tid;
	(void)name;
	(void)state;
	return true;
}

void ss_sampler_init(struct ss_sampler *sampler, struct ss_target *target,
		     const struct ss_capture_options *options, struct ss_arena *arena,
		     const struct ss_process_access *access)
{
	*sampler = (struct ss_sampler){
		.target = target, .access = access, .options = *options, .arena = arena
	};
	sampler->options.mode = SS_MODE_AUTO;
	/* With a filter, the freeze does not search for new threads. */
	if (!options->filter)
		sampler->options.filter = want_all;
	ss_address_space_init(&sampler->space, target);
	sampler->look = (struct ss_look){
		.target = target,
		.memory = &sampler->space.memory,
		.options = &sampler->options,
		.limit_ns = SS_MIN(LOOK_NS, options->timeout_ms * SS_NS_PER_MS / 2)
	};
	sampler->limit.most = STOPS_FIRST;
	ss_target_threads_init(&sampler->source, target);
	ss_thread_list_init(&sampler->threads, &access->threads, &sampler->source);
}

void ss_sampler_deinit(struct ss_sampler *sampler)
{
	ss_thread_list_deinit(&sampler->threads);
	ss_target_threads_deinit(&sampler->source);
	ss_tasks_deinit(&sampler->tasks);
	ss_look_deinit(&sampler->look);
	ss_gathers_deinit(&sampler->gathers);
	ss_switch_stacks_close(&sampler->switches);
	ss_vector_free(&sampler->running);
	ss_vector_free(&sampler->captured);
	ss_address_space_deinit(&sampler->space);
	ss_buffer_deinit(&sampler->text);
}

/* Whether it needs no look before it is stopped, which takes longer than the stop. */
static bool computes(struct ss_sampled_thread *thread, const struct ss_tracee *task)
{
	thread->user_ticks = task->user_ticks;
	if (task->system_ticks != thread->system_ticks || thread->computed_ns == 0) {
		thread->system_ticks = task->system_ticks;
		thread->computed_ns = thread->run_ns;
	}
	return thread->run_ns - thread->computed_ns >= (uint64_t)COMPUTES_NS;
}

/* Samples by the kernel -------------------------------------------------- */

static const char ended_name[] = "(ended)";

/* Reads its name now and then, and applies the filter. What has ended keeps its name. */
static void name_thread(struct ss_sampler *sampler, struct ss_sampled_thread *thread)
{
	if (*thread->name && thread->run_ns >= (uint64_t)YOUNG_NS &&
	    ++thread->filter_ticks < FILTER_TICKS)
		return;
	thread->filter_ticks = 0;
	if (!sampler->access->read_name(sampler->target, thread->tid, &sampler->text,
					thread->name, sizeof(thread->name)) &&
	    !*thread->name)
		memcpy(thread->name, ended_name, sizeof(ended_name));
	thread->excluded = !sampler->options.filter(sampler->options.filter_data,
						    thread->tid, thread->name, 'R');
}

static bool moves_data(const struct ss_sampled_thread *thread, uint64_t now_ns)
{
	return thread->moved_data_ns && now_ns - thread->moved_data_ns < MOVES_DATA_NS;
}

/* Calls whose number is not known do not count. */
static bool is_moving(const struct ss_sampler *sampler, pid_t tid,
		      const struct ss_syscall_text *call, bool look)
{
	return call->number >= 0 &&
	       sampler->access->moves_data(sampler->target, tid, call, look);
}

/* The call of a sample; notes whether it moves data. */
static void fill_call(const struct ss_sampler *sampler,
		      const struct ss_clock_sample *sample,
		      struct ss_sampled_thread *thread, struct ss_syscall *ret)
{
	struct ss_syscall_text call;

	*ret = (struct ss_syscall){ .number = -1 };
	if (!sample->in_kernel ||
	    !sampler->access->find_call(sampler->target, &sampler->space.memory,
					&sample->kernel, &call))
		return;
	/* Samples are many: nothing of the process is touched for each. */
	if (is_moving(sampler, thread->tid, &call, false))
		thread->moved_data_ns = sample->time_ns;
	ret->number = call.number;
	ret->id = ss_arch_syscall_id(sampler->target->arch, call.number);
	memcpy(ret->args, call.args, sizeof(ret->args));
}

/* Not code of another processor in its process. */
static bool executes_program(const struct ss_sampler *sampler,
			     const ss_kernel_regs *kernel)
{
	const struct ss_arch *arch = sampler->target->arch;

	return !arch->attach->executes || arch->attach->executes(kernel) == arch;
}

static void fill_sample(const struct ss_sampler *sampler,
			const struct ss_on_cpu_sample *sample,
			struct ss_sampled_thread *thread, struct ss_capture_thread *ret)
{
	*ret = (struct ss_capture_thread){
		.tid = sample->clock.tid,
		.state = 'R',
		.end = sample->stack.size || !sample->clock.has_regs ?
			       SS_END_ROOT : /* a kernel worker has no stack */
			       SS_END_UNREADABLE,
		.consistent = true,
		.worker = !sample->clock.has_regs,
		.syscall.number = -1,
		.stacks[0] = sample->stack,
	};
	memcpy(ret->name, thread->name, sizeof(ret->name));
	if (!sample->clock.has_regs)
		return;
	if (!executes_program(sampler, &sample->clock.kernel)) {
		ret->end = SS_END_UNREADABLE;
		ret->stacks[0] = (struct ss_stack_copy){};
		return;
	}
	sampler->target->arch->attach->regs(&sample->clock.kernel, &ret->regs);
	fill_call(sampler, &sample->clock, thread, &ret->syscall);
}

/* Takes such a sample. False: no memory; the thread is captured. */
static bool fill_running(struct ss_sampler *sampler, struct ss_sampled_thread *thread,
			 const struct ss_on_cpu_sample *sample, char state)
{
	struct ss_capture_thread *slot = ss_vector_push(&sampler->running);

	if (!slot)
		return false;
	name_thread(sampler, thread);
	thread->excluded = !sampler->options.filter(sampler->options.filter_data,
						    thread->tid, thread->name, state);
	thread->kernel_state = state;
	ss_area_check_clear(&thread->areas);
	if (thread->excluded) {
		sampler->running.count--;
	} else {
		fill_sample(sampler, sample, thread, slot);
		slot->state = state;
	}
	ss_thread_end_capture(thread, false, false, 0);
	thread->origin = SS_THREAD_SAMPLED;
	thread->sampled_ns = sample->clock.time_ns;
	return true;
}

/* The sample of a thread that was on a CPU at the tick; or NULL. */
static const struct ss_on_cpu_sample *find_clocked(const struct ss_sampler *sampler,
						   pid_t tid)
{
	for (size_t i = sampler->clocked_count; i-- > 0;) {
		const struct ss_on_cpu_sample *sample = &sampler->clocked[i];
		if (sample->clock.tid == tid && sample->clock.has_regs)
			return sample;
	}
	return NULL;
}

static bool take_clocked(struct ss_sampler *sampler, struct ss_sampled_thread *thread)
{
	const struct ss_on_cpu_sample *sample = find_clocked(sampler, thread->tid);

	if (!sample)
		return false;
	thread->clocked_ns = sample->clock.time_ns;
	return fill_running(sampler, thread, sample, 'R');
}

/* A thread of a runtime of which the kernel has copied what its calls are, with its sample. */
static bool take_copied(struct ss_sampler *sampler, struct ss_sampled_thread *thread)
{
	const struct ss_on_cpu_sample *sample = find_clocked(sampler, thread->tid);
	const unsigned turn = sample && sample->copied && !sampler->on_cpu ?
				      ss_gathers_take(&sampler->gathers, sample) :
				      0;

	if (turn == 0 || !take_clocked(sampler, thread))
		return false;
	thread->origin = SS_THREAD_COPIED;
	if (!thread->excluded)
		sampler->running.items[sampler->running.count - 1].turn = turn;
	return true;
}

/* Waits for a CPU, and its stack is not known yet. */
static bool take_waiting(struct ss_sampler *sampler, struct ss_sampled_thread *thread)
{
	const struct ss_on_cpu_sample sample = { .clock.tid = thread->tid,
						 .clock.time_ns = ss_now_ns() };

	if (!fill_running(sampler, thread, &sample, 'R'))
		return false;
	if (!thread->excluded) {
		struct ss_capture_thread *last =
			&sampler->running.items[sampler->running.count - 1];
		last->end = SS_END_RUNNABLE;
		last->worker = false;
	}
	return true;
}

/*
 * Preempted, and not on a CPU since, or not at the tick. runnable: the thread is known to be now.
 * Then it may also have slept at the tick; and if it has not left a CPU since the event was opened,
 * it waits for one.
 */
static bool take_switched(struct ss_sampler *sampler, struct ss_sampled_thread *thread,
			  bool runnable)
{
	size_t used = sampler->arena->used;
	uint8_t *stack = ss_arena_take(sampler->arena, SS_SWITCH_STACK_MAX);
	struct ss_switch_sample switched;
	struct ss_regs regs;

	enum ss_switch_result result =
		stack ? ss_switch_stacks_find(&sampler->switches, thread->tid,
					      ss_now_ns(), &switched, stack) :
			SS_SWITCH_UNKNOWN;
	bool left = runnable && result == SS_SWITCH_LEFT;
	bool known = (left || result == SS_SWITCH_PREEMPTED) &&
		     switched.time_ns >= thread->clocked_ns;
	if (!known)
		sampler->arena->used = used;
	if (result == SS_SWITCH_NONE_YET)
		return runnable && take_waiting(sampler, thread);
	if (!known)
		return false;
	sampler->target->arch->attach->regs(&switched.kernel, &regs);
	struct ss_on_cpu_sample sample = {
		.clock = { .tid = thread->tid,
			   .time_ns = switched.time_ns,
			   .has_regs = true,
			   .in_kernel = left,
			   .kernel = switched.kernel },
		.stack = { .address = ss_regs_sp(sampler->target->arch, &regs),
			   .size = SS_MIN(switched.stack_size,
					  sampler->options.max_stack),
			   .bytes = stack,
			   .truncated = switched.truncated ||
					switched.stack_size >
						sampler->options.max_stack },
	};
	return fill_running(sampler, thread, &sample, left ? 'S' : 'R');
}

/* Whether a thread that has run needs no capture. again: its sample was not enough. */
static bool take_running(struct ss_sampler *sampler, struct ss_sampled_thread *thread,
			 bool again)
{
	thread->origin = SS_THREAD_READ;
	if (thread->deep > 0)
		thread->deep--;
	if (thread->deep > 0 || thread->state == SS_THREAD_GONE)
		return false;
	if (sampler->by_kernel != SS_SAMPLES_OF_STACKS)
		return !again && take_copied(sampler, thread);
	return (!again && take_clocked(sampler, thread)) ||
	       take_switched(sampler, thread, false);
}

/* A thread that runs or waits for a CPU now, but did not run at the tick: from the next one on it
   is known what it did then. */
static bool take_runnable(struct ss_sampler *sampler, struct ss_sampled_thread *thread)
{
	if (sampler->by_kernel != SS_SAMPLES_OF_STACKS || thread->deep > 0 ||
	    thread->switches > (uint64_t)SWITCHES_MAX)
		return false;
	if (ss_switch_stacks_start(&sampler->switches, thread->tid))
		return take_switched(sampler, thread, true);
	if (!ss_switch_stacks_are_full(&sampler->switches) ||
	    !take_waiting(sampler, thread))
		return false;
	/* So many threads wait for a CPU that a stop would have to wait for it, too. */
	sampler->limit.not_stopped++;
	return true;
}

/*
 * Whether only samples of the kernel tell when a thread of a runtime ran. Where these have no functions,
 * of one that runs for longer, what it does when it is read is as good: half of those that run then
 * began after the tick.
 */
static bool tells_by_sample(const struct ss_sampler *sampler,
			    const struct ss_sampled_thread *thread)
{
	return sampler->by_kernel == SS_SAMPLES_OF_RUNTIMES || thread->brief;
}

/*
 * A thread of a runtime that was on a CPU at the tick, and sleeps now: what was there of its functions
 * is gone, or was not enough, but it ran, and where it sleeps is not what it did.
 */
static bool take_slept(struct ss_sampler *sampler, struct ss_sampled_thread *thread,
		       const struct ss_tracee *task)
{
	if (!sampler->threads.sampled || sampler->by_kernel == SS_SAMPLES_OF_STACKS ||
	    sampler->on_cpu || !tells_by_sample(sampler, thread) ||
	    !ss_task_is_unstopped(task) || task->runs || !take_clocked(sampler, thread))
		return false;
	thread->origin = SS_THREAD_SLEPT;
	return true;
}

static void close_files(struct ss_tracee *task)
{
	if (!task->borrowed)
		ss_kept_thread_close(&task->files);
}

/* Its files. again: in this tick it was read before. */
static void begin_task(const struct ss_sampler *sampler,
		       const struct ss_sampled_thread *thread, bool again,
		       struct ss_tracee *task)
{
	*task = (struct ss_tracee){ .tid = thread->tid,
				    .arch = sampler->target->arch,
				    .state = '?',
				    .files = thread->files,
				    .borrowed = thread->schedstat_fd >= 0,
				    .counted = again ? 0 : thread->seen_count,
				    .moves_data = moves_data(thread, ss_now_ns()),
				    .filter = thread->filter };
	task->files.schedstat = thread->schedstat_fd + 1;
	task->call.number = -1;
}

/* Whether a thread that runs now, and was not on a CPU at the tick, slept then: it has hardly ever waited
   for a CPU. */
static bool slept_at_tick(const struct ss_sampler *sampler,
			  const struct ss_sampled_thread *thread)
{
	return thread->prompt && tells_by_sample(sampler, thread);
}

/*
 * Whether a thread that runs now most likely sleeps when others have been copied: it was not on a CPU at
 * the tick, and slept at its last capture, or runs for moments. Threads that wait for the GIL wake
 * up every 5 ms.
 */
static bool sleeps_soon(const struct ss_sampler *sampler,
			const struct ss_sampled_thread *thread,
			const struct ss_tracee *task)
{
	return task->phase == SS_TASK_SEEN && task->runs && task->state == 'R' &&
	       sampler->threads.sampled && sampler->by_kernel != SS_SAMPLES_OF_STACKS &&
	       !sampler->on_cpu &&
	       (thread->sleeping_call >= 0 || thread->brief ||
		slept_at_tick(sampler, thread)) &&
	       !find_clocked(sampler, thread->tid);
}

static void put_off(const struct ss_sampler *sampler,
		    const struct ss_sampled_thread *thread, struct ss_tracee *task)
{
	task->put_off = sleeps_soon(sampler, thread, task);
	task->woken = task->put_off && slept_at_tick(sampler, thread);
}

/*
 * Reads the call of a thread that most likely sleeps as it did at its last capture. Then its state
 * and its name need not be read, which takes most of the time. False: it has to be read.
 */
static bool read_sleeping(struct ss_sampler *sampler, struct ss_sampled_thread *thread,
			  struct ss_tracee *task, bool again)
{
	if (sampler->on_cpu || thread->excluded || thread->sleeping_call < 0 ||
	    !thread->files.syscall || thread->run_ns < (uint64_t)YOUNG_NS ||
	    thread->reads >= NAME_TICKS)
		return false;
	begin_task(sampler, thread, again, task);
	task->state = 'S';
	memcpy(task->comm, thread->name, sizeof(task->comm));
	task->user_ticks = thread->user_ticks;
	task->system_ticks = thread->system_ticks;
	task->call.kind = SS_SYSCALL_BLOCKED;
	task->call.number = thread->sleeping_call;
	sampler->access->read_again(task, sampler->target, &sampler->options,
				    &sampler->text);
	task->counted = 0;
	thread->reads++;
	put_off(sampler, thread, task);
	return task->put_off || (ss_task_is_watched(task) && task->state == 'S');
}

/*
 * Reads a thread. If it runs now, but did not at the tick, and sleeps often, it slept then. So it is
 * read again a little later: otherwise it would be seen to run twice as often as it does.
 */
static void read_task(struct ss_sampler *sampler, struct ss_sampled_thread *thread,
		      struct ss_tracee *task, bool again, unsigned *pauses)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	if (read_sleeping(sampler, thread, task, again))
		return;
	thread->reads = 0;
	if (sampler->by_kernel != SS_SAMPLES_OF_STACKS && thread->schedstat_fd >= 0 &&
	    thread->captures < KEEP_CAPTURES && ++thread->captures == KEEP_CAPTURES)
		sampler->access->keep_files(sampler->target, thread->tid, &thread->files);
	for (;; again = true) {
		begin_task(sampler, thread, again, task);
		sampler->access->read(task, sampler->target, &sampler->options,
				      &sampler->text);
		task->counted = 0;
		put_off(sampler, thread, task);
		if (!ss_task_is_unstopped(task) || task->state != 'R' ||
		    sampler->by_kernel != SS_SAMPLES_OF_STACKS || thread->deep > 0 ||
		    thread->switches <= (uint64_t)SWITCHES_MAX || *pauses == 0)
			return;
		(*pauses)--;
		close_files(task);
		(void)nanosleep(&pause, NULL); /* or less */
	}
}

/* Lists the threads that are due, as tasks. again: in this tick they were read before. False without
   memory. */
static bool list_due(struct ss_sampler *sampler, bool again)
{
	struct ss_task_list *tasks = &sampler->tasks;
	unsigned pauses = PAUSES_MAX;
	size_t count = 0;

	ss_tasks_close_files(tasks, sampler->target, NULL);
	tasks->items.count = 0;
	tasks->dumping_core = false;
	sampler->running.count = 0;
	for (size_t i = 0; i < sampler->threads.active.count; i++)
		count += ss_thread_list_active(&sampler->threads, i)->due;
	if (tasks->items.capacity <= count && !ss_tasks_reserve(tasks, count + 1))
		return false;
	for (size_t i = 0; i < sampler->threads.active.count; i++) {
		struct ss_sampled_thread *thread =
			ss_thread_list_active(&sampler->threads, i);
		if (!thread->due || take_running(sampler, thread, again))
			continue;
		struct ss_tracee *task = &tasks->items.items[tasks->items.count++];
		read_task(sampler, thread, task, again, &pauses);
		/* Not if its ticks were not read: it may make calls by now. */
		task->computes = thread->reads == 0 && computes(thread, task);
		task->ran = ss_task_is_unstopped(task) && task->state == 'R';
		if (task->ran ? take_runnable(sampler, thread) :
				take_slept(sampler, thread, task)) {
			close_files(task);
			tasks->items.count--;
			continue;
		}
		bool blocked = ss_task_is_watched(task);
		if (blocked && thread->state == SS_THREAD_STOP_NEXT)
			sampler->access->check_fragile(task, sampler->target,
						       &sampler->text);
		switch (ss_thread_begin_capture(thread, blocked, task->fragile,
						task->run_count)) {
		case SS_THREAD_SKIP:
			close_files(task);
			tasks->items.count--;
			break;
		case SS_THREAD_STOP:
			if (blocked)
				ss_task_enter(task, SS_TASK_SEEN);
			break;
		case SS_THREAD_CAPTURE:
			break;
		}
	}
	return true;
}

static bool is_stopped(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_STOPPED;
}

static struct ss_sampled_thread *find(const struct ss_sampler *sampler,
				      const struct ss_tracee *task)
{
	return ss_thread_list_find(&sampler->threads, task->tid);
}

static bool is_mapped(void *data, uint64_t address)
{
	struct ss_sampler *sampler = data;

	return sampler->access->check(&sampler->space, address) == SS_MAPPING_SAME;
}

/* Verifies the mappings of the frames of a thread that cannot run, unless it is known that they are
   those of the memory map. */
static void prove(struct ss_sampler *sampler, const struct ss_tracee *task, uint64_t pc)
{
	struct ss_sampled_thread *thread = sampler->is_current ? NULL :
								 find(sampler, task);
	const struct ss_area *area =
		thread ? ss_capture_find_area(sampler->space.capture, pc) : NULL;

	if (thread)
		ss_area_check_run(&thread->areas, pc, area ? area->start : 0, is_mapped,
				  sampler);
}

static void note_stop(struct ss_sampler *sampler, const struct ss_tracee *task)
{
	struct ss_sampled_thread *thread = find(sampler, task);

	if (thread && thread->state == SS_THREAD_STOP_NEXT)
		ss_thread_stop(thread, !task->runs,
			       ss_thread_list_run_count(&sampler->threads, thread));
}

static void copy_stopped(void *data)
{
	struct ss_sampler *sampler = data;

	sampler->access->copy(sampler->arena, sampler->space.capture, &sampler->tasks,
			      &sampler->space.memory, &sampler->options, is_stopped);
	ss_gathers_run(&sampler->gathers, &sampler->space.memory, &sampler->tasks,
		       is_stopped);
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		const struct ss_tracee *task = &sampler->tasks.items.items[i];
		struct ss_regs regs;
		if (!is_stopped(task))
			continue;
		task->arch->attach->regs(&task->kernel, &regs);
		prove(sampler, task, ss_regs_pc(task->arch, &regs));
		note_stop(sampler, task);
	}
}

/* Not one that runs in a call. */
static bool is_steady(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_STEADY && !task->in_call;
}

static bool is_observed(const struct ss_tracee *task)
{
	return !ss_task_is_watched(task) && task->partial && task->consistent;
}

/* Whether a thread was copied without a stop, and has not run until its stack was there. */
static bool stood_still(const struct ss_tracee *task)
{
	return is_observed(task) || is_steady(task);
}

static bool has_no_turn(const struct ss_tracee *task)
{
	return (task->turn == 0 || task->turn == SS_TURN_OTHER) && stood_still(task);
}

/* The run count of a thread now; 0: not known. */
static uint64_t count_runs(struct ss_sampler *sampler, pid_t tid)
{
	const struct ss_sampled_thread *thread =
		ss_thread_list_find(&sampler->threads, tid);

	return thread && thread->schedstat_fd >= 0 ?
		       ss_thread_list_run_count(&sampler->threads, thread) :
		       sampler->access->read_run_count(sampler->target, tid,
						       &sampler->text);
}

/*
 * Copies what runtimes need of threads that were not stopped, and were not copied in a group. A
 * thread that runs meanwhile has its stack, without the calls of runtimes.
 */
static void gather_unstopped(struct ss_sampler *sampler)
{
	const unsigned turn = (unsigned)sampler->gathers.used + 1;

	ss_gathers_run(&sampler->gathers, &sampler->space.memory, &sampler->tasks,
		       has_no_turn);
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		struct ss_tracee *task = &sampler->tasks.items.items[i];
		if (task->turn == turn &&
		    count_runs(sampler, task->tid) != task->run_count)
			task->turn = 0;
	}
}

/* For threads that were read without stopping them, if they have not run since. */
static void prove_observed(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		const struct ss_tracee *task = &sampler->tasks.items.items[i];
		if (!is_observed(task))
			continue;
		prove(sampler, task, task->call.pc);
		struct ss_sampled_thread *thread = find(sampler, task);
		if (thread && count_runs(sampler, task->tid) != task->run_count)
			ss_area_check_clear(&thread->areas);
	}
}

/* The limit of stops ------------------------------------------------------- */

/* A tick begins. If this program waits for a CPU also while it holds threads, and did so for longer
   than it may hold them, it holds none. */
static void begin_limit(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_stop_limit *limit = &sampler->limit;
	const uint64_t waited_ns = limit->waits ? sampler->access->read_waited_ns() : 0;
	const bool known = limit->waited_ns && waited_ns > limit->waited_ns;
	const bool starved = known && waited_ns - limit->waited_ns > STOP_MAX_NS;

	limit->waited_ns = waited_ns;
	limit->left = starved || ss_now_ns() < limit->pause_until_ns ? 0 : limit->most;
	tick->stopped_ns = limit->late_ns;
	tick->stopped_max_ns = limit->late_max_ns;
	limit->late_ns = limit->late_max_ns = 0;
}

/* Whether it has not been stopped for its part of the time yet. */
static bool may_stop(struct ss_sampled_thread *thread, uint64_t now_ns)
{
	if (thread->first_ns == 0)
		thread->first_ns = now_ns;
	return thread->stopped_ns <=
	       (now_ns - thread->first_ns) / STOP_SHARE + STOP_BURST_NS;
}

/* Chooses the threads that are not to be stopped now. */
static void limit_stops(struct ss_sampler *sampler)
{
	struct ss_stop_limit *limit = &sampler->limit;
	const size_t count = sampler->tasks.items.count;
	const uint64_t now_ns = ss_now_ns();
	const size_t first = limit->next;

	for (size_t i = 0; i < count; i++) {
		const size_t at = (first + i) % count;
		struct ss_tracee *task = &sampler->tasks.items.items[at];
		if (task->phase != SS_TASK_SEEN || task->limited || task->moves_data)
			continue;
		struct ss_sampled_thread *thread = find(sampler, task);
		task->limited = limit->left == 0 || (thread && !may_stop(thread, now_ns));
		if (task->limited)
			continue;
		limit->left--;
		limit->next = at + 1;
	}
}

static void count_stop(struct ss_sampler *sampler, const struct ss_tracee *task,
		       struct ss_sampled_thread *thread)
{
	sampler->limit.not_stopped += (task->limited || task->moves_data) &&
				      ss_task_is_unstopped(task) &&
				      task->stacks[0].size == 0;
	if (task->stopped_ns == 0)
		return;
	sampler->thread_stops++;
	if (thread)
		thread->stopped_ns += task->stopped_ns;
}

/* After the stops of a capture: the longest of a thread; 0: there was none. late: a thread did not
   stop in time. */
static void adapt_limit(struct ss_stop_limit *limit, uint64_t longest_ns, bool late)
{
	uint64_t pause_ns = late ? LATE_SHARE * limit->spent_ns : 0;

	if (longest_ns > STOP_MAX_NS)
		pause_ns = SS_MAX(pause_ns, STOP_SHARE * longest_ns);
	if (pause_ns)
		limit->pause_until_ns = ss_now_ns() + pause_ns;
	if (late || longest_ns > STOP_MAX_NS / 2)
		limit->most = SS_MAX(limit->most / 2, 1u);
	else if (longest_ns)
		limit->most = SS_MIN(2 * limit->most, (unsigned)STOPS_MAX);
}

static bool release_late(struct ss_sampler *sampler)
{
	struct ss_freeze freeze = { .target = sampler->target,
				    .options = &sampler->options,
				    .tasks = &sampler->tasks };
	struct ss_stop_limit *limit = &sampler->limit;

	const bool any = sampler->access->release_late(&freeze);
	sampler->thread_stops += freeze.late;
	limit->late_ns += freeze.duration_ns;
	limit->late_max_ns = SS_MAX(limit->late_max_ns, freeze.max_thread_ns);
	if (freeze.max_thread_ns > STOP_MAX_NS)
		adapt_limit(limit, freeze.max_thread_ns, false);
	return any;
}

/* Notes which threads are in a call that moves data, before another one is read. */
static void note_calls(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		struct ss_tracee *task = &sampler->tasks.items.items[i];
		if (!task->fragile || !is_moving(sampler, task->tid, &task->call, true))
			continue;
		struct ss_sampled_thread *thread = find(sampler, task);
		task->moves_data = true;
		if (thread)
			thread->moved_data_ns = ss_now_ns();
	}
}

/* Stops the threads that are not watched, and copies their stacks. */
static void stop(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_freeze freeze = { .target = sampler->target,
				    .options = &sampler->options,
				    .tasks = &sampler->tasks,
				    .status_fd = -1 };

	const uint64_t begin_ns = ss_now_ns();
	note_calls(sampler);
	limit_stops(sampler);
	sampler->limit.waits |=
		sampler->access->stop(&freeze, &sampler->look, copy_stopped, sampler);
	note_calls(sampler);
	sampler->limit.spent_ns += ss_now_ns() - begin_ns;
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		struct ss_tracee *task = &sampler->tasks.items.items[i];
		if (!task->put_off)
			continue;
		task->moved = true; /* it is read again */
		task->put_off = task->spared = false;
	}
	tick->stopped_ns += freeze.duration_ns;
	tick->stopped_max_ns = SS_MAX(tick->stopped_max_ns, freeze.max_thread_ns);
}

/* Watched, and not copied yet. */
static bool is_uncopied(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_WATCHED;
}

/* Reads a thread again that has run since it was read. A filter may depend on its state. */
static void read_again(struct ss_sampler *sampler, struct ss_tracee *task)
{
	bool fragile = task->fragile;

	if (!sampler->on_cpu && task->files.syscall) {
		sampler->access->read_again(task, sampler->target, &sampler->options,
					    &sampler->text);
	} else {
		sampler->access->read(task, sampler->target, &sampler->options,
				      &sampler->text);
		/* Then it may be in the same call, see capture/observe.h. */
		task->fragile |= fragile && task->runs;
	}
	task->moved = task->phase == SS_TASK_SEEN;
}

/* Whether it has run since it was read. */
static bool has_run(struct ss_sampler *sampler, const struct ss_tracee *task)
{
	return is_uncopied(task) && !task->in_call && task->files.schedstat &&
	       count_runs(sampler, task->tid) != task->run_count;
}

/* Copies the watched threads of a group, and checks that none of them has run until everything was
   copied, but for those that run in a call. Returns how many have. */
static size_t copy_group(struct ss_sampler *sampler, struct ss_task_list *group)
{
	sampler->access->copy_watched(sampler->arena, sampler->space.capture, group,
				      &sampler->space.memory, &sampler->options, 0);
	ss_gathers_run(&sampler->gathers, &sampler->space.memory, group, is_uncopied);
	for (size_t i = 0; i < group->items.count; i++) {
		const struct ss_tracee *task = &group->items.items[i];
		if (is_uncopied(task))
			prove(sampler, task, task->call.pc);
	}
	return sampler->access->check_watched(sampler->target, group, NULL, NULL);
}

/* Groups are small, so that few threads run while their group is copied, where that takes longer than
   to copy stacks. */
static size_t find_group_size(const struct ss_sampler *sampler)
{
	size_t count = sampler->tasks.items.count;

	return sampler->gathers.gather ?
		       SS_MAX(count / GROUPS_MAX + 1, (size_t)GROUP_MIN) :
		       count;
}

/* Copies the watched threads. Reads those again before that ran meanwhile. Threads that run in a call
   are looked at together, since a look takes time and the samples of all CPUs. Returns how many have run
   now, or still run. */
static size_t copy_groups(struct ss_sampler *sampler)
{
	struct ss_task_list *tasks = &sampler->tasks;
	const size_t size = find_group_size(sampler);
	bool in_call = false;
	size_t moved = 0;

	for (size_t i = 0; i < tasks->items.count;) {
		struct ss_task_list group = { .items.items = &tasks->items.items[i] };
		size_t count = 0;
		for (; i < tasks->items.count && count < size; i++) {
			struct ss_tracee *task = &tasks->items.items[i];
			if (task->moved ||
			    (sampler->gathers.gather && has_run(sampler, task)))
				read_again(sampler, task);
			moved += task->moved;
			count += is_uncopied(task);
			in_call |= is_uncopied(task) && task->in_call;
			group.items.count++;
		}
		if (count > 0)
			moved += copy_group(sampler, &group);
	}
	if (in_call)
		moved += sampler->access->check_watched(sampler->target, tasks,
							&sampler->look, NULL);
	return moved;
}

/*
 * Copies the watched threads. Those that run meanwhile and sleep again are not stopped: threads that
 * wait for a lock with a time limit, as those that wait for the GIL do, wake up for a moment all the
 * time. They slept at the tick, so one that runs gets a moment to sleep. Returns how many are left.
 */
static size_t copy_watched(struct ss_sampler *sampler, unsigned *pauses)
{
	struct ss_task_list *tasks = &sampler->tasks;
	size_t moved = copy_groups(sampler);

	while (moved > 0 && *pauses > 0) {
		/* They differ, so that they do not keep pace with the thread. */
		const struct timespec pause = { .tv_nsec = PAUSE_NS / 4 *
							   (1 + *pauses % PAUSE_KINDS) };
		(*pauses)--;
		(void)nanosleep(&pause, NULL); /* or less */
		moved = copy_groups(sampler);
	}
	for (size_t i = 0; i < tasks->items.count; i++)
		tasks->items.items[i].moved = false;
	return moved;
}

/* Blocked threads are read without stopping them. Those that run meanwhile, and do not sleep
   again, are stopped like running ones. */
static void freeze_until_steady(struct ss_sampler *sampler, struct ss_tick *tick)
{
	unsigned pauses = SS_MAX(sampler->patience, (unsigned)PAUSES_MAX);

	for (int turn = 0; turn < TURNS; turn++) {
		stop(sampler, tick);
		if (copy_watched(sampler, &pauses) == 0)
			return;
	}
	stop(sampler, tick);
}

/* Whether the stack of a thread cannot change until it runs. */
static bool is_still_task(const struct ss_tracee *task)
{
	return is_steady(task) || task->phase == SS_TASK_ZOMBIE ||
	       ((task->phase == SS_TASK_WORKER || task->phase == SS_TASK_EXCLUDED) &&
		task->state != 'R');
}

/* Reading the filter at each tick would take a quarter of its time. */
static void update_filter(struct ss_sampled_thread *thread, enum ss_task_filter filter)
{
	bool lately = filter == SS_FILTER_NONE_LATELY;

	thread->filter_ticks = lately ? thread->filter_ticks + 1 : 0;
	if (filter == SS_FILTER_NONE)
		thread->filter = SS_FILTER_NONE_LATELY;
	else
		thread->filter = thread->filter_ticks < FILTER_TICKS ? filter :
								       SS_FILTER_UNKNOWN;
}

/* Whether a stop interrupted a wait. */
static bool slept_at_stop(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_RELEASED &&
	       task->arch->attach->is_blocked(&task->kernel);
}

/* Updates the state of each thread after a capture. */
static void update_threads(struct ss_sampler *sampler)
{
	uint64_t longest_ns = 0;
	bool late = false;

	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		struct ss_tracee *task = &sampler->tasks.items.items[i];
		struct ss_sampled_thread *thread = find(sampler, task);
		bool stopped = task->phase == SS_TASK_RELEASED;
		late |= task->attached;
		longest_ns = SS_MAX(longest_ns, task->stopped_ns);
		count_stop(sampler, task, thread);
		/* It ran when it was read. */
		if (task->state == 'R' && slept_at_stop(task) && !sampler->on_cpu)
			task->state = 'S';
		/* Or at the tick, and a sample of it was not enough. */
		if (task->state == 'S' && stopped &&
		    sampler->by_kernel != SS_SAMPLES_OF_STACKS && !sampler->on_cpu &&
		    find_clocked(sampler, task->tid))
			task->state = 'R';
		if (!thread)
			continue;
		if (task->phase == SS_TASK_GONE)
			ss_thread_end(thread);
		thread->excluded = task->phase == SS_TASK_EXCLUDED;
		thread->kernel_state = task->state;
		if (task->phase != SS_TASK_GONE)
			memcpy(thread->name, task->comm, sizeof(thread->name));
		update_filter(thread, task->filter);
		thread->sleeping_call =
			is_steady(task) && task->state == 'S' ? task->call.number : -1;
		ss_thread_end_capture(thread, stopped, is_still_task(task),
				      is_steady(task) ? task->run_count : 0);
	}
	sampler->late |= late;
	adapt_limit(&sampler->limit, longest_ns, late);
}

/*
 * What was found of a thread that went to sleep is where it sleeps, not what it did on the
 * CPU. It stays a sample, without a stack: otherwise short bursts of work would be missing
 * without a trace.
 */
static void drop_sleepers(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		struct ss_tracee *task = &sampler->tasks.items.items[i];
		struct ss_sampled_thread *thread = find(sampler, task);
		bool left = task->phase == SS_TASK_EXCLUDED ||
			    (task->partial && !task->in_call);
		if (!task->ran || !thread || task->phase == SS_TASK_GONE ||
		    (!left && !slept_at_stop(task)))
			continue;
		task->state = thread->kernel_state = 'R';
		ss_task_enter(task, SS_TASK_SLEPT);
		task->partial = true;
		task->call = (struct ss_syscall_text){ .number = -1 };
		memset(task->stacks, 0, sizeof(task->stacks));
		thread->excluded = false;
	}
}

/* Threads that are not due sleep. */
static void exclude_sleepers(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->threads.items.count; i++) {
		struct ss_sampled_thread *thread = &sampler->threads.items.items[i];
		if (!thread->due)
			thread->excluded = true;
	}
}

static bool any_listed(const struct ss_task_list *tasks)
{
	for (size_t i = 0; i < tasks->items.count; i++) {
		enum ss_task_phase phase = tasks->items.items[i].phase;
		if (phase != SS_TASK_GONE && phase != SS_TASK_EXCLUDED)
			return true;
	}
	return false;
}

/* Finds the threads of a capture in the list. */
static struct ss_error *finish_capture(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_capture *capture = sampler->space.capture;
	const size_t count = capture->threads.count;

	if (!ss_vector_reserve(&sampler->captured, count + 1))
		return ss_error_no_memory();
	for (size_t i = 0; i < count; i++)
		sampler->captured.items[i] = ss_thread_list_find(
			&sampler->threads, capture->threads.items[i].tid);
	sampler->captured.count = count;
	tick->capture = count > 0 ? capture : NULL;
	return NULL;
}

/* Adds the threads that the kernel sampled to the capture. */
static struct ss_error *add_running(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_capture *capture = sampler->space.capture;

	if (!ss_vector_reserve(&capture->threads,
			       capture->threads.count + sampler->running.count + 1))
		return ss_error_no_memory();
	for (size_t i = 0; i < sampler->running.count; i++)
		capture->threads.items[capture->threads.count++] =
			sampler->running.items[i];
	return finish_capture(sampler, tick);
}

static struct ss_error *capture_tasks(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_task_list *tasks = &sampler->tasks;
	struct ss_capture *capture = sampler->space.capture;

	if (!any_listed(tasks)) {
		update_threads(sampler);
		return add_running(sampler, tick);
	}
	struct ss_error *error =
		ss_arena_prepare(sampler->arena, capture, tasks, &sampler->options, NULL);
	if (error)
		return error;
	freeze_until_steady(sampler, tick);
	/* Threads of another tracer and others that cannot be stopped: reads what is
	   readable. */
	sampler->access->observe(sampler->arena, capture, sampler->target, tasks,
				 &sampler->space.memory, &sampler->options,
				 &sampler->look);
	note_calls(sampler);
	prove_observed(sampler);
	gather_unstopped(sampler);
	update_threads(sampler);
	if (sampler->late)
		(void)release_late(sampler);
	if (sampler->on_cpu)
		drop_sleepers(sampler);
	error = ss_result_fill_threads(capture, tasks);
	return error ? error : add_running(sampler, tick);
}

/* Captures the threads that are due. Their stacks take the place of those of the last capture. */
static struct ss_error *capture_due(struct ss_sampler *sampler, bool again,
				    struct ss_tick *tick)
{
	const size_t kept = sampler->arena->kept;

	tick->capture = NULL;
	sampler->space.capture->threads.count = 0;
	ss_gathers_begin(&sampler->gathers);
	sampler->limit.spent_ns = 0;
	sampler->arena->used = kept;
	if (!list_due(sampler, again))
		return ss_error_no_memory();
	ss_arena_keep(sampler->arena);
	struct ss_error *error = capture_tasks(sampler, tick);
	sampler->arena->kept = kept;
	return error;
}

bool ss_sampler_release_late(struct ss_sampler *sampler)
{
	return sampler->late && release_late(sampler);
}

/* The program that a process executes now has other names. */
static void note_change(struct ss_sampler *sampler, enum ss_address_space_change change)
{
	for (size_t i = 0;
	     change == SS_ADDRESS_SPACE_REPLACED && i < sampler->threads.items.count;
	     i++) {
		sampler->threads.items.items[i].filter_ticks = FILTER_TICKS;
		sampler->threads.items.items[i].reads = NAME_TICKS;
	}
}

/* Of a new thread, the switches of its life are known: if they were seldom, they do not count. */
static void count_switches(struct ss_sampled_thread *thread)
{
	uint64_t switches = thread->seen_count - thread->last_count;
	bool seldom = thread->last_count == 0 &&
		      switches <= thread->run_ns / (uint64_t)SWITCH_NS;

	thread->switches = seldom ? 0 : switches;
	thread->brief = switches > 0 && thread->run_ns - thread->last_run_ns <
						switches * (uint64_t)BRIEF_NS;
	thread->prompt = switches > 0 && thread->ready_ns - thread->last_ready_ns <=
						 switches * (uint64_t)PROMPT_NS;
	thread->last_count = thread->seen_count;
	thread->last_run_ns = thread->run_ns;
	thread->last_ready_ns = thread->ready_ns;
}

/* Threads that had ended by the last tick: new ones may get their ids. */
static void drop_ended(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->threads.active.count; i++) {
		const struct ss_sampled_thread *thread =
			ss_thread_list_active(&sampler->threads, i);
		if (thread->state == SS_THREAD_GONE)
			ss_switch_stacks_end(&sampler->switches, thread->tid);
	}
}

/* Whether there is nothing to do: if no thread has run, nothing was mapped. The threads
   of a process that has ended do not run either, but the end must be noticed. */
static bool is_idle(const struct ss_sampler *sampler)
{
	const struct ss_thread_list *list = &sampler->threads;
	bool alive = false;

	for (size_t i = 0; i < list->active.count; i++) {
		const struct ss_sampled_thread *thread = ss_thread_list_active(list, i);
		if (thread->due || thread->state == SS_THREAD_GONE)
			return false;
	}
	for (size_t i = 0; i < list->items.count && !alive; i++)
		alive = list->items.items[i].kernel_state != 'Z';
	return alive && sampler->space.capture;
}

struct ss_error *ss_sampler_tick(struct ss_sampler *sampler, struct ss_tick *ret)
{
	*ret = (struct ss_tick){};
	sampler->late = false;
	begin_limit(sampler, ret);
	drop_ended(sampler);
	ss_switch_stacks_sweep(&sampler->switches, ss_now_ns());
	for (size_t i = 0; i < sampler->clocked_count; i++) {
		if (sampler->clocked[i].clock.pid == sampler->target->pid)
			ss_thread_list_expect(&sampler->threads,
					      sampler->clocked[i].clock.tid);
	}
	if (!ss_thread_list_refresh(&sampler->threads))
		return ss_error_no_memory();
	if (sampler->on_cpu)
		exclude_sleepers(sampler);
	if (is_idle(sampler))
		return NULL;
	/* The mappings are read before the threads are captured, and checked
	   afterwards. */
	struct ss_error *error =
		sampler->threads.items.count > 0 ?
			sampler->access->update_if_due(&sampler->space, &ret->change) :
			sampler->access->update(&sampler->space, &ret->change);
	if (error || ret->change == SS_ADDRESS_SPACE_ENDED)
		return error;
	note_change(sampler, ret->change);
	/* Once in a tick: not when it is tried again. */
	for (size_t i = 0; i < sampler->threads.active.count; i++) {
		struct ss_sampled_thread *thread =
			ss_thread_list_active(&sampler->threads, i);
		if (thread->due)
			count_switches(thread);
	}
	return capture_due(sampler, false, ret);
}

struct ss_error *ss_sampler_confirm(struct ss_sampler *sampler,
				    enum ss_mapping_check check, struct ss_tick *tick,
				    bool *stale)
{
	enum ss_address_space_change change;

	*stale = false;
	if (check == SS_MAPPING_SAME)
		return NULL;
	struct ss_error *error = sampler->access->update(&sampler->space, &change);
	if (error)
		/* cppcheck-suppress returnDanglingLifetime; it does not refer to change */
		return error;
	note_change(sampler, change);
	tick->change = SS_MAX(tick->change, change);
	*stale = change != SS_ADDRESS_SPACE_ENDED &&
		 change >= (check == SS_MAPPING_DIFFERS ? SS_ADDRESS_SPACE_MORE :
							  SS_ADDRESS_SPACE_CHANGED);
	return NULL;
}

struct ss_error *ss_sampler_retry(struct ss_sampler *sampler, struct ss_tick *tick)
{
	return capture_due(sampler, true, tick);
}

static pid_t read_inner_tid(struct ss_sampler *sampler, pid_t tid)
{
	struct ss_status status;

	return ss_target_read_task(sampler->target, tid, "status", &sampler->text) &&
			       ss_status_parse(sampler->text.bytes, sampler->text.size,
					       &status) ?
		       status.inner_id :
		       0;
}

void ss_sampler_find_namespace(struct ss_sampler *sampler)
{
	sampler->inner_pid = read_inner_tid(sampler, sampler->target->pid);
}

bool ss_sampler_is_in_namespace(const struct ss_sampler *sampler)
{
	return sampler->inner_pid != sampler->target->pid;
}

pid_t ss_sampler_inner_tid(struct ss_sampler *sampler, struct ss_sampled_thread *thread)
{
	if (!ss_sampler_is_in_namespace(sampler))
		return thread->tid;
	if (thread->inner_tid == 0) {
		thread->inner_tid = read_inner_tid(sampler, thread->tid);
		sampler->has_new_ids |= thread->inner_tid > 0;
	}
	return thread->inner_tid;
}

struct ss_sampled_thread *ss_sampler_find_inner(const struct ss_sampler *sampler,
						pid_t tid)
{
	const struct ss_thread_list *list = &sampler->threads;

	if (!ss_sampler_is_in_namespace(sampler))
		return ss_thread_list_find(list, tid);
	for (size_t i = 0; tid > 0 && i < list->items.count; i++) {
		struct ss_sampled_thread *thread = &list->items.items[i];
		if (thread->inner_tid == tid && thread->state != SS_THREAD_GONE)
			return thread;
	}
	return NULL;
}

void ss_sampler_discard(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->threads.active.count; i++) {
		struct ss_sampled_thread *thread =
			ss_thread_list_active(&sampler->threads, i);
		if (thread->due)
			ss_thread_reject(thread, false);
	}
}

/* Samples of the CPUs ---------------------------------------------------- */

static struct ss_error *take_sample(struct ss_sampler *sampler,
				    const struct ss_on_cpu_sample *sample)
{
	struct ss_capture *capture = sampler->space.capture;
	struct ss_sampled_thread *thread =
		ss_thread_list_take(&sampler->threads, sample->clock.tid);

	if (!thread)
		return ss_error_no_memory();
	name_thread(sampler, thread);
	thread->kernel_state = 'R';
	thread->origin = SS_THREAD_SAMPLED;
	thread->sampled_ns = sample->clock.time_ns;
	ss_area_check_clear(&thread->areas);
	if (thread->excluded)
		return NULL;
	struct ss_capture_thread *slot = ss_vector_push(&capture->threads);
	if (!slot)
		return ss_error_no_memory();
	fill_sample(sampler, sample, thread, slot);
	if (sample->copied)
		slot->turn = ss_gathers_take(&sampler->gathers, sample);
	return NULL;
}

static struct ss_error *read_first_map(struct ss_sampler *sampler, struct ss_tick *tick)
{
	return sampler->space.capture ?
		       NULL :
		       sampler->access->update(&sampler->space, &tick->change);
}

struct ss_error *ss_sampler_take(struct ss_sampler *sampler,
				 const struct ss_on_cpu_sample *samples, size_t count,
				 struct ss_tick *ret)
{
	uint64_t now = ss_now_ns();
	bool sweep = now - sampler->swept_ns >= SS_NS_PER_SECOND;
	*ret = (struct ss_tick){};
	struct ss_error *error = read_first_map(sampler, ret);

	sampler->late = false;
	ss_thread_list_begin(&sampler->threads, sweep);
	if (sweep)
		sampler->swept_ns = now;
	if (error || ret->change == SS_ADDRESS_SPACE_ENDED)
		return error;
	sampler->space.capture->threads.count = 0;
	ss_gathers_begin(&sampler->gathers);
	for (size_t i = 0; i < count && !error; i++) {
		if (samples[i].clock.pid == sampler->target->pid)
			error = take_sample(sampler, &samples[i]);
	}
	return error ? error : finish_capture(sampler, ret);
}

struct ss_error *ss_sampler_follow(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_error *error =
		sampler->access->update_if_due(&sampler->space, &tick->change);

	if (!error)
		note_change(sampler, tick->change);
	return error;
}

bool ss_sampler_move(struct ss_sampler *sampler, const struct ss_capture *from)
{
	struct ss_capture *to = sampler->space.capture;

	if (to == from)
		return true;
	to->threads.count = 0;
	if (!ss_vector_reserve(&to->threads, from->threads.count))
		return false;
	memcpy(to->threads.items, from->threads.items,
	       from->threads.count * sizeof(*from->threads.items));
	to->threads.count = from->threads.count;
	return true;
}

/* The module that is mapped at an address; NULL: none, or the area is none. */
static const struct ss_module_impl *module_at(const struct ss_capture *capture,
					      uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(capture, address);

	return area && area->module >= 0 ? capture->modules.items[area->module] : NULL;
}

bool ss_sampler_was_other(const struct ss_sampler *sampler, uint64_t address)
{
	const struct ss_capture *before = sampler->space.before;
	const struct ss_module_impl *module = before ? module_at(before, address) : NULL;

	return module && module != module_at(sampler->space.capture, address);
}
