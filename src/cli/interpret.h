/*
 * From a capture to what is printed: unwinding, names, layout. All of it reads what a
 * hostile process may have prepared, so it happens in a sandbox. Where that dies, less
 * is tried, and what is missing is said: without the module that it was reading, then
 * without names, and at last the place where each thread stood.
 */
#ifndef SS_CLI_INTERPRET_H
#define SS_CLI_INTERPRET_H

#include <stdbool.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/phases.h"

/* Adds what is missing of these threads to the capture, as far as that is possible. */
typedef void ss_interpretation_complete(void *data, const pid_t *tids, size_t count);

struct ss_interpretation {
	const struct ss_options *options;
	struct ss_capture *capture;
	const struct ss_selection_run *run;
	struct ss_phases *phases;
	struct ss_output *output;
	bool listing;  /* threads can be listed only: the process may not be looked at */
	bool separate; /* something was shown before */
	bool color;
	/* Whom the process belongs to, whose rights suffice. */
	bool owner_known;
	uid_t uid;
	gid_t gid;
	/* Asked once at most, if stacks cannot be told without more; or NULL. */
	ss_interpretation_complete *complete;
	void *complete_data;
};

/* Shows the capture and tells what is missing; *ret says whether anything is. Errors:
   NO_PROCESS (no threads), SYSTEM (the output cannot be written), NO_MEMORY. */
struct ss_error *ss_interpret(const struct ss_interpretation *job, bool *ret_missing);

#endif
