/*
 * Snapshots of several processes for a format that merges them. All are captured first, one
 * directly after the other; then those of one owner are interpreted together, in one child
 * process, since nobody may find out or change what is known about processes of others.
 */
#ifndef SS_CLI_SNAP_PROCESSES_H
#define SS_CLI_SNAP_PROCESSES_H

#include "interpret/files.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/selection.h"

struct ss_snap_processes {
	const struct ss_options *options;
	const struct ss_target_argument *targets;
	size_t count;
	struct ss_debuginfod *debuginfod; /* or NULL */
	struct ss_output *output;
	/* Results: how many were shown with stacks, and have anything missing. */
	size_t shown;
	size_t missing;
};

/* Prints a message for each process that cannot be captured. Errors: SYSTEM (the output cannot
   be written), NO_MEMORY. */
struct ss_error *ss_snap_processes_run(struct ss_snap_processes *processes);

#endif
