/*
 * A wait (struct ss_wait) in a recording: numbered fields. Fields that are zero, NULL or
 * -1 are omitted. A reader skips fields it does not know.
 */
#ifndef SS_DATA_RECORDING_WAIT_RECORD_H
#define SS_DATA_RECORDING_WAIT_RECORD_H

#include "base/buffer.h"
#include "data/recording.h"
#include "stacksnap/record.h"

/* Limit of each list; longer ones are truncated and marked as incomplete. */
enum { SS_WAIT_RECORD_LIST_MAX = 64 };

/* Limit of the memory that all waits of a recording take. */
enum { SS_WAIT_RECORD_BYTES_MAX = 64 << 20 };

/* Appends the fields of a wait. Without memory out->failed is set. */
void ss_wait_record_write(struct ss_buffer *out, const struct ss_wait *wait);

/* Reads fields until the cursor ends. What it points to belongs to the recording. False:
   damaged, no memory, or (recording->waits_full) the limit is reached. */
bool ss_wait_record_read(struct ss_recording *recording, struct ss_cursor *cursor,
			 struct ss_wait *ret);

#endif
