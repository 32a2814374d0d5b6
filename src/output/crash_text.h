/*
 * The words for a signal that ended a process.
 */
#ifndef SS_OUTPUT_CRASH_TEXT_H
#define SS_OUTPUT_CRASH_TEXT_H

#include <stdio.h>

#include "stacksnap.h"

/* "SIGSEGV", or "signal 40". Writes at most size bytes with the NUL. */
void ss_crash_name(int signal, char *text, size_t size);

/* Two lines such as "killed by SIGSEGV in thread 4711: no memory is mapped at 0x10" and
   "signature: read_address [3b0a...]", if a signal ended the process. */
void ss_crash_write(const struct ss_snapshot *snapshot, FILE *out);

/* Its registers. */
void ss_crash_write_registers(const struct ss_snapshot *snapshot, FILE *out);

#endif
