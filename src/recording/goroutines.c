/*
 * Reads the goroutines of recorded snapshots.
 */
#include "recording/format.h"
#include "recording/recording.h"

/* A number below count, or UINT32_MAX for 0: it is stored as index + 1. */
static uint32_t read_thread(const struct ss_locals *threads, struct ss_cursor *cursor)
{
	uint32_t thread = ss_cursor_index(cursor, threads->items.count + 1);

	return thread && !cursor->failed ? threads->items.items[thread - 1] : UINT32_MAX;
}

bool ss_goroutine_read(struct ss_recording *recording, struct ss_scope *scope,
		       struct ss_cursor *cursor)
{
	struct ss_recorded_goroutine goroutine = { .tick = ss_cursor_uleb128(cursor) };

	goroutine.process = ss_locals_read(&scope->processes, cursor);
	uint64_t flags = ss_cursor_uleb128(cursor);
	goroutine.id = ss_cursor_uleb128(cursor);
	goroutine.status = (enum ss_goroutine_status)ss_cursor_index(
		cursor, SS_GOROUTINE_COPYSTACK + 1);
	uint32_t reason = ss_scope_read_text(scope, cursor);
	goroutine.waiting_ns = ss_cursor_uleb128(cursor);
	goroutine.thread = read_thread(&scope->segment->threads, cursor);
	goroutine.stack = ss_locals_read(&scope->segment->stacks, cursor);
	uint32_t runtime = 0; /* older recordings have none */
	if (ss_cursor_left(cursor) > 0)
		runtime = ss_scope_read_text(scope, cursor);
	if (cursor->failed)
		return false;
	goroutine.wait_reason = reason ? recording->texts.items[reason - 1] : NULL;
	goroutine.runtime = runtime ? recording->texts.items[runtime - 1] : NULL;
	goroutine.on_thread = flags & SS_GOROUTINE_ON_THREAD &&
			      goroutine.thread != UINT32_MAX;
	goroutine.changed = flags & SS_GOROUTINE_CHANGED;
	if (recording->goroutines.count >= SS_GOROUTINES_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	struct ss_recorded_goroutine *slot = ss_vector_push(&recording->goroutines);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = goroutine;
	return true;
}

size_t ss_recording_goroutine_count(const struct ss_recording *recording)
{
	return recording->goroutines.count;
}

const struct ss_recorded_goroutine *
ss_recording_goroutine(const struct ss_recording *recording, size_t index)
{
	return &recording->goroutines.items[index];
}
