/*
 * From what was seen of a process to a verdict and a report, in a sandbox.
 */
#ifndef SS_CLI_HANG_JUDGE_H
#define SS_CLI_HANG_JUDGE_H

#include "cli/hang_look.h"
#include "cli/output.h"
#include "view/hang.h"

struct ss_hang_judgement {
	const struct ss_options *options;
	const struct ss_hang_look *look;
	ss_hang_writer *writer;
	struct ss_output *output;
	bool color;
	enum ss_verdict quiet_below; /* nothing is written unless it is this bad */
};

/* Writes the report and gives the verdict. Errors: SYSTEM (what interprets died, or the
   output cannot be written), NO_MEMORY. */
struct ss_error *ss_hang_judge(const struct ss_hang_judgement *job, enum ss_verdict *ret);

#endif
