#include "diagnose/owner_frames.h"

#include "base/search.h"
#include "model/futex.h"

/* The first reference of a thread: they are sorted by thread. */
static size_t first_of(const struct ss_snapshot *snapshot, size_t thread)
{
	return ss_lower_bound(snapshot->references.count, i,
			      snapshot->references.items[i].thread < thread);
}

/* References count frames as they were before inlined native calls were inserted: walk
   frames and references in parallel. */
static void add_frames(const struct ss_snapshot *snapshot, size_t owner, uint64_t futex,
		       struct ss_wait *wait)
{
	const struct ss_thread *thread = &snapshot->threads.items[owner];
	const struct ss_lock_reference *at =
		snapshot->references.items + first_of(snapshot, owner);
	const struct ss_lock_reference *end =
		snapshot->references.items + snapshot->references.count;
	const struct ss_module *inner = NULL;

	for (size_t i = 0, number = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		inner = i == 0 ? frame->module : inner;
		if (frame->inlined && frame->kind == SS_FRAME_NATIVE)
			continue;
		for (; at < end && at->thread == owner && at->frame == number; at++) {
			/* In frames of the library that waits, the reference is only a
			   saved register. */
			if (at->futex == futex && (at->in_code || frame->module != inner))
				wait->owner_frames[wait->owner_frame_count++] =
					(struct ss_owner_frame){
						.frame = (uint32_t)i,
						.file = at->call_file,
						.line = at->call_line,
					};
			if (wait->owner_frame_count == SS_OWNER_FRAMES_MAX)
				return;
		}
		if (at == end || at->thread != owner)
			return;
		number++;
	}
}

void ss_owner_frames_find(struct ss_snapshot *snapshot)
{
	if (snapshot->references.count == 0)
		return;
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
		const struct ss_thread_facts *facts =
			ss_facts_find_thread(snapshot->facts, thread->tid);
		struct ss_futex futex;
		if (!thread->wait || !facts || thread->wait->owner_tid == 0 ||
		    thread->wait->owner_pid || !ss_futex_parse(&facts->call, &futex))
			continue;
		const struct ss_thread *owner =
			ss_snapshot_find_thread(snapshot, thread->wait->owner_tid);
		if (owner)
			add_frames(snapshot, (size_t)(owner - snapshot->threads.items),
				   futex.address, &snapshot->waits[i]);
	}
}
