/*
 * The notes of a core file: threads, the signal, the mapped files.
 */
#ifndef SS_CORE_NOTES_H
#define SS_CORE_NOTES_H

#include "core/core_file.h"

/* Reads the notes in size bytes at an offset of the file, as far as they are there. False
   without memory. */
bool ss_core_notes_read(struct ss_core_file *core, uint64_t offset, uint64_t size);

#endif
