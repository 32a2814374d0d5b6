/*
 * What stacksnap record says on stderr: a line while it works, and the summary.
 */
#ifndef SS_CLI_RECORD_REPORT_H
#define SS_CLI_RECORD_REPORT_H

#include "stacksnap.h"
#include "stacksnap/record.h"

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
