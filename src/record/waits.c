/*
 * What threads of a snapshot wait for, as a recording has it.
 */
#include "record/recording.h"

static const char *read_text(struct ss_cursor *cursor,
			     const struct ss_recording *recording,
			     const struct ss_scope *scope)
{
	uint32_t number = ss_scope_read_text(scope, cursor);

	return number ? recording->texts.items[number - 1] : "";
}

bool ss_waits_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *cursor)
{
	const struct ss_locals *threads = &scope->segment->threads;
	uint32_t thread = ss_cursor_index(cursor, threads->items.count);
	uint32_t owner = ss_cursor_index(cursor, threads->items.count + 1);
	struct ss_recorded_wait wait = { .kind = read_text(cursor, recording, scope) };

	wait.text = read_text(cursor, recording, scope);
	wait.in_circle = ss_cursor_number(cursor) & SS_WAIT_IN_CIRCLE;
	if (cursor->failed)
		return false;
	if (recording->waits.count >= SS_WAITS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	wait.thread = threads->items.items[thread];
	wait.owner = owner ? threads->items.items[owner - 1] : UINT32_MAX;
	struct ss_recorded_wait *slot = ss_vector_push(&recording->waits);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = wait;
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
