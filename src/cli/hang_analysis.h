/*
 * From an observed process to a verdict and a report, in the sandbox.
 */
#ifndef SS_CLI_HANG_ANALYSIS_H
#define SS_CLI_HANG_ANALYSIS_H

#include "cli/file_requests.h"
#include "cli/hang_observation.h"

struct ss_hang_analysis {
	const struct ss_options *options;
	struct ss_hang_observation *observation;
	struct ss_output *output;
	bool color;
	enum ss_verdict quiet_below; /* writes nothing if the verdict is less serious */
	bool asked_goroutines;
	bool repeated;		       /* captures were taken once more, with a plan */
	bool completed;		       /* threads were stopped to complete their stacks */
	bool privileged;	       /* as in struct ss_snap_analysis */
	bool died;		       /* the children that interpret have failed */
	struct ss_late_reader *reader; /* of the first capture, while it runs */
	struct ss_late_reader *checker; /* the same of the last one, for checks only */
	struct ss_row_source rows;
	struct ss_file_requests requests; /* of the caller, who frees what they hold */
};

/* Writes the report; *ret is the verdict. Errors: SYSTEM (the waits could not be
   analyzed, or the output cannot be written), NO_MEMORY. */
struct ss_error *ss_hang_analysis_run(struct ss_hang_analysis *analysis,
				      enum ss_verdict *ret);

#endif
