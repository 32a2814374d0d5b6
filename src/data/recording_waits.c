/*
 * Reads what threads of a recording wait for.
 */
#include <stdlib.h>

#include "data/recording.h"
#include "data/recording_wait_record.h"
#include "stacksnap/record.h"

bool ss_waits_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *cursor)
{
	const struct ss_locals *threads = &scope->segment->threads;
	uint32_t thread = ss_cursor_index(cursor, threads->items.count);
	uint32_t owner = ss_cursor_index(cursor, threads->items.count + 1);
	uint64_t flags = ss_cursor_uleb128(cursor);

	if (cursor->failed)
		return false;
	if (recording->waits.count >= SS_WAITS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	struct ss_recorded_wait *wait = ss_vector_push(&recording->waits);
	if (!wait)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	wait->thread = threads->items.items[thread];
	wait->owner = owner ? threads->items.items[owner - 1] : UINT32_MAX;
	wait->in_cycle = flags & SS_WAIT_IN_CYCLE;
	if (ss_wait_record_read(recording, cursor, &wait->wait))
		return true;
	recording->waits.count--;
	return false;
}

/* Reads a wait that is not known yet. */
static bool add_call_wait(struct ss_recording *recording, const uint8_t *bytes,
			  size_t size, const struct ss_wait **ret)
{
	struct ss_cursor fields = { .at = bytes, .end = bytes + size };
	struct ss_wait wait;

	recording->wait_bytes += sizeof(wait) + size; /* of the copy and its key */
	if (!ss_wait_record_read(recording, &fields, &wait))
		return false;
	const struct ss_wait **slot = ss_vector_push(&recording->call_waits);
	void **block = slot ? ss_vector_push(&recording->wait_blocks) : NULL;
	struct ss_wait *kept = block ? malloc(sizeof(*kept)) : NULL;
	if (!kept ||
	    ss_idtable_add(&recording->call_wait_ids, bytes, size, NULL) == SS_ID_NONE) {
		free(kept);
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	}
	*kept = wait;
	*slot = *ret = *block = kept;
	return true;
}

bool ss_call_wait_read(struct ss_recording *recording, struct ss_cursor *cursor,
		       const struct ss_wait **ret)
{
	size_t size = ss_cursor_left(cursor);
	const uint8_t *bytes = ss_cursor_take(cursor, size);

	if (size == 0)
		return true;
	uint32_t id = ss_idtable_find(&recording->call_wait_ids, bytes, size);
	if (id != SS_ID_NONE) {
		*ret = recording->call_waits.items[id];
		return true;
	}
	if (recording->call_waits.count >= SS_CALL_WAITS_MAX ||
	    recording->wait_bytes + sizeof(**ret) + size > SS_WAIT_RECORD_BYTES_MAX)
		recording->waits_full = true;
	if (!recording->waits_full && add_call_wait(recording, bytes, size, ret))
		return true;
	if (!recording->waits_full)
		return false;
	/* The call alone is known. */
	recording->refusal = SS_CHUNK_DAMAGED;
	recording->info.waits_left_out++;
	return true;
}

size_t ss_recording_wait_count(const struct ss_recording *recording)
{
	return recording->waits.count;
}

const struct ss_recorded_wait *ss_recording_wait(const struct ss_recording *recording,
						 size_t index)
{
	return &recording->waits.items[index];
}
