/*
 * stacksnap-hang/1: one line, see stacksnap-json(5).
 */
#include "output/json_document.h"

static void write_thread(struct ss_json *json, const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread,
			 const struct ss_thread_progress *progress)
{
	ss_json_open(json, NULL, '{');
	ss_json_thread(json, thread);
	ss_json_text(json, "movement", ss_movement_name(progress->movement));
	ss_json_bool(json, "stuck", progress->stuck);
	ss_json_bool(json, "blocked", progress->blocked);
	ss_json_unsigned(json, "run_ns", progress->run_ns);
	ss_json_unsigned(json, "ready_ns", progress->ready_ns);
	ss_json_unsigned(json, "runs", progress->runs);
	ss_json_unsigned(json, "voluntary", progress->voluntary);
	ss_json_unsigned(json, "forced", progress->forced);
	ss_json_text(json, "within", progress->within);
	ss_json_unsigned(json, "samples", progress->samples);
	ss_json_wait_text(json, "wait", thread->wait);
	ss_json_text(json, "wait_kind",
		     thread->wait ? ss_wait_kind_name(thread->wait->kind) : NULL);
	ss_json_wait(json, "wait_data", thread->wait);
	ss_json_waits_in(json, snapshot, thread);
	ss_json_close(json, '}');
}

struct ss_error *ss_json_write_hang(const struct ss_snapshot *snapshot,
				    const struct ss_progress *progress,
				    const struct ss_format_options *options, FILE *out)
{
	struct ss_json json = { .out = out };

	(void)options;
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-hang/1");
	ss_json_process(&json, ss_snapshot_process(snapshot));
	ss_json_text(&json, "verdict", ss_verdict_name(ss_progress_verdict(progress)));
	ss_json_unsigned(&json, "elapsed_ns", ss_progress_elapsed_ns(progress));
	ss_json_bool(&json, "closed", ss_progress_is_closed(progress));
	ss_json_open(&json, "threads", '[');
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++)
		write_thread(&json, snapshot, ss_snapshot_thread(snapshot, i),
			     ss_progress_thread(progress, i));
	ss_json_close(&json, ']');
	bool whole = ss_json_goroutines(&json, snapshot, true);
	ss_json_tasks(&json, snapshot);
	ss_json_deadlocks(&json, snapshot);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return whole ? NULL : ss_error_no_memory();
}
