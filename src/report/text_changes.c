/*
 * What became of tasks from one snapshot to another: where they were and are.
 */
#include <stdlib.h>

#include "report/diff.h"
#include "report/text.h"

static void write_frame(const struct ss_frame *frame,
			const struct ss_format_options *options, FILE *out)
{
	ss_text_write_function(frame, frame->file, frame->line, options, out);
}

/* If none of the frames that are shown is a function of a runtime, the next one that is. */
static void write_runtime_function(const struct ss_snapshot *snapshot,
				   const struct ss_task *task, size_t shown, size_t own,
				   const struct ss_format_options *options, FILE *out)
{
	const struct ss_frame *frame = NULL;
	size_t at = 0;

	for (; at < own && (!frame || frame->kind == SS_FRAME_NATIVE); at++)
		frame = ss_snapshot_frame(snapshot, task, at);
	if (at <= shown || !frame || frame->kind == SS_FRAME_NATIVE)
		return;
	(void)fputs_unlocked(", below ", out);
	write_frame(frame, options, out);
}

/* What the program has called of the C library: not what that calls itself. */
static size_t innermost(const struct ss_snapshot *snapshot, const struct ss_task *task,
			size_t own)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t i = 0;

	while (i < own && ss_frame_code(process, ss_snapshot_frame(snapshot, task, i)) ==
				  SS_CODE_C_LIBRARY)
		i++;
	return i < own && i > 0 ? i - 1 : 0;
}

/* The frames that only one side has, innermost first; at most some without -v. */
static void write_own_frames(const struct ss_snapshot *snapshot,
			     const struct ss_task *task, size_t common, const char *word,
			     const struct ss_format_options *options, FILE *out)
{
	enum { SHOWN = 3 };
	size_t own = task->frame_count - common;
	size_t first = options->verbose ? 0 : innermost(snapshot, task, own);
	size_t shown = first + SS_MIN(own - first, ss_text_most(options, SHOWN));

	(void)fprintf(out, "    %s ", word);
	if (shown == 0) {
		(void)fputs_unlocked(
			task->frame_count ? "there itself\n" : "in no function\n", out);
		return;
	}
	for (size_t i = first; i < shown; i++) {
		if (i > first)
			(void)fputs_unlocked(", called from ", out);
		write_frame(ss_snapshot_frame(snapshot, task, i), options, out);
	}
	write_runtime_function(snapshot, task, shown, own, options, out);
	(void)fputc_unlocked('\n', out);
}

void ss_text_write_move(const struct ss_diff_input *input,
			const struct ss_task_change *change,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *after = input->after.snapshot;
	const size_t common = change->common;

	write_own_frames(input->before.snapshot, change->before, common, "was in",
			 options, out);
	write_own_frames(after, change->after, common, "is in", options, out);
	if (common == 0)
		return;
	(void)fputs_unlocked("    both below ", out);
	write_frame(ss_snapshot_frame(after, change->after,
				      change->after->frame_count - common),
		    options, out);
	(void)fputc_unlocked('\n', out);
}

/* By task the number of its group. */
struct changes {
	const struct ss_diff_input *input;
	const size_t *before;
	const size_t *after;
};

static uint64_t group_of(const size_t *groups, const struct ss_snapshot *snapshot,
			 const struct ss_task *task)
{
	return task ? groups[task - ss_snapshot_task(snapshot, task->kind, 0)] + 1 : 0;
}

/* Tasks are one with equal stacks and states on both sides. */
static struct ss_bundle_key key_of(const struct changes *changes,
				   const struct ss_task_change *change)
{
	enum { GROUP_BITS = 24, STATE_BITS = 8 };
	uint64_t before = group_of(changes->before, changes->input->before.snapshot,
				   change->before);
	uint64_t after =
		group_of(changes->after, changes->input->after.snapshot, change->after);
	uint64_t was = change->before ? (unsigned char)change->before->state : 0;
	uint64_t is = change->after ? (unsigned char)change->after->state : 0;
	uint64_t states = was | is << STATE_BITS;

	return (struct ss_bundle_key){
		.stack = before | after << GROUP_BITS | states << 2 * GROUP_BITS,
		.lock = ss_bundle_lock(change->wait),
	};
}

/* The group of each task; NULL without memory. */
static size_t *numbers_of(const struct ss_snapshot *snapshot, enum ss_task_kind kind)
{
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, kind, true);

	return grouping ? ss_grouping_numbers(grouping, snapshot) : NULL;
}

struct ss_text_item *
ss_text_change_items(const struct ss_diff_input *input, const struct ss_diff *diff,
		     unsigned (*find_part)(const struct ss_task_change *))
{
	_cleanup_free_ size_t *before = numbers_of(input->before.snapshot, diff->kind);
	_cleanup_free_ size_t *after = numbers_of(input->after.snapshot, diff->kind);
	struct ss_text_item *items =
		before && after ? calloc(diff->count + 1, sizeof(*items)) : NULL;
	const struct changes changes = { input, before, after };

	for (size_t i = 0; items && i < diff->count; i++) {
		const struct ss_task_change *change = &diff->items[i];
		items[i] = (struct ss_text_item){
			.part = find_part(change),
			.key = key_of(&changes, change),
			.task = ss_change_task(change),
			.wait = change->after ? change->wait : NULL,
		};
	}
	return items;
}
