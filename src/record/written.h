/*
 * From a frame as it was unwound to one as it is recorded.
 */
#ifndef SS_RECORD_WRITTEN_H
#define SS_RECORD_WRITTEN_H

#include "record/writer.h"

/* process: its handle. modules: handles, by the frame's module_index. area stays the
   frame's. */
struct ss_written_frame ss_written_frame_of(const struct ss_frame *frame,
					    uint32_t process, const uint32_t *modules);

#endif
