/*
 * How a process crashed: its signature, the signal, and groups of crashes. As text and JSON.
 */
#ifndef SS_REPORT_CRASH_H
#define SS_REPORT_CRASH_H

#include <stdint.h>
#include <stdio.h>

#include "base/vector.h"
#include "stacksnap.h"

/*
 * The readable signature of a crash: the functions that tell one crash from another, as "a | b |
 * c", innermost first. Frames of how a process ends (raise, abort) are left out, and functions
 * that crash on behalf of their callers (memcpy, free) are followed by the caller. A handler that raises
 * the signal again is left out, too. Of a stack overflow they are the functions of the recursion, sorted. The rule is that of Socorro, Mozilla's collector of crash
 * reports.
 */

/* For free(). Names are not escaped. "": every frame is left out. NULL without memory. */
char *ss_signature_new(const struct ss_snapshot *snapshot, const struct ss_task *thread);

/* The thread that a signal ended, or NULL. */
const struct ss_task *ss_signature_thread(const struct ss_snapshot *snapshot);

/*
 * The words for a signal that ended a process.
 */

/* "SIGSEGV", or "signal 40". Writes at most size bytes with the NUL. */
void ss_crash_name(int signal, char *text, size_t size);

/* Two lines such as "killed by SIGSEGV in thread 4711: no memory is mapped at 0x10" and
   "signature: read_address [3b0a...]", if a signal ended the process. */
void ss_crash_write(const struct ss_snapshot *snapshot, FILE *out);

/* Its registers. */
void ss_crash_write_registers(const struct ss_snapshot *snapshot, FILE *out);

/* One crash. Strings are borrowed, and "" if they are not known. */
struct ss_crash_report {
	const char *hash; /* of the stack; what crashes are grouped by */
	const char *signature;
	const char *signal;
	const char *program;
	const char *build_id; /* of the program */
	const char *host;
	uint64_t time_ns; /* CLOCK_REALTIME */
};

struct ss_crash_reports {
	SS_VECTOR(struct ss_crash_report) items;
	size_t skipped; /* files that are not crash reports */
	/* In a directory of the handler: files that it has not written, and crashes without a report
	   because of its limits. */
	size_t foreign;
	uint64_t refused;
};

struct ss_error;

/* Sorts the reports and writes a list of groups, the largest first; rows limits text (0: no
   limit). Errors: NO_MEMORY. */
struct ss_error *ss_crash_groups_write_text(struct ss_crash_reports *reports,
					    unsigned rows, FILE *out);
struct ss_error *ss_crash_groups_write_json(struct ss_crash_reports *reports, FILE *out);

#endif
