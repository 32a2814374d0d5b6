/*
 * Captures as minidumps.
 */
#ifndef SS_CRASH_MINIDUMP_H
#define SS_CRASH_MINIDUMP_H

#include "stacksnap.h"

struct ss_capture;

enum {
	/* With the environment and the command line, which may contain secrets. */
	SS_MINIDUMP_ENVIRONMENT = 1,
};

/*
 * Writes a capture as a minidump to fd: threads with their registers and stacks, modules with
 * build-ids, and the signal that ended the process. The environment and the command line,
 * which are at the beginning of the main thread's stack, are left out unless flags has
 * SS_MINIDUMP_ENVIRONMENT. Registers of threads that were not stopped are mostly unknown, and
 * written as 0. Errors: INVALID (larger than 4 GiB), UNSUPPORTED (its processor), NO_MEMORY,
 * SYSTEM.
 */
struct ss_error *ss_capture_write_minidump(const struct ss_capture *capture,
					   unsigned flags, int fd);

#endif
