/*
 * Tasks of asyncio in groups of equal stacks that wait for the same; of several snapshots, in how
 * many of them; of two, what became of them.
 */
#include <stdlib.h>
#include <string.h>

#include "report/diff.h"
#include "report/escape.h"
#include "report/group.h"
#include "report/merged.h"
#include "report/quantity.h"
#include "report/style.h"
#include "report/text.h"
#include "report/text_frames.h"

enum { NAMES_MAX = 12 }; /* of a group without -v */

static void write_name(const struct ss_task *task, FILE *out)
{
	ss_escape_write(task->name, NULL, out);
}

static void write_left_out(size_t count, FILE *out)
{
	(void)fputs_unlocked(" and ", out);
	ss_quantity_write_count(count, out);
	(void)fputs_unlocked(" more (-v lists them)", out);
}

static void write_names(const struct ss_task_group *group, bool verbose, FILE *out)
{
	size_t shown = verbose ? group->count : SS_MIN(group->count, (size_t)NAMES_MAX);

	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		write_name(group->members[i], out);
	}
	if (shown < group->count)
		write_left_out(group->count - shown, out);
}

/* "waiting for Future", "waiting for tasks Task-2, Task-3", "waiting for other tasks" */
static void write_wait(const struct ss_snapshot *snapshot,
		       const struct ss_task_group *group, bool verbose, FILE *out)
{
	const struct ss_task *task = *group->members;
	const size_t shown = verbose ? task->awaited_count :
				       SS_MIN(task->awaited_count, (size_t)NAMES_MAX);

	if (task->awaited_count == 0) {
		(void)fputs_unlocked("waiting for ", out);
		ss_escape_write(task->wait_reason ? task->wait_reason : "a future", NULL,
				out);
		return;
	}
	if (group->count > 1) {
		(void)fputs_unlocked("waiting for other tasks", out);
		return;
	}
	(void)fputs_unlocked(task->awaited_count == 1 ? "waiting for task " :
							"waiting for tasks ",
			     out);
	for (size_t i = 0; i < shown; i++) {
		if (i)
			(void)fputs_unlocked(", ", out);
		write_name(ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, task->awaited[i]),
			   out);
	}
	if (shown < task->awaited_count)
		write_left_out(task->awaited_count - shown, out);
}

static void write_state(const struct ss_snapshot *snapshot,
			const struct ss_task_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *first = *group->members;

	if (first->status == SS_STATUS_WAITING)
		write_wait(snapshot, group, options->verbose, out);
	else
		(void)fputs_unlocked(ss_task_status_name(first->status), out);
	if (first->tid)
		(void)fprintf(out,
			      first->status == SS_STATUS_RUNNING ?
				      ", on thread %d" :
				      ", event loop of thread %d",
			      first->tid);
}

/* Frames are written as those of a thread. */
static struct ss_task stack_of(const struct ss_task *task)
{
	return (struct ss_task){ .stack_id = task->stack_id,
				 .frame_count = task->frame_count };
}

/* ", was ready", ", was waiting for Future": what it did in another snapshot, if that differs. */
static void write_was(const struct ss_task *was, const struct ss_task *is, FILE *out)
{
	const char *type = was->wait_reason ? was->wait_reason : "";

	if (was->status == is->status &&
	    strcmp(type, is->wait_reason ? is->wait_reason : "") == 0)
		return;
	(void)fprintf(out, ", was %s", ss_task_status_name(was->status));
	if (*type) {
		(void)fputs_unlocked(" for ", out);
		ss_escape_write(type, NULL, out);
	}
}

/* After what precedes it in its line. was: the first member in another snapshot; or NULL. */
static void write_members(const struct ss_snapshot *snapshot,
			  const struct ss_task_group *group, const struct ss_task *was,
			  const struct ss_format_options *options, FILE *out)
{
	ss_quantity_write_things(group->count, "task", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(", ", out);
	write_state(snapshot, group, options, out);
	if (was)
		write_was(was, *group->members, out);
	write_names(group, options->verbose, out);
	(void)fputc_unlocked('\n', out);
}

static void write_stack(const struct ss_snapshot *snapshot,
			const struct ss_task_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_task stack = stack_of(*group->members);

	ss_text_write_frames(snapshot, &stack, options, out);
}

static void write_group(const struct ss_snapshot *snapshot,
			const struct ss_task_group *group,
			const struct ss_format_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	write_members(snapshot, group, NULL, options, out);
	write_stack(snapshot, group, options, out);
}

static void write_left_groups(size_t count, size_t groups, FILE *out)
{
	if (groups == 0)
		return;
	(void)fputc_unlocked('\n', out);
	ss_quantity_write_things(count, "more task", out);
	(void)fputs_unlocked(" in ", out);
	ss_quantity_write_things(groups, "group", out);
	(void)fprintf(out, "; --tasks=all shows %s\n", count == 1 ? "it" : "them");
}

static size_t groups_to_show(const struct ss_format_options *options)
{
	return options->verbose ? SIZE_MAX : options->task_groups;
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
	const size_t count = ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO);
	const size_t changed =
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->changed;

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
	write_more(ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->unread,
		   count + changed > 0, "could not be read", out);
	(void)fputc_unlocked('\n', out);
}

static void write_groups(const struct ss_snapshot *snapshot,
			 const struct ss_task_grouping *grouping,
			 const struct ss_format_options *options, FILE *out)
{
	const size_t shown = SS_MIN(grouping->count, groups_to_show(options));
	size_t left = 0;

	for (size_t i = 0; i < shown; i++)
		write_group(snapshot, &grouping->groups[i], options, out);
	for (size_t i = shown; i < grouping->count; i++)
		left += grouping->groups[i].count;
	write_left_groups(left, grouping->count - shown, out);
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
	_cleanup_(ss_task_grouping_cleanup) struct ss_task_grouping *grouping =
		ss_task_grouping_new(snapshot, !options->no_group);

	if (!grouping)
		return ss_error_no_memory();
	write_problem(ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->problem,
		      options, out);
	if (ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO) +
		    ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->changed +
		    ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->unread ==
	    0)
		return NULL;
	write_summary(snapshot, grouping->count, options, out);
	write_groups(snapshot, grouping, options, out);
	return NULL;
}

/* Several snapshots ---------------------------------------------------------- */

static void write_up_to(size_t count, const char *what, FILE *out)
{
	if (count == 0)
		return;
	(void)fputs_unlocked("; up to ", out);
	ss_quantity_write_count(count, out);
	(void)fprintf(out, " more %s", what);
}

/* "25 tasks of asyncio, 20 in the first snapshot; 14 groups" */
static void write_merged_summary(const struct ss_snapshots *snapshots,
				 const struct ss_merged_tasks *merged,
				 const struct ss_format_options *options, FILE *out)
{
	const size_t first = ss_snapshot_task_count(snapshots->items[0], SS_TASK_ASYNCIO);
	const size_t last = ss_snapshot_task_count(snapshots->items[snapshots->count - 1],
						   SS_TASK_ASYNCIO);

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_quantity_write_things(last, "task", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(" of asyncio", out);
	if (first != last) {
		(void)fputs_unlocked(", ", out);
		ss_quantity_write_count(first, out);
		(void)fputs_unlocked(" in the first snapshot", out);
	}
	(void)fputs_unlocked("; ", out);
	ss_quantity_write_things(merged->count, "group", out);
	write_up_to(merged->changed, "ran while they were read", out);
	write_up_to(merged->unread, "could not be read", out);
	(void)fputc_unlocked('\n', out);
}

static void write_merged_group(const struct ss_snapshots *snapshots,
			       const struct ss_merged_task *item,
			       const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[item->presence.last];
	const struct ss_task_group group = { .members = item->members.items,
					     .count = item->members.count };

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_text_write_presence(&item->presence, snapshots->count, out);
	write_members(last, &group, NULL, options, out);
	write_stack(last, &group, options, out);
}

struct ss_error *ss_text_write_merged_tasks(const struct ss_snapshots *snapshots,
					    const struct ss_format_options *options,
					    FILE *out)
{
	_cleanup_(ss_merged_tasks_cleanup) struct ss_merged_tasks *merged =
		ss_merged_tasks_new(snapshots);
	const size_t most = groups_to_show(options);
	size_t left = 0;

	if (!merged)
		return ss_error_no_memory();
	write_problem(merged->problem, options, out);
	if (merged->count + merged->changed + merged->unread == 0)
		return NULL;
	write_merged_summary(snapshots, merged, options, out);
	for (size_t i = 0; i < merged->count; i++) {
		if (i < most)
			write_merged_group(snapshots, &merged->items[i], options, out);
		else
			left += merged->items[i].members.count;
	}
	write_left_groups(left, merged->count - SS_MIN(merged->count, most), out);
	return NULL;
}

/* Two snapshots -------------------------------------------------------------- */

struct comparison {
	const struct ss_snapshot *before;
	const struct ss_snapshot *after;
	/* By task: the number of its group, from 1 on */
	const uint32_t *groups_before;
	const uint32_t *groups_after;
	const struct ss_task_diff *diff;
	const struct ss_format_options *options;
	FILE *out;
};

/* "25 tasks of asyncio: 20 unchanged, 3 moved, 2 new, 1 gone" */
static void write_counts(const struct comparison *comparison)
{
	const struct ss_format_options *options = comparison->options;
	FILE *out = comparison->out;

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_quantity_write_things(
		ss_snapshot_task_count(comparison->after, SS_TASK_ASYNCIO), "task", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(" of asyncio", out);
	for (size_t i = 0; i < SS_CHANGE_COUNT; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		ss_quantity_write_count(comparison->diff->counts[i], out);
		(void)fprintf(out, " %s", ss_change_name((enum ss_change)i));
	}
	(void)fputc_unlocked('\n', out);
}

/* affected: how many of the other snapshot may look as they do because of that. */
static void write_missing(const struct ss_snapshot *snapshot, const char *where,
			  size_t affected, const char *consequence, FILE *out)
{
	const size_t count =
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->changed +
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->unread;

	if (count == 0)
		return;
	ss_quantity_write_things(count, "task", out);
	(void)fprintf(out, " of asyncio could not be read in the %s snapshot%s\n", where,
		      affected ? consequence : "");
}

/* The number of the group of each task. NULL without memory. */
static uint32_t *number_groups(const struct ss_snapshot *snapshot)
{
	_cleanup_(ss_task_grouping_cleanup) struct ss_task_grouping *grouping =
		ss_task_grouping_new(snapshot, true);
	uint32_t *numbers = calloc(ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO) + 1,
				   sizeof(*numbers));

	for (size_t i = 0; grouping && numbers && i < grouping->count; i++) {
		const struct ss_task_group *group = &grouping->groups[i];
		for (size_t k = 0; k < group->count; k++)
			numbers[group->members[k] -
				ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, 0)] =
				(uint32_t)i + 1;
	}
	if (grouping)
		return numbers;
	free(numbers);
	return NULL;
}

static uint64_t number_of(const uint32_t *numbers, const struct ss_snapshot *snapshot,
			  const struct ss_task *task)
{
	return task ? numbers[task - ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, 0)] : 0;
}

/* Changes from one group to one group are one. */
static struct ss_bundles *make_bundles(const struct comparison *comparison,
				       enum ss_change change)
{
	const struct ss_task_diff *diff = comparison->diff;
	_cleanup_free_ size_t *items = calloc(diff->count + 1, sizeof(*items));
	_cleanup_free_ struct ss_bundle_key *keys =
		calloc(diff->count + 1, sizeof(*keys));
	size_t count = 0;

	if (!items || !keys)
		return NULL;
	for (size_t i = 0; i < diff->count; i++) {
		const struct ss_task_change *item = &diff->items[i];
		if (item->change != change)
			continue;
		keys[count].stack = number_of(comparison->groups_before,
					      comparison->before, item->before) |
				    number_of(comparison->groups_after, comparison->after,
					      item->after)
					    << 32;
		items[count++] = i;
	}
	return ss_bundles_new(items, keys, count);
}

static void write_move(const struct comparison *comparison,
		       const struct ss_task_change *change)
{
	const struct ss_task before = stack_of(change->before);
	const struct ss_task after = stack_of(change->after);
	const struct ss_text_place was = { comparison->before, &before };
	const struct ss_text_place is = { comparison->after, &after };

	ss_text_write_move(&was, &is, change->common, comparison->options,
			   comparison->out);
}

static struct ss_error *write_bundle(const struct comparison *comparison,
				     const struct ss_bundle *bundle)
{
	const struct ss_task_change *first = &comparison->diff->items[bundle->items[0]];
	const struct ss_snapshot *snapshot = first->after ? comparison->after :
							    comparison->before;
	_cleanup_free_ const struct ss_task **members =
		calloc(bundle->count, sizeof(const struct ss_task *));
	FILE *out = comparison->out;

	if (!members)
		return ss_error_no_memory();
	for (size_t i = 0; i < bundle->count; i++) {
		const struct ss_task_change *item =
			&comparison->diff->items[bundle->items[i]];
		members[i] = item->after ? item->after : item->before;
	}
	const struct ss_task_group group = { .members = members, .count = bundle->count };
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, comparison->options->color, out);
	(void)fprintf(out, "%s: ", ss_change_name(first->change));
	write_members(snapshot, &group, first->before, comparison->options, out);
	/* One that runs has all but one coroutine on its thread. */
	if (first->change == SS_MOVED &&
	    first->common < SS_MAX(first->before->frame_count, first->after->frame_count))
		write_move(comparison, first);
	else
		write_stack(snapshot, &group, comparison->options, out);
	return NULL;
}

static struct ss_error *write_changes(const struct comparison *comparison,
				      enum ss_change change)
{
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		make_bundles(comparison, change);
	const size_t most = groups_to_show(comparison->options);
	struct ss_error *error = bundles ? NULL : ss_error_no_memory();
	size_t left = 0;

	if (error)
		return error;
	for (size_t i = 0; i < bundles->count && !error; i++) {
		if (i < most)
			error = write_bundle(comparison, &bundles->items[i]);
		else
			left += bundles->items[i].count;
	}
	write_left_groups(left, bundles->count - SS_MIN(bundles->count, most),
			  comparison->out);
	return error;
}

struct ss_error *ss_text_write_task_diff(const struct ss_diff_input *input,
					 const struct ss_diff *threads,
					 const struct ss_format_options *options,
					 FILE *out)
{
	_cleanup_(ss_task_diff_cleanup) struct ss_task_diff *diff =
		ss_task_diff_new(input, threads);
	_cleanup_free_ uint32_t *before = number_groups(input->before.snapshot);
	_cleanup_free_ uint32_t *after = number_groups(input->after.snapshot);
	const struct comparison comparison = { .before = input->before.snapshot,
					       .after = input->after.snapshot,
					       .groups_before = before,
					       .groups_after = after,
					       .diff = diff,
					       .options = options,
					       .out = out };
	struct ss_error *error = diff && before && after ? NULL : ss_error_no_memory();

	if (error || options->task_groups == 0)
		return error;
	write_problem(diff->problem, options, out);
	if (diff->problem)
		return NULL;
	if (diff->count > 0)
		write_counts(&comparison);
	write_missing(comparison.before, "first", diff->counts[SS_NEW],
		      ": some that are new may be older", out);
	write_missing(comparison.after, "second", diff->counts[SS_GONE],
		      ": some that are gone may still exist", out);
	for (size_t i = 0; i < SS_CHANGE_COUNT && !error; i++)
		error = write_changes(&comparison, (enum ss_change)i);
	return error;
}

/* Cycles --------------------------------------------------------------------- */

/* Each cycle is written at its first member. */
static bool is_first(const struct ss_snapshot *snapshot, size_t index)
{
	const struct ss_task *task = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, index);

	if (!task->in_cycle)
		return false;
	for (size_t at = task->cycle_next; at != index;
	     at = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, at)->cycle_next) {
		if (at < index)
			return false;
	}
	return true;
}

static void write_cycle(const struct ss_snapshot *snapshot, size_t index, FILE *out)
{
	const struct ss_task *task = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, index);
	size_t at = task->cycle_next;

	write_name(task, out);
	while (at != index) {
		const struct ss_task *next =
			ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, at);
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
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO); i++) {
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
