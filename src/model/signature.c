#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/vector.h"
#include "model/snapshot.h"

/* Recursion through at most so many functions counts once: how deep it goes until a stack
   overflows depends on the environment and on ASLR. */
enum { PERIOD_MAX = 8 };

typedef SS_VECTOR(XXH128_hash_t) hash_list;

/* What is the same in every process that runs this build. */
static XXH128_hash_t hash_frame(const struct ss_frame *frame)
{
	const char *file = frame->module ? frame->module->build_id : frame->area;
	uint64_t offset = frame->module ? frame->lookup_offset : 0;

	if (frame->module && !file)
		file = frame->module->path;
	return XXH3_128bits_withSeed(file, file ? strlen(file) : 0,
				     offset ^ (frame->signal_frame ? UINT64_MAX : 0));
}

/* Drops the end of the list if it repeats what is before it. */
static void drop_repeat(hash_list *list)
{
	for (size_t period = 1; period <= PERIOD_MAX && 2 * period <= list->count;
	     period++) {
		const XXH128_hash_t *last = list->items + list->count - period;
		if (memcmp(last, last - period, period * sizeof(*last)) == 0) {
			list->count -= period;
			return;
		}
	}
}

struct ss_error *ss_snapshot_signature(const struct ss_snapshot *snapshot,
				       const struct ss_thread *thread,
				       char ret[SS_SIGNATURE_SIZE])
{
	hash_list list = {};

	for (size_t i = thread->frame_count; i-- > 0;) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->inlined)
			continue; /* known only with debug information */
		XXH128_hash_t *slot = ss_vector_push(&list);
		if (!slot) {
			ss_vector_free(&list);
			return ss_error_no_memory();
		}
		*slot = hash_frame(frame);
		drop_repeat(&list);
	}
	XXH128_hash_t hash = XXH3_128bits(list.items, list.count * sizeof(*list.items));
	ss_vector_free(&list);
	(void)snprintf(ret, SS_SIGNATURE_SIZE, "%016" PRIx64 "%016" PRIx64,
		       (uint64_t)hash.high64, (uint64_t)hash.low64);
	return NULL;
}
