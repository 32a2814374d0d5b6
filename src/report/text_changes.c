/*
 * What became of tasks from one snapshot to another: where they were and are.
 */
#include <stdlib.h>

#include "report/diff.h"
#include "report/escape.h"
#include "report/quantity.h"
#include "report/text.h"
#include "report/text_frames.h"

static void write_frame(const struct ss_frame *frame,
			const struct ss_format_options *options, FILE *out)
{
	if (options->raw)
		ss_escape_write_owned(ss_label_new_raw(frame), NULL, out);
	else
		ss_text_write_symbol(ss_label_new(frame, false), options->verbose, out);
	if (!options->raw)
		ss_text_write_source(frame->file, frame->line, options->verbose, out);
}

/* If none of the frames that are shown is a function of a runtime, the next one that is. */
static void write_function(const struct ss_snapshot *snapshot, const struct ss_task *task,
			   size_t shown, size_t own,
			   const struct ss_format_options *options, FILE *out)
{
	const struct ss_frame *frame = NULL;
	size_t at = 0;

	for (; at < own && (!frame || frame->kind == SS_FRAME_NATIVE); at++)
		frame = ss_snapshot_frame(snapshot, task, at);
	if (at <= shown || frame->kind == SS_FRAME_NATIVE)
		return;
	(void)fputs_unlocked(", below ", out);
	write_frame(frame, options, out);
}

/* The frames that only one side has, innermost first; at most some without -v. */
static void write_own_frames(const struct ss_snapshot *snapshot,
			     const struct ss_task *task, size_t common, const char *word,
			     const struct ss_format_options *options, FILE *out)
{
	enum { SHOWN = 3 };
	size_t own = task->frame_count - common;
	size_t shown = options->verbose ? own : SS_MIN(own, (size_t)SHOWN);

	(void)fprintf(out, "    %s ", word);
	if (shown == 0) {
		(void)fputs_unlocked(
			task->frame_count ? "there itself\n" : "in no function\n", out);
		return;
	}
	for (size_t i = 0; i < shown; i++) {
		if (i > 0)
			(void)fputs_unlocked(", called from ", out);
		write_frame(ss_snapshot_frame(snapshot, task, i), options, out);
	}
	write_function(snapshot, task, shown, own, options, out);
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

static uint64_t group_of(const size_t *groups, const struct ss_snapshot *snapshot,
			 const struct ss_task *task)
{
	return task ? groups[task - ss_snapshot_task(snapshot, task->kind, 0)] + 1 : 0;
}

/* Tasks are one with equal stacks and states on both sides. */
static struct ss_bundle_key key_of(const struct ss_text_changes *changes,
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

struct ss_bundles *
ss_text_bundle_changes(const struct ss_text_changes *changes,
		       unsigned (*find_part)(const struct ss_task_change *),
		       unsigned part, size_t *ret_found)
{
	const struct ss_diff *diff = changes->diff;
	_cleanup_free_ size_t *items = calloc(diff->count + 1, sizeof(*items));
	_cleanup_free_ struct ss_bundle_key *keys =
		calloc(diff->count + 1, sizeof(*keys));
	size_t count = 0;

	if (!items || !keys)
		return NULL;
	for (size_t i = 0; i < diff->count; i++) {
		if (find_part(&diff->items[i]) != part)
			continue;
		keys[count] = key_of(changes, &diff->items[i]);
		items[count++] = i;
	}
	*ret_found = count;
	return ss_bundles_new(items, keys, count);
}
