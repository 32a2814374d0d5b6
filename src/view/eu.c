/*
 * The layout of eu-stack without options, which knows no frames for inlined
 * functions: they are left out, and frames numbered without them. What eu-stack
 * prints as an address without a name has the module and offset here.
 */
#include <inttypes.h>

#include "view/label.h"
#include "view/render.h"
#include "view/stack_cache.h"

static void write_frames(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread,
			 const struct ss_render_options *options, FILE *out)
{
	unsigned number = 0;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->inlined)
			continue;
		(void)fprintf(out, "#%-2u 0x%016" PRIx64 " ", number++, frame->pc);
		ss_label_write(frame, options->raw, NULL, out);
		(void)fputc_unlocked('\n', out);
	}
}

static struct ss_error *render_eu(const struct ss_snapshot *snapshot,
				  const struct ss_render_options *options, FILE *out)
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

const struct ss_renderer ss_renderer_eu = {
	.name = "eu",
	.summary = "the layout of eu-stack",
	.render = render_eu,
};
