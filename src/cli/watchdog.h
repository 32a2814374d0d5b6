/*
 * Ends the program where a process cannot be read at all: where its memory, or the map of
 * it, waits for a file system or a userfaultfd(2) that does not answer. Nothing else gets
 * a thread out of that wait; with the program the kernel ends the freeze, too.
 */
#ifndef SS_CLI_WATCHDOG_H
#define SS_CLI_WATCHDOG_H

#include <sys/types.h>

/* From now on the process is read, of which no freeze is to last longer than timeout_ms
   (0: as long as it does unless told). One at a time. */
void ss_watchdog_begin(pid_t pid, unsigned timeout_ms);

/* It has been read. */
void ss_watchdog_end(void);

#endif
