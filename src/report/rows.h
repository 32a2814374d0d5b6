/*
 * The format "rows": one JSON object a line, each a row of a table, see stacksnap-rows(5).
 */
#ifndef SS_REPORT_ROWS_H
#define SS_REPORT_ROWS_H

#include <stdio.h>

#include "stacksnap.h"

/* What rows say besides the snapshot. */
struct ss_row_options {
	const char *batch;
	const char *boot_id;	   /* of this machine; "": not known */
	const char *const *labels; /* "KEY=VALUE" */
	size_t label_count;
};

/* Writes the row of a process that could not be captured. host may be NULL. */
void ss_rows_write_failure(const struct ss_row_options *options, const char *host,
			   pid_t pid, uint64_t time_ns, const char *problem, FILE *out);

/* Writes the row of table "frames" for the thread with that index, which has the calls at one
   place, of a symbolized snapshot. False, and nothing is written, without a name. */
bool ss_rows_write_names(const struct ss_snapshot *snapshot, size_t index, const char *id,
			 FILE *out);

#endif
