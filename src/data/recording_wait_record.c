#include "data/recording_wait_record.h"

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
	void **slot = ss_vector_push(&recording->wait_blocks);
	if (slot)
		*slot = calloc(1, size);
	if (!slot || !*slot) {
		(void)ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		return NULL;
	}
	recording->wait_bytes += size;
	return *slot;
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
