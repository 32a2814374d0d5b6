/*
 * How to get what a snapshot for people does not show.
 */
#ifndef SS_CLI_ADVICE_H
#define SS_CLI_ADVICE_H

#include <stdbool.h>

#include "stacksnap.h"

struct ss_advice_options {
	bool privileged; /* root would see no more */
	bool debuginfod; /* --debuginfod was given */
	bool packages;	 /* files are those of this machine's packages */
	/* Of ss_snapshot_symbolize(), to keep what was found; or NULL. */
	struct ss_session *session;
};

/* Returns one line: missing names and their packages or build-ids, and what root would see.
   NULL: nothing is missing, or no memory. The caller frees. The line may contain any byte of
   the target's names. */
char *ss_advice_new(const struct ss_snapshot *snapshot,
		    const struct ss_advice_options *options);

#endif
