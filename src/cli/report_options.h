/*
 * The options of "stacksnap report".
 */
#ifndef SS_CLI_REPORT_OPTIONS_H
#define SS_CLI_REPORT_OPTIONS_H

#include <argp.h>

#include "cli/moment.h"
#include "cli/selection.h"
#include "report/report.h"

struct ss_report_arguments {
	const struct ss_reporter *reporter;
	const char *output; /* a pattern, or NULL: stdout */
	struct ss_moment from;
	struct ss_moment to;
	struct ss_selection selection; /* threads and states */
	SS_VECTOR(regex_t) modules;    /* none: all */
	bool raw;
	bool verbose;
	bool debuginfod;
	unsigned symbolize_flags;
	const char *debug_dir;
	const char *sysroot;
	unsigned threshold_percent;
	unsigned rows;
	SS_VECTOR(const char *) files; /* of argv */
};

/* Its input is a struct ss_report_arguments, already initialised. Ends the process with
   EX_USAGE where a value is wrong. */
extern const struct argp ss_report_argp;

void ss_report_arguments_init(struct ss_report_arguments *arguments);
void ss_report_arguments_deinit(struct ss_report_arguments *arguments);

#endif
