/*
 * core_backtrace of ABRT, the JSON that satyr(1) reads: frames by build-id and offset, and names
 * as far as they are known. Inlined calls and functions of runtimes are left out, as there.
 */
#include <inttypes.h>

#include "base/buffer.h"
#include "base/error.h"
#include "report/crash.h"
#include "report/print.h"
#include "report/format.h"
#include "report/json.h"
#include "data/capture.h"

/*
 * The signature by which apport(1) recognises a crash without names of functions, as fields of
 * its reports: program, signal, and the innermost frames as mapping+offset.
 *
 * The rules are those of apport/report.py (crash_signature_addresses()): the offset is relative
 * to the mapping, not to the module; 15 frames at most; none if the stack is too short, or if
 * more than a fifth of the frames are in no file.
 */

enum {
	FRAMES_MAX = 15,
	FRAMES_MIN = 3,
	FRAMES_MIN_OF_SOME = 6, /* if others are in no file */
	FRAMES_PER_FAILURE = 4,
	ADDRESS_MIN = 0x1000,
};

static void add_path(struct ss_buffer *buffer, const char *path)
{
	for (; *path; path++)
		ss_buffer_printf(buffer, *path == ':' ? ".." : "%c", *path);
}

/* gdb shows neither an address of the kernel's signal frames nor, without debug information,
   inlined functions. False: there are too few frames. */
static bool add_frames(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		       const struct ss_capture *capture, struct ss_buffer *ret)
{
	unsigned count = 0;
	unsigned failed = 0;

	for (size_t i = 0; i < thread->frame_count && count < FRAMES_MAX; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		struct ss_mapped_range mapping;
		if (frame->kind != SS_FRAME_NATIVE || frame->inlined ||
		    frame->signal_frame || frame->pc < ADDRESS_MIN)
			continue;
		if (!ss_capture_find_mapping(capture, frame->pc, &mapping) ||
		    !*mapping.name) {
			failed++;
			continue;
		}
		count++;
		ss_buffer_printf(ret, ":");
		add_path(ret, mapping.name);
		ss_buffer_printf(ret, "+%" PRIx64, frame->pc - mapping.start);
	}
	return failed ? count >= FRAMES_MIN_OF_SOME &&
				count >= failed * FRAMES_PER_FAILURE :
			count >= FRAMES_MIN;
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct ss_task *thread = ss_signature_thread(snapshot);
	const char *program = process->executable ? process->executable : process->name;
	_cleanup_buffer_ struct ss_buffer frames = {};

	if (!thread || !options->capture)
		return ss_error_new(SS_ERROR_INVALID,
				    "no signal has ended the process: apport has "
				    "signatures of crashes only");
	bool enough = add_frames(snapshot, thread, options->capture, &frames);
	if (frames.failed)
		return ss_error_no_memory();
	(void)fputs_unlocked("ProblemType: Crash\nExecutablePath: ", out);
	ss_escape_write(program, NULL, out);
	(void)fprintf(out, "\nSignal: %d\n", process->crash.signal);
	if (!enough)
		return NULL;
	(void)fputs_unlocked("StacktraceAddressSignature: ", out);
	ss_escape_write(program, NULL, out);
	(void)fprintf(out, ":%d", process->crash.signal);
	ss_escape_write(frames.bytes, NULL, out);
	(void)fputc_unlocked('\n', out);
	return NULL;
}

const struct ss_format ss_format_apport = {
	.name = "apport",
	.description = "StacktraceAddressSignature of Ubuntu's apport",
	.single = true,
	.confined = true,
	.unsymbolized = true,
	.write_snapshot = write_snapshot,
};

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
			 const struct ss_task *thread)
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

static struct ss_error *write_satyr_snapshot(const struct ss_snapshot *snapshot,
					     const struct ss_format_options *options,
					     FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	struct ss_json json = { .out = out };

	(void)options;
	ss_json_open(&json, NULL, '{');
	ss_json_signed(&json, "signal", process->crash.signal);
	if (process->executable)
		ss_json_text(&json, "executable", process->executable);
	ss_json_open(&json, "stacktrace", '[');
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		write_thread(&json, snapshot,
			     ss_snapshot_task(snapshot, SS_TASK_THREAD, i));
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
	.write_snapshot = write_satyr_snapshot,
};
