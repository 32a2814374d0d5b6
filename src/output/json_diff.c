/*
 * stacksnap-diff/1: one line, see stacksnap-json(5).
 */
#include "output/diff.h"
#include "output/json_document.h"

static void write_side(struct ss_json *json, const char *key,
		       const struct ss_diff_side *side)
{
	const struct ss_process *process = ss_snapshot_process(side->snapshot);

	ss_json_open(json, key, '{');
	ss_json_process(json, process);
	ss_json_unsigned(json, "time_ns", process->time_ns);
	ss_json_text(json, "file", side->file);
	ss_json_goroutine_count(json, side->snapshot);
	ss_json_task_counts(json, side->snapshot);
	ss_json_close(json, '}');
}

static void write_frames(struct ss_json *json, const char *key,
			 const struct ss_diff_side *side, const struct ss_thread *thread)
{
	if (!thread) {
		ss_json_null(json, key);
		return;
	}
	ss_json_open(json, key, '[');
	for (size_t i = 0; i < thread->frame_count; i++)
		ss_json_plain_frame(json, ss_snapshot_frame(side->snapshot, thread, i));
	ss_json_close(json, ']');
}

static void write_progress(struct ss_json *json,
			   const struct ss_thread_progress *progress)
{
	if (!progress) {
		ss_json_null(json, "progress");
		return;
	}
	ss_json_open(json, "progress", '{');
	ss_json_text(json, "movement", ss_movement_name(progress->movement));
	ss_json_unsigned(json, "run_ns", progress->run_ns);
	ss_json_unsigned(json, "ready_ns", progress->ready_ns);
	ss_json_unsigned(json, "runs", progress->runs);
	ss_json_close(json, '}');
}

static void write_change(struct ss_json *json, const struct ss_diff_input *input,
			 const struct ss_thread_change *change)
{
	const struct ss_thread *before = change->before;
	const struct ss_thread *after = change->after;

	ss_json_open(json, NULL, '{');
	ss_json_text(json, "change", ss_change_name(change->change));
	/* cppcheck-suppress ctunullpointer; a change has one of them at least */
	ss_json_thread(json, after ? after : before);
	ss_json_signed_if(json, "tid_before", before, before ? before->tid : 0);
	ss_json_state(json, "state_before", before ? before->state : '?');
	ss_json_bool(json, "blocked", change->class <= SS_GROUP_BLOCKED);
	ss_json_unsigned(json, "common_frames", change->common);
	write_progress(json, change->progress);
	ss_json_wait(json, "wait", change->wait);
	write_frames(json, "frames_before", &input->before, before);
	write_frames(json, "frames", &input->after, after);
	ss_json_close(json, '}');
}

struct ss_error *ss_json_write_diff(const struct ss_diff_input *input,
				    const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff = ss_diff_new(input);
	const struct ss_snapshot *sides[] = { input->before.snapshot,
					      input->after.snapshot };
	const struct ss_snapshots both = { .items = sides,
					   .count = SS_ARRAY_SIZE(sides) };
	struct ss_json json = { .out = out };

	if (!diff)
		return ss_error_no_memory();
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-diff/1");
	write_side(&json, "before", &input->before);
	write_side(&json, "after", &input->after);
	ss_json_bool(&json, "same_process", diff->same_process);
	for (size_t i = 0; i < SS_CHANGE_COUNT; i++)
		ss_json_unsigned(&json, ss_change_name((enum ss_change)i),
				 diff->counts[i]);
	ss_json_open(&json, "threads", '[');
	for (size_t i = 0; i < diff->count; i++)
		write_change(&json, input, &diff->items[i]);
	ss_json_close(&json, ']');
	if (!ss_json_merged_goroutines(&json, &both, true, options) ||
	    !ss_json_task_diff(&json, input, diff, options))
		return ss_error_no_memory();
	ss_json_text(&json, "problem", options->problem);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return NULL;
}
