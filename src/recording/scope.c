/*
 * Maps the numbers of the current segment to those of the recording, within limits.
 */
#include "recording/recording.h"

void ss_scope_deinit(struct ss_scope *scope)
{
	ss_vector_free(&scope->strings.items);
	ss_vector_free(&scope->processes.items);
	ss_vector_free(&scope->modules.items);
	ss_vector_free(&scope->places.items);
	ss_vector_free(&scope->probes.items);
	ss_buffer_deinit(&scope->key);
	ss_buffer_deinit(&scope->last);
	*scope = (struct ss_scope){};
}

bool ss_recording_refuse(struct ss_recording *recording, enum ss_chunk_result why)
{
	recording->refusal = why;
	return false;
}

uint32_t ss_recording_number(struct ss_recording *recording, struct ss_idtable *table,
			     const void *key, size_t size, size_t max, bool *added)
{
	uint32_t id = ss_idtable_add(table, key, size, added);

	if (id != SS_ID_NONE && id < max)
		return id;
	*added = false;
	(void)ss_recording_refuse(recording, id == SS_ID_NONE ? SS_CHUNK_NO_MEMORY :
								SS_CHUNK_TOO_LARGE);
	return SS_ID_NONE;
}

bool ss_locals_add(struct ss_recording *recording, struct ss_locals *locals, size_t *all,
		   uint32_t number)
{
	if (number == SS_ID_NONE)
		return false;
	if (*all >= SS_LOCALS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	uint32_t *slot = ss_vector_push(&locals->items);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	++*all;
	*slot = number;
	return true;
}

uint32_t ss_locals_read(const struct ss_locals *locals, struct ss_cursor *cursor)
{
	uint32_t local = ss_cursor_index(cursor, locals->items.count);

	return cursor->failed ? SS_ID_NONE : locals->items.items[local];
}

uint32_t ss_scope_read_text(const struct ss_scope *scope, struct ss_cursor *cursor)
{
	uint32_t local = ss_cursor_index(cursor, scope->strings.items.count + 1);

	return local && !cursor->failed ? scope->strings.items.items[local - 1] : 0;
}
