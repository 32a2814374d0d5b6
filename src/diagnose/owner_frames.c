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

/* Calls that were inlined are frames since names were looked up: the number of a frame now
   that was this one then. SIZE_MAX: there is none. */
static size_t number_of(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread, uint32_t before)
{
	for (size_t i = 0, at = 0; i < thread->frame_count; i++) {
		if (!ss_snapshot_frame(snapshot, thread, i)->inlined && at++ == before)
			return i;
	}
	return SIZE_MAX;
}

static void fill_in(const struct ss_snapshot *snapshot, size_t owner, uint64_t futex,
		    struct ss_wait *wait)
{
	const struct ss_thread *thread = &snapshot->threads.items[owner];
	const struct ss_module *inner =
		thread->frame_count ? ss_snapshot_frame(snapshot, thread, 0)->module :
				      NULL;

	for (size_t i = first_of(snapshot, owner);
	     i < snapshot->references.count &&
	     wait->owner_frame_count < SS_OWNER_FRAMES_MAX;
	     i++) {
		const struct ss_lock_reference *found = &snapshot->references.items[i];
		if (found->thread != owner)
			return;
		size_t frame = found->futex == futex ?
				       number_of(snapshot, thread, found->frame) :
				       SIZE_MAX;
		/* Those of the library that waits have saved what is others'. */
		if (frame != SIZE_MAX &&
		    ss_snapshot_frame(snapshot, thread, frame)->module != inner)
			wait->owner_frames[wait->owner_frame_count++] = (uint32_t)frame;
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
