#include "capture/sampler.h"

#include <string.h>
#include <time.h>

#include "capture/observe.h"
#include "capture/result.h"
#include "capture/sampled.h"

enum {
	TURNS = 2,    /* of a freeze, for what was blocked and woke up */
	ATTEMPTS = 3, /* while modules come and go */
	FILES_MAX =
		60000, /* kept open; what is beyond, or refused, is opened each time */
};

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
	ss_placement_prepare(&sampler->placement);
	ss_placement_restore(&sampler->placement);
}

void ss_sampler_deinit(struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->threads.count; i++)
		ss_sampled_forget(sampler, &sampler->threads.items[i]);
	ss_vector_free(&sampler->threads);
	ss_tasks_deinit(&sampler->scan);
	ss_world_deinit(&sampler->world);
	ss_text_free(&sampler->text);
}

/* All that one look at some threads needs. */
struct look {
	struct ss_sampler *sampler;
	struct ss_capture *capture;
	struct ss_task_list tasks;
	struct ss_arena arena;
	struct ss_freeze freeze;
	uint64_t stopped_ns;
};

static void look_deinit(struct look *look)
{
	ss_tasks_deinit(&look->tasks);
	ss_arena_deinit(&look->arena);
	ss_capture_free(look->capture);
}

static bool add_tasks(struct look *look)
{
	struct ss_sampler *sampler = look->sampler;
	size_t count = 0;

	for (size_t i = 0; i < sampler->threads.count; i++)
		count += sampler->threads.items[i].touched;
	if (!ss_tasks_reserve(&look->tasks, count + 1)) /* never NULL */
		return false;
	for (size_t i = 0; i < sampler->threads.count; i++) {
		const struct ss_sampled *thread = &sampler->threads.items[i];
		if (!thread->touched)
			continue;
		struct ss_task *task =
			&look->tasks.items.items[look->tasks.items.count++];
		*task = (struct ss_task){ .tid = thread->tid, .state = '?' };
		task->call.number = -1;
		ss_task_read(task, sampler->target, &sampler->options, &sampler->text);
	}
	return true;
}

static bool is_running(const struct ss_task *task)
{
	return task->phase == SS_TASK_STOPPED && task->runs;
}

static bool is_sleeping(const struct ss_task *task)
{
	return task->phase == SS_TASK_STOPPED && !task->runs;
}

static void copy(struct look *look, ss_task_predicate *wanted)
{
	ss_arena_copy(&look->arena, look->capture, &look->tasks,
		      &look->sampler->world.memory, &look->sampler->options, wanted);
}

static void copy_watched(struct look *look)
{
	ss_observe_copy(&look->arena, look->capture, &look->tasks,
			&look->sampler->world.memory, &look->sampler->options, 0);
}

/* Stops what is to be stopped. False: that is nothing. */
static bool stop(struct look *look)
{
	bool any = false;

	ss_freeze_seize_again(&look->freeze, false);
	for (size_t i = 0; i < look->tasks.items.count; i++)
		any |= look->tasks.items.items[i].phase == SS_TASK_SEIZED;
	if (!any)
		return false;
	ss_placement_enter(&look->sampler->placement, &look->tasks,
			   look->sampler->target);
	ss_freeze_stop(&look->freeze);
	do {
		copy(look, is_running);
		ss_freeze_release(&look->freeze, true);
		copy(look, is_sleeping);
		ss_freeze_release(&look->freeze, false);
	} while (ss_freeze_stop_late(&look->freeze));
	ss_freeze_finish(&look->freeze);
	ss_placement_leave();
	ss_placement_restore(&look->sampler->placement);
	look->stopped_ns += look->freeze.end_ns - look->freeze.begin_ns;
	return true;
}

/* What was blocked is read first; what woke up meanwhile is stopped like the rest. */
static void take_turns(struct look *look)
{
	for (int turn = 0; turn < TURNS; turn++) {
		(void)stop(look);
		copy_watched(look);
		if (ss_observe_check(look->sampler->target, &look->tasks) == 0)
			return;
	}
	(void)stop(look);
}

/* A thread that another tracer holds, and so on: it is read as far as that goes. */
static void observe_rest(struct look *look)
{
	ss_observe_tasks(&look->arena, look->capture, look->sampler->target, &look->tasks,
			 &look->sampler->world.memory, &look->sampler->options);
}

/* What became of each thread. */
static void note_tasks(struct look *look)
{
	for (size_t i = 0; i < look->tasks.items.count; i++) {
		const struct ss_task *task = &look->tasks.items.items[i];
		struct ss_sampled *thread = ss_sampled_find(look->sampler, task->tid);
		if (!thread)
			continue;
		look->sampler->late |= task->phase == SS_TASK_INTERRUPTED;
		look->sampler->thread_stops += task->phase == SS_TASK_RELEASED;
		thread->gone |= task->phase == SS_TASK_GONE;
		thread->unwanted = task->phase == SS_TASK_UNWANTED;
		thread->state = task->state;
		memcpy(thread->name, task->comm, sizeof(thread->name));
		if (task->steady)
			thread->run_count = task->run_count;
		thread->settled = task->steady || task->phase == SS_TASK_ZOMBIE ||
				  (thread->unwanted && task->state != 'R');
	}
	look->sampler->took_sigchld |= look->freeze.took_sigchld;
}

static bool any_listed(const struct look *look)
{
	for (size_t i = 0; i < look->tasks.items.count; i++) {
		enum ss_task_phase phase = look->tasks.items.items[i].phase;
		if (phase != SS_TASK_GONE && phase != SS_TASK_UNWANTED)
			return true;
	}
	return false;
}

/* Areas and modules as they were. *again: modules went or came in their place. */
static struct ss_error *settle(struct look *look, enum ss_world_change *ret, bool *again)
{
	enum ss_world_change change;
	struct ss_error *error = ss_world_look(&look->sampler->world, &change);

	*again = false;
	if (error || change == SS_WORLD_SAME)
		return error;
	*ret = SS_MAX(*ret, change);
	*again = change == SS_WORLD_CHANGED || change == SS_WORLD_REPLACED;
	if (change == SS_WORLD_ENDED)
		return NULL;
	for (size_t i = 0; i < look->capture->modules.count; i++)
		ss_module_unref(look->capture->modules.items[i]);
	look->capture->modules.count = look->capture->areas.count = 0;
	return ss_world_fill(&look->sampler->world, look->capture);
}

static struct ss_error *look_once(struct ss_sampler *sampler, struct ss_tick *tick,
				  bool *again)
{
	__attribute__((cleanup(look_deinit))) struct look look = {
		.sampler = sampler,
		.capture = ss_capture_new(),
	};
	struct timespec ts;

	look.freeze = (struct ss_freeze){ .target = sampler->target,
					  .options = &sampler->options,
					  .tasks = &look.tasks };
	if (!look.capture || !add_tasks(&look))
		return ss_error_no_memory();
	if (!any_listed(&look)) {
		note_tasks(&look);
		return NULL;
	}
	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail: the clock exists */
	look.capture->process.time_ns =
		(uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	struct ss_error *error = ss_world_fill(&sampler->world, look.capture);
	if (!error)
		error = ss_arena_prepare(&look.arena, look.capture, &look.tasks,
					 &sampler->options);
	if (error)
		return error;
	take_turns(&look);
	observe_rest(&look);
	error = settle(&look, &tick->change, again);
	if (error)
		return error;
	note_tasks(&look);
	tick->stopped_ns += look.stopped_ns;
	error = ss_result_fill(look.capture, sampler->target, &look.tasks, &look.freeze,
			       &sampler->options, &look.arena);
	if (error) { /* none of them is left */
		ss_error_free(error);
		return NULL;
	}
	ss_capture_free(tick->capture);
	tick->capture = take_ptr(look.capture);
	return NULL;
}

/* Whether there is nothing to do: nobody has run, so nothing is mapped anew either. */
static bool is_still(const struct ss_sampler *sampler)
{
	for (size_t i = 0; i < sampler->threads.count; i++) {
		if (sampler->threads.items[i].touched || sampler->threads.items[i].gone)
			return false;
	}
	return sampler->threads.count > 0 && sampler->world.capture;
}

static struct ss_error *look_at_threads(struct ss_sampler *sampler, struct ss_tick *ret)
{
	bool again = true;

	for (int i = 0; i < ATTEMPTS && again; i++) {
		again = false;
		struct ss_error *error = look_once(sampler, ret, &again);
		if (error || sampler->late)
			return error;
	}
	ret->unplaced = again;
	return NULL;
}

struct ss_error *ss_sampler_tick(struct ss_sampler *sampler, struct ss_tick *ret)
{
	*ret = (struct ss_tick){};
	sampler->late = false;
	if (!ss_sampled_refresh(sampler))
		return ss_error_no_memory();
	if (is_still(sampler))
		return NULL;
	/* What is mapped is known before the threads are looked at, and compared after.
	 */
	struct ss_error *error = ss_world_look(&sampler->world, &ret->change);
	if (error || ret->change == SS_WORLD_ENDED)
		return error;
	return look_at_threads(sampler, ret);
}
