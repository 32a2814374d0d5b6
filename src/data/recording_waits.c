/*
 * What threads of a recording wait for.
 */
#include <stdlib.h>

#include "data/recording.h"
#include "data/snapshot_fields.h"
#include "stacksnap/record.h"

enum { LIST_MAX = SS_WAIT_RECORD_LIST_MAX };

void ss_wait_record_write(struct ss_buffer *out, const struct ss_wait *wait)
{
	const struct ss_schema_writer writer = { .out = out, .list_max = LIST_MAX };
	struct ss_wait copy = *wait;
	struct ss_descriptor descriptor;

	copy.fds_incomplete |= wait->fd_count > LIST_MAX;
	if (wait->descriptor) {
		descriptor = *wait->descriptor;
		descriptor.watches_incomplete |= descriptor.watch_count > LIST_MAX;
		copy.descriptor = &descriptor;
	}
	ss_schema_write(&writer, &ss_recorded_wait_schema, &copy);
}

static const char *keep_text(void *data, const uint8_t *bytes, size_t size)
{
	struct ss_recording *recording = data;
	uint32_t number = ss_recording_text(recording, bytes, size);

	return number ? recording->texts.items[number - 1] : NULL;
}

/* Memory that lives as long as the recording. NULL: there is a reason to reject the chunk. */
static void *keep(void *data, size_t size, bool owned)
{
	struct ss_recording *recording = data;

	(void)owned; /* no struct of a wait has such members */
	if (recording->wait_bytes + size > SS_WAIT_RECORD_BYTES_MAX) {
		recording->waits_full = true;
		(void)ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
		return NULL;
	}
	recording->wait_bytes += size;
	return ss_recording_alloc(recording, size);
}

bool ss_wait_record_read(struct ss_recording *recording, struct ss_cursor *cursor,
			 struct ss_wait *ret)
{
	struct ss_schema_reader reader = { .cursor = *cursor,
					   .list_max = LIST_MAX,
					   .text = keep_text,
					   .allocate = keep,
					   .data = recording };

	ss_schema_read(&reader, &ss_recorded_wait_schema, ret);
	ret->children_total = SS_MAX(ret->children_total, ret->child_count);
	*cursor = reader.cursor;
	return !cursor->failed;
}

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
	void **block = slot ? ss_vector_push(&recording->blocks) : NULL;
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
