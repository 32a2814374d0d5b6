#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vector.h"
#include "model/snapshot.h"

/* Recursion through at most so many functions counts once: how deep it goes until a stack
   overflows depends on the environment and on ASLR. */
enum { PERIOD_MAX = 8 };

/* Of a stack overflow. Recursion through more functions is not recognised. */
enum { INNER_FRAMES = 200 };

typedef SS_VECTOR(XXH128_hash_t) hash_list;

/* What is the same in every process that runs this build. Code outside of files has no place
   in one; and a core file does not have the names of memory areas. */
static XXH128_hash_t hash_frame(const struct ss_frame *frame)
{
	const char *file = frame->module ? frame->module->build_id : NULL;
	uint64_t offset = frame->module ? frame->lookup_offset : 0;

	if (frame->module && !file)
		file = frame->module->path;
	if (frame->kind != SS_FRAME_NATIVE) {
		file = frame->symbol;
		offset = frame->line;
	}
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

static int compare_hashes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(XXH128_hash_t));
}

/*
 * Replaces the list by what occurs more than once at its end, sorted: the recursion, without
 * its beginning, and without the functions that it called last. Without recursion the list
 * stays. False without memory.
 */
static bool keep_recursion(hash_list *list)
{
	size_t count = SS_MIN(list->count, (size_t)INNER_FRAMES);
	size_t kept = 0;

	if (count < 2)
		return true;
	XXH128_hash_t *inner = malloc(count * sizeof(*inner));
	if (!inner)
		return false;
	memcpy(inner, list->items + list->count - count, count * sizeof(*inner));
	qsort(inner, count, sizeof(*inner), compare_hashes);
	for (size_t i = 1; i < count; i++) {
		bool repeated = compare_hashes(&inner[i], &inner[i - 1]) == 0;
		if (repeated &&
		    (kept == 0 || compare_hashes(&inner[i], &list->items[kept - 1]) != 0))
			list->items[kept++] = inner[i];
	}
	free(inner);
	if (kept)
		list->count = kept;
	return true;
}

/* Native frames that were inlined are known only with debug information, and those for which
   frames of a runtime stand are shown only on demand. */
static bool counts(const struct ss_frame *frame)
{
	return !frame->replaced && !(frame->inlined && frame->kind == SS_FRAME_NATIVE);
}

static bool is_overflow(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread)
{
	const struct ss_crash *crash = &snapshot->process.crash;

	return crash->stack_overflow && crash->tid == thread->tid;
}

struct ss_error *ss_snapshot_signature(const struct ss_snapshot *snapshot,
				       const struct ss_thread *thread,
				       char ret[SS_SIGNATURE_SIZE])
{
	bool overflow = is_overflow(snapshot, thread);
	bool ok = true;
	hash_list list = {};

	for (size_t i = thread->frame_count; ok && i-- > 0;) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (!counts(frame))
			continue;
		XXH128_hash_t *slot = ss_vector_push(&list);
		if ((ok = slot != NULL))
			*slot = hash_frame(frame);
		if (!overflow)
			drop_repeat(&list);
	}
	ok = ok && (!overflow || keep_recursion(&list));
	XXH128_hash_t hash = XXH3_128bits(list.items, list.count * sizeof(*list.items));
	ss_vector_free(&list);
	if (!ok)
		return ss_error_no_memory();
	(void)snprintf(ret, SS_SIGNATURE_SIZE, "%016" PRIx64 "%016" PRIx64,
		       (uint64_t)hash.high64, (uint64_t)hash.low64);
	return NULL;
}
