/*
 * Reads definitions that samples refer to: frames, stacks and system calls.
 */
#include <string.h>

#include "recording/recording.h"

/* The call of a runtime. Kinds of newer writers are kept; their name is unknown. */
static void read_call(const struct ss_scope *scope, struct ss_cursor *c,
		      struct ss_place_key *key)
{
	key->kind = ss_cursor_index(c, SS_FORMAT_KINDS_MAX);
	key->function = ss_scope_read_text(scope, c);
	key->file = ss_scope_read_text(scope, c);
	key->line = ss_cursor_index(c, UINT32_MAX);
}

bool ss_frame_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *c)
{
	struct ss_place_key key = { .module = SS_ID_NONE };
	uint32_t module = ss_cursor_index(c, scope->modules.items.count + 1);
	bool added = false;

	if (module && !c->failed)
		key.module = scope->modules.items.items[module - 1];
	key.value = ss_cursor_uleb128(c);
	key.flags = ss_cursor_index(c, SS_FRAME_FLAGS_END);
	bool call = ss_frame_flags_source(key.flags) == SS_FROM_RUNTIME;
	if (call)
		read_call(scope, c, &key);
	else if (!module)
		key.area = ss_scope_read_text(scope, c);
	if (!call && !module && c->at < c->end) /* older recordings have no process */
		key.process = ss_locals_read(&scope->processes, c) + 1;
	if (c->failed || ss_frame_flags_source(key.flags) > SS_FROM_RUNTIME ||
	    (call &&
	     (module || key.value || key.kind == SS_FRAME_NATIVE || !key.function)))
		return false;
	return ss_locals_add(recording, &scope->places, &scope->locals,
			     ss_recording_number(recording, &recording->place_ids, &key,
						 sizeof(key), SS_PLACES_MAX, &added));
}

static void put_word(struct ss_buffer *key, uint32_t word)
{
	ss_buffer_add(key, &word, sizeof(word));
}

/*
 * The limit on the frames of all stacks, which are kept expanded: a few bytes of a file can
 * stand for a million of them. It grows with the size of the file.
 */
static uint64_t words_max(const struct ss_recording *recording)
{
	return SS_STACK_WORDS + SS_STACK_WORDS_PER_BYTE * recording->info.size;
}

/* Duplicate stacks cost time, too. */
static bool has_room(struct ss_recording *recording, size_t frames)
{
	uint64_t most = words_max(recording);
	uint64_t kept = recording->stack_ids.byte_count / sizeof(uint32_t) + frames;

	recording->words_read += SS_STACK_PLACES + frames;
	return kept <= SS_MIN(most, (uint64_t)SS_STACK_WORDS_MAX) &&
	       recording->words_read <= most * SS_STACK_WORDS_TIMES;
}

/* Reads the end, the reason and the shared frames, and leaves space for the listed
   ones. */
static bool begin_key(struct ss_scope *scope, uint32_t end, uint32_t reason, size_t count,
		      size_t shared)
{
	size_t last = scope->last.size / sizeof(uint32_t);

	scope->key.size = 0;
	put_word(&scope->key, end);
	put_word(&scope->key, reason);
	for (size_t i = 0; i < count; i++)
		put_word(&scope->key, 0);
	if (shared)
		ss_buffer_add(&scope->key,
			      scope->last.bytes + (last - shared) * sizeof(uint32_t),
			      shared * sizeof(uint32_t));
	return !scope->key.failed;
}

/*
 * Reads a stack, which is written outermost frame first and shares its first frames with
 * the stack before. The key has innermost frames first, so it is filled from its end.
 */
bool ss_stack_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *c)
{
	uint32_t end = ss_cursor_index(c, 256);
	uint32_t reason = ss_scope_read_text(scope, c);
	size_t last = scope->last.size / sizeof(uint32_t);
	size_t shared = ss_cursor_index(
		c, last >= SS_STACK_PLACES ? last - SS_STACK_PLACES + 1 : 1);
	size_t count = ss_cursor_index(c, (size_t)(c->end - c->at) + 1);
	bool added = false;

	if (c->failed || shared + count > SS_RECORD_FRAMES_MAX)
		return false;
	if (!has_room(recording, shared + count))
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	if (!begin_key(scope, end, reason, count, shared))
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	for (size_t i = count; i > 0; i--) {
		uint32_t place = ss_locals_read(&scope->places, c);
		memcpy(scope->key.bytes + (SS_STACK_PLACES + i - 1) * sizeof(place),
		       &place, sizeof(place));
	}
	if (c->failed)
		return false;
	uint32_t id = ss_recording_number(recording, &recording->stack_ids,
					  scope->key.bytes, scope->key.size, SS_ID_NONE,
					  &added);
	struct ss_buffer swapped = scope->last;
	scope->last = scope->key;
	scope->key = swapped;
	return ss_locals_add(recording, &scope->segment->stacks, &recording->locals, id);
}

bool ss_call_read(struct ss_recording *recording, struct ss_scope *scope,
		  struct ss_cursor *c)
{
	if (recording->locals >= SS_LOCALS_MAX ||
	    scope->segment->calls.count >= SS_CALLS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	struct ss_recorded_call *call = ss_vector_push(&scope->segment->calls);
	if (!call)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	recording->locals++;
	call->number = ss_decode_zigzag(c);
	call->argument = ss_cursor_uleb128(c);
	call->wait = NULL;
	return !c->failed && ss_call_wait_read(recording, c, &call->wait);
}
