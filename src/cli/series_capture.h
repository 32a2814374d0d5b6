/*
 * Several captures of one process, one after another, which share the files of its modules.
 */
#ifndef SS_CLI_SERIES_CAPTURE_H
#define SS_CLI_SERIES_CAPTURE_H

#include <signal.h>

#include "base/vector.h"
#include "cli/snap_job.h"

struct ss_series_capture {
	/* Set by the caller: */
	const struct ss_options *options;
	const struct ss_selection_run *selection; /* as it is before the first capture */
	bool tasks;				  /* read those of asyncio */
	const sigset_t *end_signals; /* one that arrives ends a capture; or NULL */
	/* Results: */
	struct ss_selection_run run;
	struct ss_phases phases;
	struct ss_snap_job job; /* the first capture */
	SS_VECTOR(struct ss_capture *) captures;
	size_t empty;	       /* captures without a thread that is selected: dropped */
	uint64_t bytes;	       /* of the copies */
	uint64_t first_cpu_ns; /* of the first capture */
	uint64_t later_cpu_ns; /* of all others */
};

/* Adds a capture, unless no thread is selected. Errors: those of ss_snap_job_take(), INTERRUPTED. */
struct ss_error *ss_series_capture_take(struct ss_series_capture *series);
void ss_series_capture_deinit(struct ss_series_capture *series);

#endif
