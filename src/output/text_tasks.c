/*
 * Tasks of asyncio in groups of equal stacks that wait for the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "output/escape.h"
#include "output/quantity.h"
#include "output/style.h"
#include "output/text.h"

enum { NAMES_MAX = 12 }; /* of a group without -v */

/* Tasks with one description. Those that wait for tasks are each on their own. */
struct group {
	const struct ss_async_task *const *members;
	size_t count;
};

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_kinds(const struct ss_async_task *a, const struct ss_async_task *b)
{
	const char *x = a->awaited_type ? a->awaited_type : "";
	const char *y = b->awaited_type ? b->awaited_type : "";
	int order = COMPARE(a->status, b->status);

	if (order == 0)
		order = COMPARE(a->stack_id, b->stack_id);
	if (order == 0)
		order = COMPARE(a->tid, b->tid);
	if (order == 0)
		order = strcmp(x, y);
	return order ? order : COMPARE(a->awaited_count > 0, b->awaited_count > 0);
}

/* They are in an array that is ascending by name. */
static int compare_members(const void *a, const void *b)
{
	const struct ss_async_task *x = *(const struct ss_async_task *const *)a;
	const struct ss_async_task *y = *(const struct ss_async_task *const *)b;
	int order = compare_kinds(x, y);

	return order ? order : COMPARE(x, y);
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a;
	const struct group *y = b;
	int order = COMPARE(y->count, x->count);

	return order ? order : COMPARE(*x->members, *y->members);
}

static size_t make_groups(const struct ss_async_task **members, size_t count, bool merge,
			  struct group *ret)
{
	size_t groups = 0;

	for (size_t i = 0; i < count; i++) {
		struct group *last = groups ? &ret[groups - 1] : NULL;
		if (merge && last && members[i]->awaited_count == 0 &&
		    compare_kinds(*last->members, members[i]) == 0)
			last->count++;
		else
			ret[groups++] = (struct group){ &members[i], 1 };
	}
	return groups;
}

static void write_name(const struct ss_async_task *task, FILE *out)
{
	ss_escape_write(task->name, NULL, out);
}

static void write_left_out(size_t count, FILE *out)
{
	(void)fputs_unlocked(" and ", out);
	ss_quantity_write_count(count, out);
	(void)fputs_unlocked(" more (-v lists them)", out);
}

static void write_names(const struct group *group, bool verbose, FILE *out)
{
	size_t shown = verbose ? group->count : SS_MIN(group->count, (size_t)NAMES_MAX);

	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		write_name(group->members[i], out);
	}
	if (shown < group->count)
		write_left_out(group->count - shown, out);
}

/* "waiting for Future", "waiting for tasks Task-2, Task-3" */
static void write_wait(const struct ss_snapshot *snapshot,
		       const struct ss_async_task *task, bool verbose, FILE *out)
{
	const size_t shown = verbose ? task->awaited_count :
				       SS_MIN(task->awaited_count, (size_t)NAMES_MAX);

	if (task->awaited_count == 0) {
		(void)fputs_unlocked("waiting for ", out);
		ss_escape_write(task->awaited_type ? task->awaited_type : "a future",
				NULL, out);
		return;
	}
	(void)fputs_unlocked(task->awaited_count == 1 ? "waiting for task " :
							"waiting for tasks ",
			     out);
	for (size_t i = 0; i < shown; i++) {
		if (i)
			(void)fputs_unlocked(", ", out);
		write_name(ss_snapshot_async_task(snapshot, task->awaited[i]), out);
	}
	if (shown < task->awaited_count)
		write_left_out(task->awaited_count - shown, out);
}

static void write_group(const struct ss_snapshot *snapshot, const struct group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_async_task *first = *group->members;
	/* Frames are written as those of a thread. */
	const struct ss_thread stack = { .stack_id = first->stack_id,
					 .frame_count = first->frame_count };

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_quantity_write_things(group->count, "task", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(", ", out);
	if (first->status == SS_ASYNC_TASK_WAITING)
		write_wait(snapshot, first, options->verbose, out);
	else
		(void)fputs_unlocked(ss_async_task_status_name(first->status), out);
	if (first->tid)
		(void)fprintf(out,
			      first->status == SS_ASYNC_TASK_RUNNING ?
				      ", on thread %d" :
				      ", event loop of thread %d",
			      first->tid);
	write_names(group, options->verbose, out);
	(void)fputc_unlocked('\n', out);
	ss_text_write_frames(snapshot, &stack, options, out);
}

/* any: others are before them in the line. */
static void write_more(size_t count, bool any, const char *what, FILE *out)
{
	if (count == 0)
		return;
	(void)fputs_unlocked(any ? "; " : "tasks of asyncio: ", out);
	ss_quantity_write_count(count, out);
	(void)fprintf(out, "%s %s", any ? " more" : "", what);
}

static void write_summary(const struct ss_snapshot *snapshot, size_t groups,
			  const struct ss_format_options *options, FILE *out)
{
	const size_t count = ss_snapshot_async_task_count(snapshot);
	const size_t changed = ss_snapshot_async_tasks_changed(snapshot);

	(void)fputc_unlocked('\n', out);
	if (count > 0) {
		ss_style_write(SS_STYLE_STRONG, options->color, out);
		ss_quantity_write_things(count, "task", out);
		ss_style_write(SS_STYLE_NONE, options->color, out);
		(void)fputs_unlocked(" of asyncio in ", out);
		ss_quantity_write_things(groups, "group", out);
	}
	write_more(changed, count > 0,
		   changed == 1 ? "ran while it was read" : "ran while they were read",
		   out);
	write_more(ss_snapshot_async_tasks_unread(snapshot), count + changed > 0,
		   "could not be read", out);
	(void)fputc_unlocked('\n', out);
}

static void write_groups(const struct ss_snapshot *snapshot, const struct group *groups,
			 size_t count, const struct ss_format_options *options, FILE *out)
{
	const size_t shown = options->verbose ? count :
						SS_MIN(count, options->task_groups);
	size_t left = 0;

	for (size_t i = 0; i < shown; i++)
		write_group(snapshot, &groups[i], options, out);
	for (size_t i = shown; i < count; i++)
		left += groups[i].count;
	if (left == 0)
		return;
	(void)fputc_unlocked('\n', out);
	ss_quantity_write_things(left, "more task", out);
	(void)fputs_unlocked(" in ", out);
	ss_quantity_write_things(count - shown, "group", out);
	(void)fprintf(out, "; --tasks=all shows %s\n", left == 1 ? "it" : "them");
}

static void write_problem(const char *problem, const struct ss_format_options *options,
			  FILE *out)
{
	if (!problem)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_WARN, options->color, out);
	ss_escape_write(problem, NULL, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputc_unlocked('\n', out);
}

struct ss_error *ss_text_write_tasks(const struct ss_snapshot *snapshot,
				     const struct ss_format_options *options, FILE *out)
{
	const size_t count = ss_snapshot_async_task_count(snapshot);
	_cleanup_free_ const struct ss_async_task **members =
		calloc(count + 1, sizeof(const struct ss_async_task *));
	_cleanup_free_ struct group *groups = calloc(count + 1, sizeof(*groups));

	if (!members || !groups)
		return ss_error_no_memory();
	write_problem(ss_snapshot_async_tasks_problem(snapshot), options, out);
	if (count + ss_snapshot_async_tasks_changed(snapshot) +
		    ss_snapshot_async_tasks_unread(snapshot) ==
	    0)
		return NULL;
	for (size_t i = 0; i < count; i++)
		members[i] = ss_snapshot_async_task(snapshot, i);
	qsort(members, count, sizeof(const struct ss_async_task *), compare_members);
	const size_t group_count =
		make_groups(members, count, !options->no_group, groups);
	if (group_count > 1)
		qsort(groups, group_count, sizeof(*groups), compare_groups);
	write_summary(snapshot, group_count, options, out);
	write_groups(snapshot, groups, group_count, options, out);
	return NULL;
}

/* Each cycle is written at its first member. */
static bool is_first(const struct ss_snapshot *snapshot, size_t index)
{
	const struct ss_async_task *task = ss_snapshot_async_task(snapshot, index);

	if (!task->in_cycle)
		return false;
	for (size_t at = task->cycle_next; at != index;
	     at = ss_snapshot_async_task(snapshot, at)->cycle_next) {
		if (at < index)
			return false;
	}
	return true;
}

static void write_cycle(const struct ss_snapshot *snapshot, size_t index, FILE *out)
{
	const struct ss_async_task *task = ss_snapshot_async_task(snapshot, index);
	size_t at = task->cycle_next;

	write_name(task, out);
	while (at != index) {
		const struct ss_async_task *next = ss_snapshot_async_task(snapshot, at);
		(void)fputs_unlocked(" waits for ", out);
		write_name(next, out);
		(void)fputs_unlocked(", which", out);
		at = next->cycle_next;
	}
	(void)fputs_unlocked(" waits for ", out);
	write_name(task, out);
	(void)fputc_unlocked('\n', out);
}

void ss_text_write_task_cycles(const struct ss_snapshot *snapshot,
			       const struct ss_format_options *options, FILE *out)
{
	for (size_t i = 0; i < ss_snapshot_async_task_count(snapshot); i++) {
		if (!is_first(snapshot, i))
			continue;
		(void)fputc_unlocked('\n', out);
		ss_style_write(SS_STYLE_WARN, options->color, out);
		(void)fputs_unlocked("deadlock of tasks", out);
		ss_style_write(SS_STYLE_NONE, options->color, out);
		(void)fputs_unlocked(": ", out);
		write_cycle(snapshot, i, out);
	}
}
