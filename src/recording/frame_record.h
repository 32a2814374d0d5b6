/*
 * Converts frames of a snapshot to frames of a recording.
 */
#ifndef SS_RECORDING_FRAME_RECORD_H
#define SS_RECORDING_FRAME_RECORD_H

#include "recording/writer.h"

/* process: its handle. modules: handles by module_index. Texts remain the frame's. */
struct ss_frame_record ss_frame_record_make(const struct ss_frame *frame,
					    uint32_t process, const uint32_t *modules);

/* The kind of a frame in a recording: code of no file with a name is JIT. */
enum ss_frame_kind ss_frame_record_kind(const struct ss_frame *frame);

/* The flags of a frame in a recording: SS_FRAME_... */
uint32_t ss_frame_record_flags(const struct ss_frame *frame);

#endif
