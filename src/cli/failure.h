/*
 * Messages on standard error, and exit statuses.
 */
#ifndef SS_CLI_FAILURE_H
#define SS_CLI_FAILURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "stacksnap.h"
#include "stacksnap/record.h"

/*
 * Messages on stderr. Every message is written here: it may contain names from the target,
 * so it is escaped.
 */

/* Exit statuses. For several targets it is the worst one, but NOTHING only if all of them
   failed. Wrong usage is EX_USAGE (64). */
enum ss_exit_status {
	SS_STATUS_WHOLE = 0,
	SS_STATUS_PARTIAL = 1,
	SS_STATUS_NOTHING = 2,
};

/* Prints "stacksnap: MESSAGE", and the remedy as a hint in a second line if there is one. Without an
   error it does nothing. */
void ss_failure_print(const struct ss_error *error);

/* The same; returns NOTHING after an error, else status. */
int ss_failure_status(const struct ss_error *error, int status);

/* Prints "stacksnap: " and a formatted line. */
void ss_failure_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line of a list that belongs to the message before. */
void ss_failure_list(const char *text);

/* Prints a hint: what to do about the message before. */
void ss_failure_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports what is missing from a snapshot: one line on stderr for each reason. */

/* See ss_missing_write(). max_stack is the limit of the copy of each stack. */
void ss_incomplete_print(const struct ss_snapshot *snapshot, size_t max_stack,
			 bool strict);

/* Prints which modules could not be read, if functions have no names for that reason. */
void ss_incomplete_print_modules(const struct ss_snapshot *snapshot);

/* Measures the duration of each phase, for --verbose. */

enum ss_phase {
	SS_PHASE_OPEN,
	SS_PHASE_CAPTURE,
	SS_PHASE_UNWIND,
	SS_PHASE_SYMBOLIZE,
	SS_PHASE_DIAGNOSE,
	SS_PHASE_RENDER,
	SS_PHASE_COUNT,
};

struct ss_phases {
	uint64_t spent_ns[SS_PHASE_COUNT];
	enum ss_phase current; /* COUNT: none */
	uint64_t begun_ns;     /* CLOCK_MONOTONIC */
};

/* Ends the current phase and begins the next one (COUNT: none). */
void ss_phases_enter(struct ss_phases *phases, enum ss_phase phase);

/* Prints the times, how much was copied and which modules had problems on stderr. */
void ss_phases_print(const struct ss_phases *phases, const struct ss_snapshot *snapshot);

/* What stacksnap record says on stderr: a line while it works, and the summary. */

/* What is recorded, and what has been reported, so that it is not repeated. */
struct ss_record_report {
	bool on_cpu; /* the option */
	bool undropped;
};

/* A progress function of a recorder; report is a struct ss_record_report. On a terminal it
   updates one line. It also reports, once, that old samples cannot be dropped. */
void ss_record_report_progress(void *report, const struct ss_recorder_summary *summary);

/* Prints the summary. path is that of the recording; NULL: standard output. */
void ss_record_report_end(const struct ss_recorder_summary *summary, const char *path,
			  struct ss_record_report *report);

#endif
