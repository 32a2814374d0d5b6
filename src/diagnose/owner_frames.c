#include "diagnose/owner_frames.h"

#include "model/futex.h"

/* References are in the order of threads. The first one of a thread. */
static size_t first_of(const struct ss_snapshot *snapshot, size_t thread)
{
	size_t low = 0;
	size_t high = snapshot->references.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (snapshot->references.items[middle].thread < thread)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Calls that were inlined are frames since names were looked up, and were none when the
   references were found: both are gone through side by side. */
static void fill_in(const struct ss_snapshot *snapshot, size_t owner, uint64_t futex,
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
		if (frame->inlined)
			continue;
		for (; at < end && at->thread == owner && at->frame == number; at++) {
			/* Those of the library that waits have saved what is others'. */
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
			fill_in(snapshot, (size_t)(owner - snapshot->threads.items),
				futex.address, &snapshot->waits[i]);
	}
}
