/*
 * Ends the program where a process cannot be read at all: where its memory, or the map of
 * it, waits for a file system or a userfaultfd(2) that does not answer. Nothing else gets
 * a thread out of that wait; with the program the kernel ends the freeze, too.
 */
#ifndef SS_CLI_WATCHDOG_H
#define SS_CLI_WATCHDOG_H

#include "stacksnap.h"

/* From now on the process is read, of which no freeze is to last longer than timeout_ms
   (0: as long as it does unless told). One at a time. */
void ss_watchdog_begin(pid_t pid, unsigned timeout_ms);

/* The same for a recording, in which no look at the process is to last so long. What was
   written until then is left, without an end. */
void ss_watchdog_follow(pid_t pid, const struct ss_recorder *recorder);

/* It has been read, or recorded. */
void ss_watchdog_end(void);

#endif
