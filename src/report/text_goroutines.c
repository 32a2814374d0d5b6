/*
 * Goroutines in groups of equal stacks; those on a thread are listed with the thread.
 */
#include <inttypes.h>
#include <string.h>

#include "report/escape.h"
#include "report/merged.h"
#include "report/quantity.h"
#include "report/style.h"
#include "report/text.h"

enum { ITEMS_MAX = 12 }; /* ids and ranges of a group without -v */

/* "7-100006,100010" */
static void write_ids(const struct ss_goroutine_group *group, bool verbose, FILE *out)
{
	size_t items = 0;
	size_t at = 0;

	while (at < group->count && (verbose || items < ITEMS_MAX)) {
		size_t end = at + 1;
		while (end < group->count &&
		       group->members[end]->id == group->members[end - 1]->id + 1)
			end++;
		(void)fprintf(out, "%c%" PRIu64, items++ ? ',' : ' ',
			      group->members[at]->id);
		if (end - at > 1)
			(void)fprintf(out, "%c%" PRIu64, end - at > 2 ? '-' : ',',
				      group->members[end - 1]->id);
		at = end;
	}
	if (at == group->count)
		return;
	(void)fputs_unlocked(" and ", out);
	ss_quantity_write_count(group->count - at, out);
	(void)fputs_unlocked(" more (-v lists them)", out);
}

/* "for about 12 min" */
static void write_since(const struct ss_goroutine_group *group, FILE *out)
{
	uint64_t shortest = UINT64_MAX;
	uint64_t longest = 0;

	for (size_t i = 0; i < group->count; i++) {
		shortest = SS_MIN(shortest, group->members[i]->waiting_ns);
		longest = SS_MAX(longest, group->members[i]->waiting_ns);
	}
	if (longest == 0)
		return;
	(void)fputs_unlocked(shortest == longest ? ", for about " : ", for up to about ",
			     out);
	ss_quantity_write_time(longest, out);
}

/* " of libfirst.so": which of several runtimes of Go runs it. */
static void write_runtime(const struct ss_task *goroutine, bool several, FILE *out)
{
	const char *path = several ? goroutine->runtime : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!path)
		return;
	(void)fputs_unlocked(" of ", out);
	ss_escape_write(slash ? slash + 1 : path, NULL, out);
}

static void write_state(const struct ss_task *goroutine, FILE *out)
{
	ss_escape_write(ss_goroutine_words(goroutine), NULL, out);
	if (goroutine->lock_function) {
		(void)fputs_unlocked(", waits for an application lock: ", out);
		ss_escape_write(goroutine->lock_function, NULL, out);
	}
	if (goroutine->changed)
		(void)fputs_unlocked(", ran while it was read", out);
	if (goroutine->tid && !goroutine->on_thread)
		(void)fprintf(out, ", on thread %d", goroutine->tid);
}

/* After what precedes it in its line. */
static void write_members(const struct ss_snapshot *snapshot,
			  const struct ss_goroutine_group *group, bool several,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *first = *group->members;
	/* Frames are written as those of a thread. */
	const struct ss_task stack = {
		.stack_id = first->stack_id,
		.frame_count = first->frame_count,
		.end = first->end,
		.reason = first->reason,
	};

	ss_quantity_write_things(group->count, "goroutine", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	write_runtime(first, several, out);
	(void)fputs_unlocked(", ", out);
	write_state(first, out);
	write_since(group, out);
	(void)fputc_unlocked(':', out);
	write_ids(group, options->verbose, out);
	(void)fputc_unlocked('\n', out);
	if (first->frame_count > 0)
		ss_text_write_frames(snapshot, &stack, options, out);
}

static void write_group(const struct ss_snapshot *snapshot,
			const struct ss_goroutine_group *group, bool several,
			const struct ss_format_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	write_members(snapshot, group, several, options, out);
}

void ss_text_write_thread_goroutine(const struct ss_goroutine_grouping *goroutines,
				    const struct ss_snapshot *snapshot,
				    const struct ss_group *group, FILE *out)
{
	for (size_t i = 0; i < group->count; i++) {
		pid_t tid = ss_snapshot_task(snapshot, SS_TASK_THREAD, group->members[i])
				    ->tid;
		const struct ss_task *goroutine =
			ss_goroutine_grouping_find(goroutines, tid);
		if (!goroutine)
			continue;
		const struct ss_goroutine_group only = { .members = &goroutine,
							 .count = 1 };
		(void)fprintf(out, "  goroutine %" PRIu64, goroutine->id);
		write_runtime(goroutine, goroutines->several, out);
		if (group->count > 1)
			(void)fprintf(out, " on thread %d", tid);
		(void)fputs_unlocked(", ", out);
		write_state(goroutine, out);
		write_since(&only, out);
		(void)fputc_unlocked('\n', out);
	}
}

static void write_left_out(size_t count, size_t groups, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_quantity_write_things(count, "more goroutine", out);
	(void)fputs_unlocked(" in ", out);
	ss_quantity_write_things(groups, "group", out);
	(void)fprintf(out, "; --goroutines=all shows %s\n", count == 1 ? "it" : "them");
}

static void write_unread(size_t unread, const char *prefix, FILE *out)
{
	if (unread == 0)
		return;
	(void)fprintf(out, "; %s", prefix);
	ss_quantity_write_count(unread, out);
	(void)fputs_unlocked(" more could not be read", out);
}

static void write_summary(const struct ss_snapshot *snapshot,
			  const struct ss_goroutine_grouping *goroutines,
			  const struct ss_format_options *options, FILE *out)
{
	size_t count = ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE);
	size_t on_threads = goroutines->count - goroutines->own_count;

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_quantity_write_things(count, "goroutine", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (on_threads) {
		(void)fputs_unlocked(", ", out);
		ss_quantity_write_count(on_threads, out);
		(void)fputs_unlocked(on_threads == 1 ? " on a thread" : " on threads",
				     out);
	}
	if (goroutines->own_count) {
		(void)fputs_unlocked(on_threads ? ", the others in " : " in ", out);
		ss_quantity_write_things(goroutines->own_count, "group", out);
	}
	write_unread(ss_snapshot_task_coverage(snapshot, SS_TASK_GOROUTINE)->unread, "",
		     out);
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

void ss_text_write_goroutines(const struct ss_snapshot *snapshot,
			      const struct ss_goroutine_grouping *goroutines,
			      const struct ss_format_options *options, FILE *out)
{
	size_t shown = options->verbose ? SIZE_MAX : options->goroutine_groups;

	write_problem(ss_snapshot_task_coverage(snapshot, SS_TASK_GOROUTINE)->problem,
		      options, out);
	if (goroutines->count == 0)
		return;
	write_summary(snapshot, goroutines, options, out);
	shown = SS_MIN(shown, goroutines->own_count);
	for (size_t i = 0; i < shown; i++)
		write_group(snapshot, &goroutines->groups[i], goroutines->several,
			    options, out);
	size_t left = 0;
	for (size_t i = shown; i < goroutines->own_count; i++)
		left += goroutines->groups[i].count;
	if (shown < goroutines->own_count)
		write_left_out(left, goroutines->own_count - shown, out);
}

/* Several snapshots ---------------------------------------------------------- */

/* "grown from 20, of which 18 remain: ", "as many as before, of which 3 remain: " */
static void write_change(const struct ss_merged_goroutine *group, FILE *out)
{
	const size_t before = group->presence.before;
	const size_t after = group->presence.after;
	bool as_many = before && before == after && group->same < before;

	(void)fputs_unlocked(
		as_many ? "as many as before" : ss_merged_goroutine_change(group), out);
	if (before && after) {
		if (before != after) {
			(void)fputs_unlocked(" from ", out);
			ss_quantity_write_count(before, out);
		}
		if (group->same < before) {
			(void)fputs_unlocked(", of which ", out);
			ss_quantity_write_count(group->same, out);
			(void)fputs_unlocked(group->same == 1 ? " remains" : " remain",
					     out);
		}
	}
	(void)fputs_unlocked(": ", out);
}

/* "25 goroutines, 20 before; 14 groups" */
static void write_merged_summary(const struct ss_snapshots *snapshots,
				 const struct ss_merged_goroutines *merged,
				 const struct ss_format_options *options, FILE *out)
{
	size_t before = ss_snapshot_task_count(snapshots->items[merged->first_read],
					       SS_TASK_GOROUTINE);
	size_t after = ss_snapshot_task_count(snapshots->items[merged->last_read],
					      SS_TASK_GOROUTINE);
	size_t missing = snapshots->count - merged->read;

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_quantity_write_things(after, "goroutine", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (before != after) {
		(void)fputs_unlocked(", ", out);
		ss_quantity_write_count(before, out);
		(void)fputs_unlocked(" in the first snapshot", out);
	}
	(void)fputs_unlocked("; those on no thread: ", out);
	ss_quantity_write_things(merged->own_count, "group", out);
	write_unread(merged->unread, "up to ", out);
	if (missing) {
		(void)fputs_unlocked("; not read in ", out);
		ss_quantity_write_count(missing, out);
		(void)fputs_unlocked(" of ", out);
		ss_quantity_write_things(snapshots->count, "snapshot", out);
	}
	(void)fputc_unlocked('\n', out);
}

static void write_merged_group(const struct ss_snapshots *snapshots, size_t read,
			       const struct ss_merged_goroutine *group, bool changes,
			       bool several, const struct ss_format_options *options,
			       FILE *out)
{
	const struct ss_goroutine_group members = { .members = group->members.items,
						    .count = group->members.count };

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	if (changes)
		write_change(group, out);
	else
		ss_text_write_presence(&group->presence, read, out);
	write_members(snapshots->items[group->presence.last], &members, several, options,
		      out);
}

/* What is not written: goroutines and groups. */
struct left_out {
	size_t count;
	size_t groups;
};

static void leave_out(struct left_out *left, const struct ss_merged_goroutine *group)
{
	left->count += group->members.count;
	left->groups++;
}

/* Groups of a comparison that have not changed are only counted. */
static bool is_unchanged(const struct ss_merged_goroutine *group,
			 const struct ss_format_options *options)
{
	return group->presence.before == group->presence.after && !options->verbose &&
	       !options->all && options->goroutine_groups != SIZE_MAX;
}

static void write_unchanged(const struct left_out *left,
			    const struct ss_format_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fputs_unlocked("unchanged: ", out);
	ss_quantity_write_things(left->count, "goroutine", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(" in ", out);
	ss_quantity_write_things(left->groups, "group", out);
	(void)fprintf(out, "; -a shows %s\n", left->count == 1 ? "it" : "them");
}

struct ss_error *ss_text_write_merged_goroutines(const struct ss_snapshots *snapshots,
						 bool changes,
						 const struct ss_format_options *options,
						 FILE *out)
{
	_cleanup_(ss_merged_goroutines_cleanup) struct ss_merged_goroutines *merged =
		ss_merged_goroutines_new(snapshots);
	size_t most = options->verbose ? SIZE_MAX : options->goroutine_groups;
	struct left_out unchanged = {};
	struct left_out left = {};
	size_t shown = 0;

	if (!merged)
		return ss_error_no_memory();
	const char *denial = changes ? ss_merged_goroutines_denial(merged) : NULL;
	if (options->goroutine_groups == 0)
		return NULL;
	write_problem(merged->problem, options, out);
	write_problem(denial, options, out);
	if (denial || merged->read == 0)
		return NULL;
	write_merged_summary(snapshots, merged, options, out);
	for (size_t i = 0; i < merged->own_count; i++) {
		const struct ss_merged_goroutine *group = &merged->items[i];
		if (changes && is_unchanged(group, options))
			leave_out(&unchanged, group);
		else if (shown++ < most)
			write_merged_group(snapshots, merged->read, group, changes,
					   merged->several, options, out);
		else
			leave_out(&left, group);
	}
	if (left.groups)
		write_left_out(left.count, left.groups, out);
	if (unchanged.groups)
		write_unchanged(&unchanged, options, out);
	return NULL;
}

void ss_text_write_blocked_goroutines(const struct ss_snapshot *snapshot,
				      const struct ss_goroutine_grouping *goroutines,
				      const struct ss_format_options *options, FILE *out)
{
	size_t left = options->verbose ? SIZE_MAX : options->goroutine_groups;
	size_t count = 0;

	for (size_t i = 0; i < goroutines->own_count; i++) {
		if ((*goroutines->groups[i].members)->blocked)
			count += goroutines->groups[i].count;
	}
	if (count == 0)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_WARN, options->color, out);
	ss_quantity_write_things(count, "goroutine", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(" made no progress, waiting for a lock of the application\n",
			     out);
	for (size_t i = 0; i < goroutines->own_count && left > 0; i++) {
		if (!(*goroutines->groups[i].members)->blocked)
			continue;
		write_group(snapshot, &goroutines->groups[i], goroutines->several,
			    options, out);
		left--;
	}
}
