/*
 * A series of snapshots of one process: --interval, --count and --each. All are captured
 * first, and then analyzed together, so that the maps, files and names of modules are
 * read once.
 */
#ifndef SS_CLI_SERIES_H
#define SS_CLI_SERIES_H

#include "interpret/files.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/targets.h"

struct ss_series_options {
	struct ss_common_options *common; /* set by the command */
	uint64_t period_ns;		  /* 0: a single snapshot */
	size_t count; /* 0: until a signal, or the end of the process */
	bool each;    /* print the snapshots apart */
};

/* The input is a struct ss_series_options. */
extern const struct ss_option_group ss_series_group;

struct ss_series {
	const struct ss_options *options;
	const struct ss_series_options *series;
	const struct ss_selection_run *run; /* as it is before the first snapshot */
	struct ss_debuginfod *debuginfod;   /* or NULL */
	struct ss_output *output;
};

/* Captures until the count is reached, the process ends, or SIGINT, SIGTERM or SIGHUP
   arrives, and prints what there is; *ret says whether anything is missing. Errors: those
   of ss_snap_job_take(); SYSTEM, NO_MEMORY. */
struct ss_error *ss_series_run(const struct ss_series *series, bool *ret);

#endif
