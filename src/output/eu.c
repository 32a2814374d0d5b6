/*
 * The layout of eu-stack without options: frames of inlined functions are neither shown nor
 * counted. Frames without a symbol have module and offset, which eu-stack omits.
 */
#include <inttypes.h>

#include "output/escape.h"
#include "output/format.h"
#include "output/stack_cache.h"
#include "profile/label.h"

static void write_frames(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread,
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
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
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
