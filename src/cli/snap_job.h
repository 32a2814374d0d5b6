/*
 * The snapshot of one target: opens and captures it, and completes the capture as the
 * analysis requests.
 */
#ifndef SS_CLI_SNAP_JOB_H
#define SS_CLI_SNAP_JOB_H

#include "cli/snap_analysis.h"

struct ss_snap_job {
	struct ss_snap_analysis
		analysis; /* its members up to output are set by the caller */
	struct ss_target *target;
	struct ss_capture_options options;
	struct ss_gather_plan plan;    /* for JIT code, or frames of runtimes */
	struct ss_late_reader *reader; /* of the current capture; NULL: not needed yet */
	/* Those of runtimes and of goroutines, for later captures of the same process. */
	struct ss_gather_plan runtime_plan;
	struct ss_gather_plan goroutine_plan;
	bool has_runtimes;
	bool has_goroutines;
	bool listing; /* capturing was refused: only names and states of threads */
	/* Threads that were stopped afterwards to read their registers, ascending; owned. */
	pid_t *stopped;
	size_t stopped_count;
};

/* Sets target, options and the capture of the analysis. If the selection matches no thread,
   that is the error, even after another failure. Errors: those of ss_target_open() and
   ss_capture_take(). */
struct ss_error *ss_snap_job_take(struct ss_snap_job *job, struct ss_selection_run *run);
void ss_snap_job_deinit(struct ss_snap_job *job);

#endif
