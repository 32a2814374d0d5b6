/*
 * Tasks of runtimes in groups that do the same in the same calls; of several snapshots, in how many of
 * them; of two, what became of them. Goroutines on a thread are listed with the thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff.h"
#include "report/escape.h"
#include "report/group.h"
#include "report/merged.h"
#include "report/names.h"
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
	(void)fprintf(out, " and %s more (-v lists them)", ss_quantity_count(count).text);
}

static void write_names(const struct ss_group *group, bool verbose, FILE *out)
{
	size_t shown = verbose ? group->count : SS_MIN(group->count, (size_t)NAMES_MAX);

	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		write_name(group->members[i], out);
	}
	if (shown < group->count)
		write_left_out(group->count - shown, out);
	(void)fputc_unlocked('\n', out);
}

/* ", for about 12 min" */
static void write_since(const struct ss_group *group, FILE *out)
{
	uint64_t shortest = UINT64_MAX;
	uint64_t longest = 0;

	for (size_t i = 0; i < group->count; i++) {
		shortest = SS_MIN(shortest, group->members[i]->waiting_ns);
		longest = SS_MAX(longest, group->members[i]->waiting_ns);
	}
	if (longest == 0)
		return;
	(void)fprintf(out, "%s%s",
		      shortest == longest ? ", for about " : ", for up to about ",
		      ss_quantity_time(longest).text);
}

/* " of libfirst.so": which of several runtimes of Go runs it. */
static void write_runtime(const struct ss_task *task, bool several, FILE *out)
{
	const char *path = several ? task->runtime : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!path)
		return;
	(void)fputs_unlocked(" of ", out);
	ss_escape_write(slash ? slash + 1 : path, NULL, out);
}

/* "waiting for Future", "waiting for tasks Task-2, Task-3", "waiting for other tasks" */
static void write_awaited(const struct ss_snapshot *snapshot,
			  const struct ss_group *group, bool verbose, FILE *out)
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
		write_name(ss_snapshot_task(snapshot, task->kind, task->awaited[i]), out);
	}
	if (shown < task->awaited_count)
		write_left_out(task->awaited_count - shown, out);
}

static void write_state(const struct ss_snapshot *snapshot, const struct ss_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *first = *group->members;
	const bool waits = first->status == SS_STATUS_WAITING;

	if (first->kind == SS_TASK_ASYNCIO && waits)
		write_awaited(snapshot, group, options->verbose, out);
	else
		ss_escape_write(ss_task_words(first), NULL, out);
	if (first->lock_function) {
		(void)fputs_unlocked(", waits for an application lock: ", out);
		ss_escape_write(first->lock_function, NULL, out);
	}
	if (first->changed)
		(void)fputs_unlocked(", ran while it was read", out);
	if (first->tid && !first->on_thread)
		(void)fprintf(out,
			      first->kind == SS_TASK_ASYNCIO &&
					      first->status != SS_STATUS_RUNNING ?
				      ", event loop of thread %d" :
				      ", on thread %d",
			      first->tid);
}

/* ", was runnable", ", was waiting for Future": what it did in another snapshot, if that differs. */
static void write_was(const struct ss_task *was, const struct ss_task *is, FILE *out)
{
	const char *reason = was->wait_reason ? was->wait_reason : "";

	if (was->status == is->status &&
	    strcmp(reason, is->wait_reason ? is->wait_reason : "") == 0)
		return;
	(void)fprintf(out, ", was %s", ss_task_status_name(was->status));
	if (*reason) {
		(void)fputs_unlocked(" for ", out);
		ss_escape_write(reason, NULL, out);
	}
}

/* How the tasks of a kind are written. */
struct text {
	enum ss_task_kind kind;
	bool several; /* goroutines of several runtimes of Go */
	const struct ss_format_options *options;
	FILE *out;
};

static size_t groups_to_show(const struct text *text)
{
	return text->options->verbose ? SIZE_MAX : text->options->groups[text->kind];
}

/* After what precedes it in its line. was: the first member in another snapshot; or NULL. */
static void write_members(const struct text *text, const struct ss_snapshot *snapshot,
			  const struct ss_group *group, const struct ss_task *was)
{
	const struct ss_task *first = *group->members;
	FILE *out = text->out;

	(void)fputs_unlocked(
		ss_quantity_things(group->count, ss_task_noun(text->kind)).text, out);
	ss_style_write(SS_STYLE_NONE, text->options->color, out);
	write_runtime(first, text->several, out);
	(void)fputs_unlocked(", ", out);
	write_state(snapshot, group, text->options, out);
	write_since(group, out);
	if (was)
		write_was(was, first, out);
	if (text->kind == SS_TASK_ASYNCIO)
		write_names(group, text->options->verbose, out);
	else
		ss_text_write_list(group->members, group->count, text->options, out);
}

static void begin_group(const struct text *text)
{
	(void)fputc_unlocked('\n', text->out);
	ss_style_write(SS_STYLE_STRONG, text->options->color, text->out);
}

static void write_stack(const struct text *text, const struct ss_snapshot *snapshot,
			const struct ss_group *group)
{
	const struct ss_task *first = *group->members;

	if (first->frame_count > 0 || text->kind == SS_TASK_ASYNCIO)
		ss_text_write_frames(snapshot, first, text->options, text->out);
}

static void write_group(const struct text *text, const struct ss_snapshot *snapshot,
			const struct ss_group *group)
{
	begin_group(text);
	write_members(text, snapshot, group, NULL);
	write_stack(text, snapshot, group);
}

void ss_text_write_thread_goroutine(const struct ss_grouping *goroutines,
				    const struct ss_snapshot *snapshot,
				    const struct ss_group *group,
				    const struct ss_format_options *options, FILE *out)
{
	for (size_t i = 0; i < group->count; i++) {
		pid_t tid = group->members[i]->tid;
		const struct ss_task *goroutine = ss_grouping_find(goroutines, tid);
		if (!goroutine)
			continue;
		const struct ss_group only = { .members = &goroutine, .count = 1 };
		(void)fprintf(out, "  goroutine %" PRIu64, goroutine->id);
		write_runtime(goroutine, goroutines->several, out);
		if (group->count > 1)
			(void)fprintf(out, " on thread %d", tid);
		(void)fputs_unlocked(", ", out);
		write_state(snapshot, &only, options, out);
		write_since(&only, out);
		(void)fputc_unlocked('\n', out);
	}
}

/* What is not written: tasks and groups. */
struct left_out {
	size_t count;
	size_t groups;
};

static void leave_out(struct left_out *left, size_t count)
{
	left->count += count;
	left->groups++;
}

/* "12 more goroutines in 3 groups; --goroutines=all shows them" */
static void write_left(const struct text *text, const struct left_out *left)
{
	FILE *out = text->out;

	if (left->groups == 0)
		return;
	(void)fprintf(out, "\n%s more %s%s in %s; --%ss=all shows %s\n",
		      ss_quantity_count(left->count).text, ss_task_noun(text->kind),
		      left->count == 1 ? "" : "s",
		      ss_quantity_things(left->groups, "group").text,
		      ss_task_noun(text->kind), left->count == 1 ? "it" : "them");
}

/* "; 3 more could not be read"; any: others are before them in the line. */
static void write_more(size_t count, bool any, const char *prefix, const char *what,
		       FILE *out)
{
	if (count == 0)
		return;
	(void)fprintf(out, any ? "; %s" : "tasks of asyncio: ", prefix);
	(void)fprintf(out, "%s%s %s", ss_quantity_count(count).text, any ? " more" : "",
		      what);
}

/* "25 tasks of asyncio" */
static void write_count(const struct text *text, size_t count)
{
	ss_style_print(SS_STYLE_STRONG, text->options->color, text->out, "%s",
		       ss_quantity_things(count, ss_task_noun(text->kind)).text);
	if (text->kind == SS_TASK_ASYNCIO)
		(void)fputs_unlocked(" of asyncio", text->out);
}

static void write_summary(const struct text *text,
			  const struct ss_task_coverage *coverage, size_t count,
			  const struct ss_grouping *grouping)
{
	size_t on_threads = grouping->count - grouping->own_count;
	FILE *out = text->out;

	(void)fputc_unlocked('\n', out);
	if (count)
		write_count(text, count);
	if (on_threads)
		(void)fprintf(out, ", %s%s", ss_quantity_count(on_threads).text,
			      on_threads == 1 ? " on a thread" : " on threads");
	if (grouping->own_count)
		(void)fprintf(out, "%s%s", on_threads ? ", the others in " : " in ",
			      ss_quantity_things(grouping->own_count, "group").text);
	write_more(coverage->changed, count > 0, "",
		   coverage->changed == 1 ? "ran while it was read" :
					    "ran while they were read",
		   out);
	write_more(coverage->unread, count + coverage->changed > 0, "",
		   "could not be read", out);
	(void)fputc_unlocked('\n', out);
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

void ss_text_write_tasks(const struct ss_snapshot *snapshot,
			 const struct ss_grouping *grouping,
			 const struct ss_format_options *options, FILE *out)
{
	const struct ss_task_coverage *coverage =
		ss_snapshot_task_coverage(snapshot, grouping->kind);
	const size_t count = ss_snapshot_task_count(snapshot, grouping->kind);
	const struct text text = { .kind = grouping->kind,
				   .several = grouping->several,
				   .options = options,
				   .out = out };
	const size_t shown = SS_MIN(grouping->own_count, groups_to_show(&text));
	struct left_out left = {};

	write_problem(coverage->problem, options, out);
	if (count + coverage->changed + coverage->unread == 0)
		return;
	write_summary(&text, coverage, count, grouping);
	for (size_t i = 0; i < shown; i++)
		write_group(&text, snapshot, &grouping->groups[i]);
	for (size_t i = shown; i < grouping->own_count; i++)
		leave_out(&left, grouping->groups[i].count);
	write_left(&text, &left);
}

void ss_text_write_blocked_tasks(const struct ss_snapshot *snapshot,
				 const struct ss_grouping *grouping,
				 const struct ss_format_options *options, FILE *out)
{
	const struct text text = { .kind = grouping->kind,
				   .several = grouping->several,
				   .options = options,
				   .out = out };
	size_t left = groups_to_show(&text);
	size_t count = 0;

	for (size_t i = 0; i < grouping->own_count; i++) {
		if ((*grouping->groups[i].members)->blocked)
			count += grouping->groups[i].count;
	}
	if (count == 0)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_WARN, options->color, out, "%s",
		       ss_quantity_things(count, ss_task_noun(text.kind)).text);
	(void)fputs_unlocked(" made no progress, waiting for a lock of the application\n",
			     out);
	for (size_t i = 0; i < grouping->own_count && left > 0; i++) {
		if (!(*grouping->groups[i].members)->blocked)
			continue;
		write_group(&text, snapshot, &grouping->groups[i]);
		left--;
	}
}

/* Several snapshots ---------------------------------------------------------- */

/* "grown from 20, of which 18 remain: ", "as many as before, of which 3 remain: " */
static void write_change(const struct ss_merged_group *group, FILE *out)
{
	const size_t before = group->presence.before;
	const size_t after = group->presence.after;
	bool as_many = before && before == after && group->same < before;

	(void)fputs_unlocked(as_many ? "as many as before" : ss_merged_change(group),
			     out);
	if (before && after) {
		if (before != after)
			(void)fprintf(out, " from %s", ss_quantity_count(before).text);
		if (group->same < before)
			(void)fprintf(out, ", of which %s%s",
				      ss_quantity_count(group->same).text,
				      group->same == 1 ? " remains" : " remain");
	}
	(void)fputs_unlocked(": ", out);
}

/* "25 tasks of asyncio, 20 in the first snapshot; 14 groups" */
static void write_merged_summary(const struct text *text,
				 const struct ss_snapshots *snapshots,
				 const struct ss_merged *merged)
{
	size_t before =
		ss_snapshot_task_count(snapshots->items[merged->first_read], text->kind);
	size_t after =
		ss_snapshot_task_count(snapshots->items[merged->last_read], text->kind);
	size_t missing = snapshots->count - merged->read;
	FILE *out = text->out;

	(void)fputc_unlocked('\n', out);
	write_count(text, after);
	if (before != after)
		(void)fprintf(out, ", %s in the first snapshot",
			      ss_quantity_count(before).text);
	(void)fprintf(out, "%s%s",
		      text->kind == SS_TASK_GOROUTINE ? "; those on no thread: " : "; ",
		      ss_quantity_things(merged->own_count, "group").text);
	write_more(merged->changed, true, "up to ", "ran while they were read", out);
	write_more(merged->unread, true, "up to ", "could not be read", out);
	if (missing)
		(void)fprintf(out, "; not read in %s of %s",
			      ss_quantity_count(missing).text,
			      ss_quantity_things(snapshots->count, "snapshot").text);
	(void)fputc_unlocked('\n', out);
}

static void write_merged_group(const struct text *text,
			       const struct ss_snapshots *snapshots, size_t read,
			       const struct ss_merged_group *item, bool changes)
{
	const struct ss_snapshot *last = snapshots->items[item->presence.last];
	const struct ss_group group = { .members = item->tasks.items,
					.count = item->tasks.count };

	begin_group(text);
	if (changes)
		write_change(item, text->out);
	else
		ss_text_write_presence(&item->presence, read, text->out);
	write_members(text, last, &group, NULL);
	write_stack(text, last, &group);
}

/* Groups of a comparison that have not changed are only counted. */
static bool is_unchanged(const struct text *text, const struct ss_merged_group *group)
{
	return group->presence.before == group->presence.after && !text->options->all &&
	       groups_to_show(text) != SIZE_MAX;
}

static void write_unchanged(const struct text *text, const struct left_out *left)
{
	FILE *out = text->out;

	if (left->groups == 0)
		return;
	begin_group(text);
	(void)fprintf(out, "unchanged: %s",
		      ss_quantity_things(left->count, ss_task_noun(text->kind)).text);
	ss_style_write(SS_STYLE_NONE, text->options->color, out);
	(void)fprintf(out, " in %s; -a shows %s\n",
		      ss_quantity_things(left->groups, "group").text,
		      left->count == 1 ? "it" : "them");
}

struct ss_error *ss_text_write_merged_tasks(const struct ss_snapshots *snapshots,
					    enum ss_task_kind kind, bool changes,
					    const struct ss_format_options *options,
					    FILE *out)
{
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(snapshots, kind);
	struct left_out unchanged = {};
	struct left_out left = {};
	size_t shown = 0;

	if (!merged)
		return ss_error_no_memory();
	const struct text text = {
		.kind = kind, .several = merged->several, .options = options, .out = out
	};
	const char *denial = changes ? ss_merged_denial(merged) : NULL;
	if (options->groups[kind] == 0)
		return NULL;
	write_problem(merged->problem, options, out);
	write_problem(denial, options, out);
	if (denial || merged->read == 0 ||
	    merged->count + merged->changed + merged->unread == 0)
		return NULL;
	write_merged_summary(&text, snapshots, merged);
	for (size_t i = 0; i < merged->own_count; i++) {
		const struct ss_merged_group *group = &merged->items[i];
		if (changes && is_unchanged(&text, group))
			leave_out(&unchanged, group->tasks.count);
		else if (shown++ < groups_to_show(&text))
			write_merged_group(&text, snapshots, merged->read, group,
					   changes);
		else
			leave_out(&left, group->tasks.count);
	}
	write_left(&text, &left);
	write_unchanged(&text, &unchanged);
	return NULL;
}

/* Two snapshots -------------------------------------------------------------- */

struct comparison {
	struct ss_text_changes changes;
	struct text text;
};

/* "25 tasks of asyncio: 20 unchanged, 3 moved, 2 new, 1 gone" */
static void write_counts(const struct comparison *comparison)
{
	const struct text *text = &comparison->text;

	(void)fputc_unlocked('\n', text->out);
	write_count(text, ss_snapshot_task_count(
				  comparison->changes.input->after.snapshot, text->kind));
	for (size_t i = 0; i < SS_CHANGE_COUNT; i++)
		(void)fprintf(text->out, "%s%s %s", i ? ", " : ": ",
			      ss_quantity_count(comparison->changes.diff->counts[i]).text,
			      ss_change_name((enum ss_change)i));
	(void)fputc_unlocked('\n', text->out);
}

/* affected: how many of the other snapshot may look as they do because of that. */
static void write_missing(const struct ss_snapshot *snapshot, const char *where,
			  size_t affected, const char *consequence, FILE *out)
{
	const struct ss_task_coverage *coverage =
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO);
	const size_t count = coverage->changed + coverage->unread;

	if (count == 0)
		return;
	(void)fprintf(out, "%s of asyncio could not be read in the %s snapshot%s\n",
		      ss_quantity_things(count, "task").text, where,
		      affected ? consequence : "");
}

static unsigned part_of(const struct ss_task_change *change)
{
	return change->change;
}

static struct ss_error *write_bundle(const struct comparison *comparison,
				     const struct ss_bundle *bundle)
{
	const struct ss_task_change *first =
		&comparison->changes.diff->items[bundle->items[0]];
	const struct ss_diff_input *input = comparison->changes.input;
	const struct ss_snapshot *snapshot = first->after ? input->after.snapshot :
							    input->before.snapshot;
	const struct text *text = &comparison->text;
	_cleanup_free_ const struct ss_task **members =
		calloc(bundle->count, sizeof(const struct ss_task *));

	if (!members)
		return ss_error_no_memory();
	for (size_t i = 0; i < bundle->count; i++)
		members[i] = ss_change_task(
			&comparison->changes.diff->items[bundle->items[i]]);
	const struct ss_group group = { .members = members, .count = bundle->count };
	begin_group(text);
	(void)fprintf(text->out, "%s: ", ss_change_name(first->change));
	write_members(text, snapshot, &group, first->before);
	/* One that runs has all but one coroutine on its thread. */
	if (first->change == SS_MOVED &&
	    first->common < SS_MAX(first->before->frame_count, first->after->frame_count))
		ss_text_write_move(input, first, text->options, text->out);
	else
		write_stack(text, snapshot, &group);
	return NULL;
}

static struct ss_error *write_changes(const struct comparison *comparison,
				      enum ss_change change)
{
	size_t found = 0;
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		ss_text_bundle_changes(&comparison->changes, part_of, change, &found);
	const size_t most = groups_to_show(&comparison->text);
	struct ss_error *error = bundles ? NULL : ss_error_no_memory();
	struct left_out left = {};

	if (error)
		return error;
	for (size_t i = 0; i < bundles->count && !error; i++) {
		if (i < most)
			error = write_bundle(comparison, &bundles->items[i]);
		else
			leave_out(&left, bundles->items[i].count);
	}
	write_left(&comparison->text, &left);
	return error;
}

struct ss_error *ss_text_write_task_diff(const struct ss_diff_input *input,
					 const struct ss_diff *threads,
					 const struct ss_format_options *options,
					 FILE *out)
{
	const enum ss_task_kind kind = SS_TASK_ASYNCIO;
	const struct ss_snapshot *first = input->before.snapshot;
	const struct ss_snapshot *second = input->after.snapshot;
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
		ss_diff_new(input, kind, threads);
	_cleanup_free_ size_t *before = ss_grouping_numbers(first, kind);
	_cleanup_free_ size_t *after = ss_grouping_numbers(second, kind);
	const struct comparison comparison = {
		.changes = { input, diff, before, after },
		.text = { .kind = kind, .options = options, .out = out },
	};
	struct ss_error *error = diff && before && after ? NULL : ss_error_no_memory();

	if (error || options->groups[kind] == 0)
		return error;
	write_problem(diff->problem, options, out);
	if (diff->problem)
		return NULL;
	if (diff->count > 0)
		write_counts(&comparison);
	write_missing(first, "first", diff->counts[SS_NEW],
		      ": some that are new may be older", out);
	write_missing(second, "second", diff->counts[SS_GONE],
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
		ss_style_print(SS_STYLE_WARN, options->color, out, "deadlock of tasks");
		(void)fputs_unlocked(": ", out);
		write_cycle(snapshot, i, out);
	}
}
