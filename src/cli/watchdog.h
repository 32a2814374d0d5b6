/*
 * Ends the program if reading a process never returns, because its memory or memory map
 * depends on a file system or a userfaultfd(2) that does not answer. No call can interrupt
 * such a read. When the program ends, the kernel releases the target. Where it is slow only because it
 * seldom gets a CPU, it goes on for four times as long.
 */
#ifndef SS_CLI_WATCHDOG_H
#define SS_CLI_WATCHDOG_H

#include "stacksnap.h"
#include "stacksnap/record.h"

/* Starts watching a capture whose freeze is limited to timeout_ms (0: the default). Only
   one process can be watched at a time. */
void ss_watchdog_begin(pid_t pid, unsigned timeout_ms);

/* Starts watching a recording: the limit is for each read of the process. If it is exceeded,
   the file stays without a summary. */
void ss_watchdog_begin_recording(pid_t pid, const struct ss_recorder *recorder);

/* Stops watching. */
void ss_watchdog_end(void);

#endif
