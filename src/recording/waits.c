/*
 * Reads what threads of a recorded snapshot wait for.
 */
#include "recording/recording.h"
#include "recording/wait_record.h"

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

size_t ss_recording_wait_count(const struct ss_recording *recording)
{
	return recording->waits.count;
}

const struct ss_recorded_wait *ss_recording_wait(const struct ss_recording *recording,
						 size_t index)
{
	return &recording->waits.items[index];
}
