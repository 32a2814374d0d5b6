/*
 * The options of "stacksnap report".
 */
#ifndef SS_CLI_REPORT_OPTIONS_H
#define SS_CLI_REPORT_OPTIONS_H

#include <argp.h>

#include "cli/common_options.h"
#include "cli/row_options.h"
#include "cli/selection.h"
#include "cli/symbol_options.h"
#include "cli/time_argument.h"
#include "diagnose/wait_table.h"

struct ss_report_arguments {
	struct ss_common_options common;
	struct ss_time_argument from;
	struct ss_time_argument to;
	struct ss_selection selection; /* threads and states */
	SS_VECTOR(regex_t) modules;    /* empty: all */
	struct ss_symbol_options symbols;
	struct ss_wait_table *waits; /* owned; functions that wait, or NULL */
	unsigned threshold_percent;
	unsigned rows;
	bool by_time; /* --weight=time */
	struct ss_row_arguments labels;
	bool by_host;
	const char *by_label;	       /* key, "": all; or NULL */
	bool diff;		       /* of two arguments */
	bool native;		       /* show the native frames of interpreters, too */
	SS_VECTOR(const char *) files; /* in argv */
};

/* Its input is an initialised struct ss_report_arguments. Exits with EX_USAGE if a value is
   invalid. */
extern const struct argp ss_report_argp;

void ss_report_arguments_init(struct ss_report_arguments *arguments);
void ss_report_arguments_deinit(struct ss_report_arguments *arguments);

#endif
