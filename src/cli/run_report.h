/*
 * The reports of "stacksnap run". A process is captured at once, and held until its report is
 * written: what is missing can be read from its memory. Interpretation and output are done in
 * a child process, one report after the other, so that other processes of the command go on.
 */
#ifndef SS_CLI_RUN_REPORT_H
#define SS_CLI_RUN_REPORT_H

#include "cli/options.h"
#include "stacksnap.h"
#include "crash/supervisor.h"

struct ss_run_reports;

/* options must outlive the reports. Errors: NO_MEMORY. */
struct ss_error *ss_run_reports_new(const struct ss_options *options,
				    struct ss_run_reports **ret);
void ss_run_reports_free(struct ss_run_reports *reports);

/* Captures a process; traced: it is held. After an error it goes on. */
struct ss_error *ss_run_reports_add(struct ss_run_reports *reports,
				    struct ss_supervisor *supervisor, pid_t pid,
				    bool traced);

/* Whether there is a report of that process. */
bool ss_run_reports_has(const struct ss_run_reports *reports, pid_t pid);

/* Starts to write the next report unless another one is being written. */
void ss_run_reports_start(struct ss_run_reports *reports,
			  struct ss_supervisor *supervisor);

/* To be called when a child process has ended. */
void ss_run_reports_end(struct ss_run_reports *reports, struct ss_supervisor *supervisor,
			pid_t child);

bool ss_run_reports_are_pending(const struct ss_run_reports *reports);

/* Gives up what is not written yet, and lets its processes go on. */
void ss_run_reports_drop(struct ss_run_reports *reports,
			 struct ss_supervisor *supervisor);

#endif
