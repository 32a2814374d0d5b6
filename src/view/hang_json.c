/*
 * stacksnap-hang/1: one line, see stacksnap-json(5).
 */
#include <jansson.h>

#include "view/escape.h"
#include "view/hang.h"
#include "view/json_values.h"

static json_t *thread_value(const struct ss_thread *thread,
			    const struct ss_thread_progress *progress)
{
	const char state[] = { thread->state, '\0' };

	/* clang-format off */
	return json_pack("{s:i,s:o,s:o,s:s,s:b,s:I,s:I,s:I,s:I,s:I,s:o,s:i,s:o,s:o}",
		"tid", (int)thread->tid,
		"name", ss_json_text(thread->name),
		"state", ss_json_text(thread->state == '?' ? NULL : state),
		"movement", ss_movement_name(progress->movement),
		"stuck", progress->stuck,
		"run_ns", (json_int_t)progress->run_ns,
		"ready_ns", (json_int_t)progress->ready_ns,
		"runs", (json_int_t)progress->runs,
		"voluntary", (json_int_t)progress->voluntary,
		"forced", (json_int_t)progress->forced,
		"within", ss_json_text(progress->within),
		"samples", (int)progress->samples,
		"wait", ss_json_text(thread->wait ? thread->wait->text : NULL),
		"wait_kind", thread->wait ?
			json_string(ss_wait_kind_name(thread->wait->kind)) : json_null());
	/* clang-format on */
}

static json_t *threads_value(const struct ss_snapshot *snapshot,
			     const struct ss_progress *progress)
{
	json_t *threads = json_array();

	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++)
		(void)json_array_append_new(
			threads, thread_value(ss_snapshot_thread(snapshot, i),
					      ss_progress_thread(progress, i)));
	return threads;
}

struct ss_error *ss_hang_write_json(const struct ss_snapshot *snapshot,
				    const struct ss_progress *progress,
				    const struct ss_render_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);

	(void)options;
	/* clang-format off */
	json_t *value = json_pack("{s:s,s:{s:i,s:o,s:o,s:o},s:s,s:I,s:b,s:o,s:o,s:o,s:o}",
		"schema", "stacksnap-hang/1",
		"process",
			"pid", (int)process->pid,
			"name", ss_json_text(process->name),
			"executable", ss_json_text(process->executable),
			"frozen", ss_json_text(process->frozen),
		"verdict", ss_verdict_name(ss_progress_verdict(progress)),
		"elapsed_ns", (json_int_t)ss_progress_elapsed_ns(progress),
		"closed", ss_progress_is_closed(progress),
		"threads", threads_value(snapshot, progress),
		"deadlocks", ss_json_deadlocks(snapshot),
		"circles", ss_json_circles(snapshot),
		"blockers", ss_json_blockers(snapshot));
	/* clang-format on */
	if (!value)
		return ss_error_no_memory();
	ss_json_write(value, 0, out);
	(void)fputc_unlocked('\n', out);
	return NULL;
}
