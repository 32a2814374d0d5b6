/*
 * Reads crash reports: the JSON that "stacksnap core" and "stacksnap run" write. They are
 * untrusted and may be from other machines.
 */
#ifndef SS_CLI_CRASH_READER_H
#define SS_CLI_CRASH_READER_H

#include <stdbool.h>

#include "base/intern.h"
#include "report/crash.h"

struct ss_crash_reader {
	struct ss_crash_reports reports; /* what was read: strings in strings */
	struct ss_intern *strings;
};

/* False without memory. */
bool ss_crash_reader_init(struct ss_crash_reader *reader);
void ss_crash_reader_deinit(struct ss_crash_reader *reader);

/* Adds what a file contains: one document, or one on each line. Others count as skipped.
   file_ns: when it was written, for reports without a time. False without memory. */
bool ss_crash_reader_add(struct ss_crash_reader *reader, const char *bytes, size_t size,
			 uint64_t file_ns);

#endif
