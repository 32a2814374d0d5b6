#include "output/task_diff.h"

#include <stdlib.h>
#include <string.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

typedef const struct ss_async_task *task_pointer;

static int compare_tasks(const struct ss_async_task *a, const struct ss_async_task *b)
{
	int order = COMPARE(a->address, b->address);

	return order ? order : strcmp(a->name, b->name);
}

static int by_address(const void *a, const void *b)
{
	return compare_tasks(*(const task_pointer *)a, *(const task_pointer *)b);
}

/* NULL without memory. */
static task_pointer *list(const struct ss_snapshot *snapshot)
{
	const size_t count = ss_snapshot_async_task_count(snapshot);
	task_pointer *tasks = calloc(count + 1, sizeof(task_pointer));

	for (size_t i = 0; tasks && i < count; i++)
		tasks[i] = ss_snapshot_async_task(snapshot, i);
	if (tasks)
		qsort(tasks, count, sizeof(task_pointer), by_address);
	return tasks;
}

struct matching {
	struct ss_task_diff *diff;
	const struct ss_diff *threads;
	const struct ss_snapshot *before;
	const struct ss_snapshot *after;
};

static size_t count_common(const struct matching *matching,
			   const struct ss_task_change *change)
{
	const size_t before = change->before->frame_count;
	const size_t after = change->after->frame_count;
	size_t common = 0;

	while (common < SS_MIN(before, after) &&
	       ss_diff_compare_frames(
		       ss_snapshot_async_task_frame(matching->before, change->before,
						    before - 1 - common),
		       ss_snapshot_async_task_frame(matching->after, change->after,
						    after - 1 - common)) == 0)
		common++;
	return common;
}

static bool is_thread_unchanged(const struct matching *matching, pid_t tid)
{
	for (size_t i = 0; i < matching->threads->count; i++) {
		const struct ss_thread_change *change = &matching->threads->items[i];
		if (change->after && change->after->tid == tid)
			return change->change == SS_UNCHANGED;
	}
	return false;
}

static bool is_unchanged(const struct matching *matching,
			 const struct ss_task_change *change)
{
	const struct ss_async_task *before = change->before;
	const struct ss_async_task *after = change->after;
	const bool was_running = before->status == SS_ASYNC_TASK_RUNNING;
	const bool is_running = after->status == SS_ASYNC_TASK_RUNNING;

	if (change->common < before->frame_count || change->common < after->frame_count ||
	    was_running != is_running)
		return false;
	if (is_running)
		return before->tid == after->tid &&
		       is_thread_unchanged(matching, after->tid);
	return !before->awaited_type || !after->awaited_type ||
	       strcmp(before->awaited_type, after->awaited_type) == 0;
}

static void add(struct matching *matching, const struct ss_async_task *before,
		const struct ss_async_task *after)
{
	struct ss_task_diff *diff = matching->diff;
	struct ss_task_change *change = &diff->items[diff->count++];

	*change = (struct ss_task_change){ .before = before,
					   .after = after,
					   .change = before ? SS_GONE : SS_NEW };
	if (before && after) {
		change->common = count_common(matching, change);
		change->change = is_unchanged(matching, change) ? SS_UNCHANGED : SS_MOVED;
	}
	diff->counts[change->change]++;
}

static void match(struct matching *matching, const task_pointer *before,
		  const task_pointer *after)
{
	const size_t before_count = ss_snapshot_async_task_count(matching->before);
	const size_t after_count = ss_snapshot_async_task_count(matching->after);
	size_t i = 0;
	size_t k = 0;

	while (i < before_count || k < after_count) {
		int order = i == before_count ? 1 :
			    k == after_count  ? -1 :
						compare_tasks(before[i], after[k]);
		add(matching, order <= 0 ? before[i] : NULL,
		    order >= 0 ? after[k] : NULL);
		i += order <= 0;
		k += order >= 0;
	}
}

/* In a snapshot they are ascending by name. */
static int compare_changes(const void *a, const void *b)
{
	const struct ss_task_change *x = a;
	const struct ss_task_change *y = b;
	int order = COMPARE(x->change, y->change);

	if (order || (order = COMPARE(x->after, y->after)))
		return order;
	return COMPARE(x->before, y->before);
}

static const char *find_problem(const struct ss_snapshot *before,
				const struct ss_snapshot *after, bool same_process)
{
	const char *problem = ss_snapshot_async_tasks_problem(after);

	if (!problem)
		problem = ss_snapshot_async_tasks_problem(before);
	const bool known = ss_snapshot_async_tasks_known(before);
	if (problem || (!known && !ss_snapshot_async_tasks_known(after)))
		return problem;
	if (!same_process)
		return "tasks of asyncio are not compared: the snapshots are of two "
		       "processes";
	if (known && ss_snapshot_async_tasks_known(after))
		return NULL;
	return known ? "tasks of asyncio are not compared: they were not read in the "
		       "second snapshot" :
		       "tasks of asyncio are not compared: they were not read in the "
		       "first snapshot";
}

struct ss_task_diff *ss_task_diff_new(const struct ss_diff_input *input,
				      const struct ss_diff *threads)
{
	struct matching matching = { .diff = NULL,
				     .threads = threads,
				     .before = input->before.snapshot,
				     .after = input->after.snapshot };
	_cleanup_(ss_task_diff_cleanup) struct ss_task_diff *diff =
		calloc(1, sizeof(*diff));
	_cleanup_free_ task_pointer *before = list(matching.before);
	_cleanup_free_ task_pointer *after = list(matching.after);

	if (!diff || !before || !after)
		return NULL;
	diff->items = calloc(ss_snapshot_async_task_count(matching.before) +
				     ss_snapshot_async_task_count(matching.after) + 1,
			     sizeof(*diff->items));
	if (!diff->items)
		return NULL;
	diff->problem =
		find_problem(matching.before, matching.after, threads->same_process);
	if (diff->problem)
		return take_ptr(diff);
	matching.diff = diff;
	match(&matching, before, after);
	/* cppcheck-suppress nullPointer; take_ptr() above returns */
	qsort(diff->items, diff->count, sizeof(*diff->items), compare_changes);
	return take_ptr(diff);
}

void ss_task_diff_free(struct ss_task_diff *diff)
{
	if (!diff)
		return;
	free(diff->items);
	free(diff);
}
