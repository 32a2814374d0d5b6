#include "capture/sampler.h"

#include <sched.h>
#include <string.h>

#include "capture/observe.h"
#include "capture/result.h"
#include "capture/sampled.h"

enum { TURNS = 2 }; /* for what was blocked and woke up */

static bool want_all(void *data, pid_t tid, const char *name, char state)
{
	(void)data;
	(void)tid;
	(void)name;
	(void)state;
	return true;
}

void ss_sampler_init(struct ss_sampler *sampler, struct ss_target *target,
		     const struct ss_capture_options *options)
{
	*sampler = (struct ss_sampler){ .target = target, .options = *options };
	sampler->options.mode = SS_MODE_AUTO;
	/* With a filter a freeze does not look for threads that were not listed. */
	if (!options->filter)
		sampler->options.filter = want_all;
	ss_world_init(&sampler->world, target);
	(void)ss_taskstats_open(&sampler->balance.stats); /* or all are asked */
}

void ss_sampler_deinit(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->threads.count; i++)
		ss_sampled_forget(sampler, &sampler->threads.items[i]);
	ss_vector_free(&sampler->threads);
	ss_taskstats_close(&sampler->balance.stats);
	ss_tasks_deinit(&sampler->scan);
	ss_tasks_deinit(&sampler->tasks);
	ss_arena_deinit(&sampler->arena);
	ss_world_deinit(&sampler->world);
	ss_text_free(&sampler->text);
}

/* Whether a thread that was stopped although it was blocked has done nothing since but
   go on with its call. */
static bool has_gone_back(const struct ss_sampled *thread, const struct ss_task *task)
{
	return thread->gone_back != 0 && task->phase == SS_TASK_SEEN && task->watched &&
	       task->run_count == thread->gone_back;
}

static bool is_to_stop(const struct ss_sampled *thread, const struct ss_task *task)
{
	return thread->stop_at != 0 && task->watched && !task->fragile &&
	       (task->run_count == thread->stop_at ||
		task->run_count == thread->way_back);
}

/* The threads that are to be looked at now. */
static bool list_touched(struct ss_sampler *sampler)
{
	struct ss_task_list *tasks = &sampler->tasks;
	size_t count = 0;

	tasks->items.count = 0;
	for (size_t i = 0; i < sampler->threads.count; i++)
		count += sampler->threads.items[i].touched;
	if (tasks->items.capacity <= count && !ss_tasks_reserve(tasks, count + 1))
		return false;
	for (size_t i = 0; i < sampler->threads.count; i++) {
		struct ss_sampled *thread = &sampler->threads.items[i];
		if (!thread->touched)
			continue;
		struct ss_task *task = &tasks->items.items[tasks->items.count++];
		*task = (struct ss_task){ .tid = thread->tid, .state = '?' };
		task->call.number = -1;
		ss_task_read(task, sampler->target, &sampler->options, &sampler->text);
		if (has_gone_back(thread, task)) {
			thread->settled = true;
			thread->run_count = task->run_count;
			tasks->items.count--;
		} else if (is_to_stop(thread, task)) {
			task->watched = false;
		}
		thread->gone_back = 0;
	}
	return true;
}

static bool is_stopped(const struct ss_task *task)
{
	return task->phase == SS_TASK_STOPPED;
}

/* Asks what is mapped where the thread is known to be. pc 0: nothing is proved. */
static void prove(struct ss_sampler *sampler, const struct ss_task *task, uint64_t pc)
{
	struct ss_sampled *thread = ss_sampled_find(sampler, task->tid);
	struct ss_world *world = &sampler->world;
	const struct ss_area *area = ss_capture_find_area(world->capture, pc);

	if (!thread)
		return;
	thread->proved = 0;
	thread->leaf = area && ss_world_holds(world, pc) == SS_WORLD_YES ? area->start :
									   0;
	for (unsigned i = 0; pc != 0 && i < thread->place_count; i++) {
		if (thread->places[i] == thread->leaf ||
		    ss_world_holds(world, thread->places[i]) == SS_WORLD_YES)
			thread->proved |= 1u << i;
	}
}

bool ss_sampler_proved(const struct ss_sampled *thread, const struct ss_area *area)
{
	if (area->start == thread->leaf)
		return true;
	for (unsigned i = 0; i < thread->place_count; i++) {
		if (thread->places[i] == area->start)
			return thread->proved >> i & 1;
	}
	return false;
}

static void add_place(struct ss_sampled *thread, uint64_t start)
{
	for (unsigned i = 0; i < thread->place_count; i++) {
		if (thread->places[i] == start)
			return;
	}
	if (thread->place_count < SS_SAMPLER_PLACES)
		thread->places[thread->place_count++] = start;
}

void ss_sampler_remember(struct ss_sampled *thread, const uint64_t *starts, size_t count)
{
	uint64_t before[SS_SAMPLER_PLACES];
	unsigned before_count = thread->place_count;

	memcpy(before, thread->places, sizeof(before));
	thread->place_count = 0;
	for (size_t i = 0; i < count; i++)
		add_place(thread, starts[i]);
	for (unsigned i = 0; i < before_count; i++)
		add_place(thread, before[i]);
}

/* Of a blocked thread: being released it is put on a CPU once more. */
static void note_way_back(struct ss_sampler *sampler, const struct ss_task *task)
{
	struct ss_sampled *thread = ss_sampled_find(sampler, task->tid);

	if (!thread || !thread->stop_at || task->runs)
		return;
	uint64_t count = ss_sampled_count(thread);
	thread->way_back = count ? count + 1 : 0;
}

static void copy_stopped(void *data)
{
	struct ss_sampler *sampler = data;

	ss_arena_copy(&sampler->arena, sampler->world.capture, &sampler->tasks,
		      &sampler->world.memory, &sampler->options, is_stopped);
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		const struct ss_task *task = &sampler->tasks.items.items[i];
		struct ss_regs regs;
		if (!is_stopped(task))
			continue;
		ss_arch_regs(&task->kernel, &regs);
		prove(sampler, task, ss_regs_pc(&regs));
		note_way_back(sampler, task);
	}
}

/* What was read without a stop, and has not run until after it was asked for. */
static void prove_observed(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		const struct ss_task *task = &sampler->tasks.items.items[i];
		if (task->watched || !task->partial || !task->consistent)
			continue;
		prove(sampler, task, task->call.pc);
		if (ss_task_read_run_count(sampler->target, task->tid, &sampler->text) !=
		    task->run_count)
			prove(sampler, task, 0);
	}
}

static void copy_watched(struct ss_sampler *sampler)
{
	ss_observe_copy(&sampler->arena, sampler->world.capture, &sampler->tasks,
			&sampler->world.memory, &sampler->options, 0);
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		const struct ss_task *task = &sampler->tasks.items.items[i];
		if (task->watched)
			prove(sampler, task, task->call.pc);
	}
}

static void set_scheduler(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	/* Refused without CAP_SYS_NICE: stops are longer then, not wrong. */
	(void)sched_setscheduler(0, policy, &param);
}

/* Stops what is to be stopped. */
static void stop(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_freeze freeze = { .target = sampler->target,
				    .options = &sampler->options,
				    .tasks = &sampler->tasks };
	bool any = false;

	ss_freeze_seize_again(&freeze, false);
	for (size_t i = 0; i < sampler->tasks.items.count; i++)
		any |= sampler->tasks.items.items[i].phase == SS_TASK_SEIZED;
	if (!any)
		return;
	set_scheduler(SCHED_FIFO, 1);
	ss_freeze_each(&freeze, copy_stopped, sampler);
	ss_freeze_finish(&freeze);
	set_scheduler(SCHED_OTHER, 0);
	sampler->took_sigchld |= freeze.took_sigchld;
	tick->stopped_ns += freeze.held_ns;
	tick->stopped_max_ns = SS_MAX(tick->stopped_max_ns, freeze.held_max_ns);
}

/* What was blocked is read first; what woke up meanwhile is stopped like the rest. */
static void take_turns(struct ss_sampler *sampler, struct ss_tick *tick)
{
	for (int turn = 0; turn < TURNS; turn++) {
		stop(sampler, tick);
		copy_watched(sampler);
		if (ss_observe_check(sampler->target, &sampler->tasks) == 0)
			return;
	}
	stop(sampler, tick);
}

/* What became of each thread. */
static void note_tasks(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->tasks.items.count; i++) {
		const struct ss_task *task = &sampler->tasks.items.items[i];
		struct ss_sampled *thread = ss_sampled_find(sampler, task->tid);
		sampler->late |= task->attached;
		if (!thread)
			continue;
		sampler->thread_stops += task->phase == SS_TASK_RELEASED;
		thread->gone |= task->phase == SS_TASK_GONE;
		thread->unwanted = task->phase == SS_TASK_UNWANTED;
		thread->state = task->state;
		memcpy(thread->name, task->comm, sizeof(thread->name));
		if (task->steady)
			thread->run_count = task->run_count;
		thread->settled = task->steady || task->phase == SS_TASK_ZOMBIE ||
				  (task->phase == SS_TASK_WORKER && task->state != 'R') ||
				  (thread->unwanted && task->state != 'R');
	}
}

static bool any_listed(const struct ss_task_list *tasks)
{
	for (size_t i = 0; i < tasks->items.count; i++) {
		enum ss_task_phase phase = tasks->items.items[i].phase;
		if (phase != SS_TASK_GONE && phase != SS_TASK_UNWANTED)
			return true;
	}
	return false;
}

/* Looks at the threads that are touched. */
static struct ss_error *look(struct ss_sampler *sampler, struct ss_tick *tick)
{
	struct ss_task_list *tasks = &sampler->tasks;
	struct ss_capture *capture = sampler->world.capture;

	tick->capture = NULL;
	capture->threads.count = 0;
	for (size_t i = 0; i < sampler->threads.count; i++) {
		struct ss_sampled *thread = &sampler->threads.items[i];
		thread->proved = 0;
		thread->leaf = 0;
		thread->unplaced = false;
	}
	if (!list_touched(sampler))
		return ss_error_no_memory();
	if (!any_listed(tasks)) {
		note_tasks(sampler);
		return NULL;
	}
	struct ss_error *error =
		ss_arena_prepare(&sampler->arena, capture, tasks, &sampler->options);
	if (error)
		return error;
	take_turns(sampler, tick);
	/* A thread that another tracer holds, and so on: it is read as far as that goes.
	 */
	ss_observe_tasks(&sampler->arena, capture, sampler->target, tasks,
			 &sampler->world.memory, &sampler->options);
	prove_observed(sampler);
	note_tasks(sampler);
	error = ss_result_fill_threads(capture, tasks);
	if (!error && capture->threads.count > 0)
		tick->capture = capture;
	return error;
}

/* Whether there is nothing to do: nobody has run, so nothing is mapped anew either. The
   threads of a process that has ended do not run any more, but it is not still. */
static bool is_still(const struct ss_sampler *sampler)
{
	bool alive = false;

	for (size_t i = 0; i < sampler->threads.count; i++) {
		const struct ss_sampled *thread = &sampler->threads.items[i];
		if (thread->touched || thread->gone)
			return false;
		alive |= thread->state != 'Z';
	}
	return alive && sampler->world.capture;
}

struct ss_error *ss_sampler_tick(struct ss_sampler *sampler, struct ss_tick *ret)
{
	*ret = (struct ss_tick){};
	sampler->late = false;
	if (!ss_sampled_refresh(sampler))
		return ss_error_no_memory();
	if (is_still(sampler))
		return NULL;
	/* What is mapped is known before the threads are looked at, and asked after. */
	struct ss_error *error = sampler->threads.count > 0 ?
					 ss_world_glance(&sampler->world, &ret->change) :
					 ss_world_look(&sampler->world, &ret->change);
	if (error || ret->change == SS_WORLD_ENDED)
		return error;
	return look(sampler, ret);
}

struct ss_error *ss_sampler_confirm(struct ss_sampler *sampler,
				    enum ss_world_answer answer, struct ss_tick *tick,
				    bool *again)
{
	enum ss_world_change change;

	*again = false;
	if (answer == SS_WORLD_YES)
		return NULL;
	struct ss_error *error = ss_world_look(&sampler->world, &change);
	if (error)
		return error;
	tick->change = SS_MAX(tick->change, change);
	*again = change != SS_WORLD_ENDED &&
		 change >= (answer == SS_WORLD_NO ? SS_WORLD_MORE : SS_WORLD_CHANGED);
	return NULL;
}

struct ss_error *ss_sampler_again(struct ss_sampler *sampler, struct ss_tick *tick)
{
	return look(sampler, tick);
}
