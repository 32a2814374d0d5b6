/*
 * Goroutines in groups of equal stacks; those on a thread are listed with the thread.
 */
#include <inttypes.h>

#include "output/escape.h"
#include "output/quantity.h"
#include "output/style.h"
#include "output/text.h"

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

static void write_state(const struct ss_goroutine *goroutine, FILE *out)
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

static void write_group(const struct ss_snapshot *snapshot,
			const struct ss_goroutine_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_goroutine *first = *group->members;
	/* Frames are written as those of a thread. */
	const struct ss_thread stack = {
		.stack_id = first->stack_id,
		.frame_count = first->frame_count,
		.end = first->end,
		.reason = first->reason,
	};

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_quantity_write_things(group->count, "goroutine", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(", ", out);
	write_state(first, out);
	write_since(group, out);
	(void)fputc_unlocked(':', out);
	write_ids(group, options->verbose, out);
	(void)fputc_unlocked('\n', out);
	if (first->frame_count > 0)
		ss_text_write_frames(snapshot, &stack, options, out);
}

void ss_text_write_thread_goroutine(const struct ss_goroutine_grouping *goroutines,
				    const struct ss_snapshot *snapshot,
				    const struct ss_group *group, FILE *out)
{
	for (size_t i = 0; i < group->count; i++) {
		pid_t tid = ss_snapshot_thread(snapshot, group->members[i])->tid;
		const struct ss_goroutine *goroutine =
			ss_goroutine_grouping_find(goroutines, tid);
		if (!goroutine)
			continue;
		const struct ss_goroutine_group only = { .members = &goroutine,
							 .count = 1 };
		(void)fprintf(out, "  goroutine %" PRIu64, goroutine->id);
		if (group->count > 1)
			(void)fprintf(out, " on thread %d", tid);
		(void)fputs_unlocked(", ", out);
		write_state(goroutine, out);
		write_since(&only, out);
		(void)fputc_unlocked('\n', out);
	}
}

static void write_left_out(const struct ss_goroutine_grouping *goroutines, size_t from,
			   FILE *out)
{
	size_t count = 0;

	for (size_t i = from; i < goroutines->own_count; i++)
		count += goroutines->groups[i].count;
	(void)fputc_unlocked('\n', out);
	ss_quantity_write_things(count, "more goroutine", out);
	(void)fputs_unlocked(" in ", out);
	ss_quantity_write_things(goroutines->own_count - from, "group", out);
	(void)fputs_unlocked("; --goroutines=all shows them\n", out);
}

static void write_summary(const struct ss_snapshot *snapshot,
			  const struct ss_goroutine_grouping *goroutines,
			  const struct ss_format_options *options, FILE *out)
{
	size_t count = ss_snapshot_goroutine_count(snapshot);
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
	size_t unread = ss_snapshot_goroutines_unread(snapshot);
	if (unread) {
		(void)fputs_unlocked("; ", out);
		ss_quantity_write_count(unread, out);
		(void)fputs_unlocked(" more could not be read", out);
	}
	(void)fputc_unlocked('\n', out);
}

void ss_text_write_goroutines(const struct ss_snapshot *snapshot,
			      const struct ss_goroutine_grouping *goroutines,
			      const struct ss_format_options *options, FILE *out)
{
	const char *problem = ss_snapshot_goroutine_problem(snapshot);
	size_t shown = options->verbose ? SIZE_MAX : options->goroutine_groups;

	if (problem) {
		(void)fputc_unlocked('\n', out);
		ss_style_write(SS_STYLE_WARN, options->color, out);
		ss_escape_write(problem, NULL, out);
		ss_style_write(SS_STYLE_NONE, options->color, out);
		(void)fputc_unlocked('\n', out);
	}
	if (goroutines->count == 0)
		return;
	write_summary(snapshot, goroutines, options, out);
	shown = SS_MIN(shown, goroutines->own_count);
	for (size_t i = 0; i < shown; i++)
		write_group(snapshot, &goroutines->groups[i], options, out);
	if (shown < goroutines->own_count)
		write_left_out(goroutines, shown, out);
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
		write_group(snapshot, &goroutines->groups[i], options, out);
		left--;
	}
}
