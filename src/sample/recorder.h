/*
 * What the tool needs of a recorder besides stacksnap/record.h.
 */
#ifndef SS_SAMPLE_RECORDER_H
#define SS_SAMPLE_RECORDER_H

#include "stacksnap/record.h"

/*
 * How long the current read of the target (or of one of its children) has lasted; 0: none
 * is in progress. If memory of the target does not answer it grows without end, and only
 * the end of the program ends the read. Any thread may call it.
 */
uint64_t ss_recorder_read_ns(const struct ss_recorder *recorder);

#endif
