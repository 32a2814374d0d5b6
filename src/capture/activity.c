#include "base/clock.h"
#include "data/facts.h"

#include "base/error.h"
#include "base/search.h"
#include "capture/tasks.h"
#include "data/pipeline.h"

SS_DEFINE_CLEANUP(struct ss_activity, activity, ss_activity_free)

static void tasks_cleanup(struct ss_task_list *tasks)
{
	ss_tasks_deinit(tasks);
}

/* False: the thread is gone. */
static bool read_thread(const struct ss_target *target, pid_t tid, struct ss_buffer *text,
			struct ss_thread_activity *ret)
{
	struct ss_schedstat schedstat;
	struct ss_status status;
	struct ss_stat stat;

	*ret = (struct ss_thread_activity){ .tid = tid };
	/* The counter is read first: if it is the same later, the thread has slept since. */
	if (ss_target_read_task(target, tid, "schedstat", text) &&
	    ss_schedstat_parse(text->bytes, text->size, &schedstat)) {
		ret->counted = schedstat.run_count > 0;
		ret->run_ns = schedstat.run_ns;
		ret->ready_ns = schedstat.wait_ns;
		ret->runs = schedstat.run_count;
	}
	if (!ss_target_read_stat(target, tid, text, &stat))
		return false;
	ret->state = stat.state;
	if (ss_target_read_status(target, tid, text, &status)) {
		ret->voluntary = status.voluntary_switches;
		ret->forced = status.forced_switches;
	}
	return true;
}

SS_DEFINE_COMPARE(compare_tids, struct ss_thread_activity, tid)

static struct ss_error *read_threads(const struct ss_target *target,
				     struct ss_activity *activity)
{
	__attribute__((cleanup(tasks_cleanup))) struct ss_task_list tasks = {};
	_cleanup_buffer_ struct ss_buffer text = {};

	if (!ss_tasks_reserve(&tasks, ss_tasks_count_now(target) * 2 + 64))
		return ss_error_no_memory();
	(void)ss_tasks_scan(&tasks, target);
	if (!ss_vector_reserve(&activity->threads, tasks.items.count))
		return ss_error_no_memory();
	activity->time_ns = ss_now_ns();
	for (size_t i = 0; i < tasks.items.count; i++) {
		struct ss_thread_activity *thread =
			&activity->threads.items[activity->threads.count];
		if (read_thread(target, tasks.items.items[i].tid, &text, thread))
			activity->threads.count++;
	}
	if (activity->threads.count == 0)
		return ss_target_missing(target);
	qsort(activity->threads.items, activity->threads.count,
	      sizeof(*activity->threads.items), compare_tids);
	return NULL;
}

struct ss_error *ss_activity_take(const struct ss_target *target,
				  struct ss_activity **ret)
{
	_cleanup_(activity_cleanup) struct ss_activity *activity =
		calloc(1, sizeof(*activity));

	if (!activity)
		return ss_error_no_memory();
	struct ss_error *error = ss_target_check(target);
	if (!error)
		error = read_threads(target, activity);
	if (error)
		return error;
	*ret = take_ptr(activity);
	return NULL;
}

void ss_activity_free(struct ss_activity *activity)
{
	if (!activity)
		return;
	ss_vector_free(&activity->threads);
	free(activity);
}
