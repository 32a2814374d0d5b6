/*
 * The words for a signal that ended a process.
 */
#ifndef SS_OUTPUT_CRASH_TEXT_H
#define SS_OUTPUT_CRASH_TEXT_H

#include <stdio.h>

#include "stacksnap.h"

/* "SIGSEGV", or "signal 40". Writes at most size bytes with the NUL. */
void ss_crash_name(int signal, char *text, size_t size);

/* A line such as "killed by SIGSEGV in thread 4711: no memory is mapped at 0x10". */
void ss_crash_write(const struct ss_process *process, FILE *out);

#endif
