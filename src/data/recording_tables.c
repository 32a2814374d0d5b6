/*
 * The tables of an open recording: what fills them, and what reads them.
 */
#include <string.h>

#include "base/vector.h"
#include "data/recording.h"
#include "stacksnap/record.h"

uint32_t ss_recording_text(struct ss_recording *recording, const uint8_t *bytes,
			   size_t size)
{
	bool added = false;

	if (!bytes || memchr(bytes, '\0', size))
		return 0;
	if (size > SS_FORMAT_TEXT_MAX ||
	    recording->text_ids.byte_count + size > SS_STRINGS_MAX) {
		(void)ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
		return 0;
	}
	uint32_t id = ss_recording_number(recording, &recording->text_ids, bytes, size,
					  SS_ID_NONE, &added);
	if (id == SS_ID_NONE || !added)
		return id == SS_ID_NONE ? 0 : id + 1;
	const char **slot = ss_vector_push(&recording->texts);
	const char *text =
		slot ? ss_intern_bytes(recording->strings, (const char *)bytes, size) :
		       NULL;
	if (!text) {
		(void)ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		return 0;
	}
	*slot = text;
	return id + 1;
}

/*
 * Maps the numbers of the current segment to those of the recording, within limits.
 */

bool ss_recording_refuse(struct ss_recording *recording, enum ss_chunk_result why)
{
	recording->refusal = why;
	return false;
}

void *ss_recording_alloc(struct ss_recording *recording, size_t size)
{
	void **slot = ss_vector_push(&recording->blocks);

	if (slot)
		*slot = calloc(1, size);
	if (slot && *slot)
		return *slot;
	(void)ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	return NULL;
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

const struct ss_recording_info *ss_recording_info(const struct ss_recording *recording)
{
	return &recording->info;
}

size_t ss_recording_process_count(const struct ss_recording *recording)
{
	return recording->processes.count;
}

const struct ss_recorded_process *
ss_recording_process(const struct ss_recording *recording, size_t index)
{
	return &recording->processes.items[index];
}

size_t ss_recording_thread_count(const struct ss_recording *recording)
{
	return recording->threads.count;
}

const struct ss_recorded_thread *ss_recording_thread(const struct ss_recording *recording,
						     size_t index)
{
	return &recording->threads.items[index];
}

size_t ss_recording_module_count(const struct ss_recording *recording)
{
	return recording->modules.count;
}

const struct ss_recorded_module *ss_recording_module(const struct ss_recording *recording,
						     size_t index)
{
	return &recording->modules.items[index];
}

size_t ss_recording_stack_count(const struct ss_recording *recording)
{
	return recording->stacks.count;
}

const struct ss_recorded_stack *ss_recording_stack(const struct ss_recording *recording,
						   size_t index)
{
	return &recording->stacks.items[index];
}

size_t ss_recording_place_count(const struct ss_recording *recording)
{
	return recording->places->stacks.count;
}

const struct ss_frame *ss_recording_place(const struct ss_recording *recording,
					  size_t index, size_t *count)
{
	*count = recording->places->stacks.items[index].count;
	return recording->places->stacks.items[index].frames;
}
