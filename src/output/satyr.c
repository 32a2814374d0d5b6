/*
 * core_backtrace of ABRT, the JSON that satyr(1) reads: frames by build-id and offset, and names
 * as far as they are known. Inlined calls and functions of runtimes are left out, as there.
 */
#include "base/error.h"
#include "output/format.h"
#include "output/json.h"
#include "output/signature.h"

static void write_frame(struct ss_json *json, const struct ss_frame *frame)
{
	ss_json_open(json, NULL, '{');
	ss_json_unsigned(json, "address", frame->pc);
	if (frame->module && frame->module->build_id)
		ss_json_text(json, "build_id", frame->module->build_id);
	if (frame->module)
		ss_json_unsigned(json, "build_id_offset",
				 frame->pc - frame->module->base);
	if (frame->symbol)
		ss_json_text(json, "function_name", frame->symbol);
	if (frame->module)
		ss_json_text(json, "file_name", frame->module->path);
	ss_json_close(json, '}');
}

static void write_thread(struct ss_json *json, const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread)
{
	ss_json_open(json, NULL, '{');
	if (thread == ss_signature_thread(snapshot))
		ss_json_bool(json, "crash_thread", true);
	ss_json_open(json, "frames", '[');
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (!frame->inlined && frame->kind == SS_FRAME_NATIVE)
			write_frame(json, frame);
	}
	ss_json_close(json, ']');
	ss_json_close(json, '}');
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	struct ss_json json = { .out = out };

	(void)options;
	ss_json_open(&json, NULL, '{');
	ss_json_signed(&json, "signal", process->crash.signal);
	if (process->executable)
		ss_json_text(&json, "executable", process->executable);
	ss_json_open(&json, "stacktrace", '[');
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++)
		write_thread(&json, snapshot, ss_snapshot_thread(snapshot, i));
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return NULL;
}

const struct ss_format ss_format_satyr = {
	.name = "satyr",
	.description = "core_backtrace, the JSON of ABRT and satyr",
	.single = true,
	.native = true,
	.write_snapshot = write_snapshot,
};
