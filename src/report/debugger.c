/*
 * The layout of gdb's "thread apply all bt". Arguments are unknown and printed as "()".
 * Scripts split a frame into words: "0xADDRESS in FUNCTION ()", or "FUNCTION () at
 * FILE:LINE" if the next inner frame is inlined.
 */
#include <inttypes.h>
#include <string.h>

#include "data/snapshot.h"
#include "report/format.h"
#include "report/group.h"
#include "report/print.h"
#include "report/profile.h"

/*
 * The layout of eu-stack without options: frames of inlined functions are neither shown nor
 * counted. Frames without a symbol have module and offset, which eu-stack omits.
 */

static void write_frames(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 const struct ss_format_options *options, FILE *out)
{
	unsigned number = 0;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->inlined)
			continue;
		(void)fprintf(out, "#%-2u 0x%016" PRIx64 " ", number++, frame->pc);
		ss_escape_write_owned(ss_label_new(frame, options->raw), NULL, out);
		(void)fputc_unlocked('\n', out);
	}
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_stack_cache_cleanup) struct ss_stack_cache *cache =
		ss_stack_cache_new(snapshot, options, write_frames);

	if (!cache)
		return ss_error_no_memory();
	(void)fprintf(out, "PID %d - process\n", ss_snapshot_process(snapshot)->pid);
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		(void)fprintf(out, "TID %d:\n", thread->tid);
		ss_stack_cache_write(cache, thread, out);
	}
	return NULL;
}

const struct ss_format ss_format_eu = {
	.name = "eu",
	.description = "the layout of eu-stack",
	.write_snapshot = write_snapshot,
};

/* Of a chain of inlined frames gdb shows only the address of the innermost one. A frame
   without a line keeps its address, since it would have too few words. */
static bool shows_address(const struct ss_snapshot *snapshot,
			  const struct ss_task *thread, size_t index)
{
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, index);

	if (frame->kind != SS_FRAME_NATIVE)
		return false;
	return index == 0 || !frame->file || !frame->symbol ||
	       !ss_snapshot_frame(snapshot, thread, index - 1)->inlined;
}

/* gdb names the shared library of a function without a line, but never the program. */
static bool shows_library(const struct ss_process *process, const struct ss_frame *frame)
{
	return frame->module && frame->module->path[0] == '/' &&
	       (!process->executable ||
		strcmp(frame->module->path, process->executable) != 0);
}

static void write_function(const struct ss_frame *frame, bool raw, FILE *out)
{
	ss_escape_write_owned(
		raw ? ss_label_new_place(frame) : ss_label_new(frame, false), NULL, out);
	(void)fputs_unlocked(" ()", out);
}

static void write_origin(const struct ss_process *process, const struct ss_frame *frame,
			 FILE *out)
{
	if (frame->file) {
		(void)fputs_unlocked(" at ", out);
		ss_escape_write(frame->file, NULL, out);
		if (frame->line)
			(void)fprintf(out, ":%" PRIu32, frame->line);
	} else if (shows_library(process, frame)) {
		(void)fputs_unlocked(" from ", out);
		ss_escape_write(frame->module->path, NULL, out);
	}
}

static void write_gdb_frames(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread,
			     const struct ss_format_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		(void)fprintf(out, "#%-3zu", i);
		if (frame->signal_frame) {
			(void)fputs_unlocked("<signal handler called>\n", out);
			continue;
		}
		if (shows_address(snapshot, thread, i))
			(void)fprintf(out, "0x%016" PRIx64 " in ", frame->pc);
		write_function(frame, options->raw, out);
		write_origin(process, frame, out);
		(void)fputc_unlocked('\n', out);
	}
}

static void write_end(const struct ss_task *thread, FILE *out)
{
	if (ss_end_is_outermost(thread->end))
		return;
	(void)fprintf(out, "Backtrace stopped: %s", ss_end_name(thread->end));
	if (thread->reason) {
		(void)fputs_unlocked(": ", out);
		ss_escape_write(thread->reason, NULL, out);
	}
	(void)fputc_unlocked('\n', out);
}

static struct ss_error *write_gdb_snapshot(const struct ss_snapshot *snapshot,
					   const struct ss_format_options *options,
					   FILE *out)
{
	_cleanup_(ss_stack_cache_cleanup) struct ss_stack_cache *cache =
		ss_stack_cache_new(snapshot, options, write_gdb_frames);

	if (!cache)
		return ss_error_no_memory();
	for (size_t i = ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i-- > 0;) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		(void)fprintf(out, "\nThread %zu (Thread 0x%" PRIx64 " (LWP %d) \"",
			      i + 1, thread->thread_pointer, thread->tid);
		ss_escape_write(thread->name, NULL, out);
		(void)fputs_unlocked("\"):\n", out);
		ss_stack_cache_write(cache, thread, out);
		write_end(thread, out);
	}
	return NULL;
}

const struct ss_format ss_format_gdb = {
	.name = "gdb",
	.description = "the layout of gdb's \"thread apply all bt\"",
	.write_snapshot = write_gdb_snapshot,
};
