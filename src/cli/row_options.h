/*
 * The options of the format "rows": --batch, --label and --env.
 */
#ifndef SS_CLI_ROW_OPTIONS_H
#define SS_CLI_ROW_OPTIONS_H

#include <argp.h>
#include <stdint.h>

#include "base/vector.h"
#include "report/rows.h"
#include "stacksnap.h"

struct ss_row_arguments {
	const char *batch; /* NULL: the time, see ss_row_arguments_begin() */
	char time[32];
	SS_VECTOR(const char *) labels;	   /* "KEY=VALUE", in argv */
	SS_VECTOR(const char *) variables; /* names, in argv */
};

/* Parsers of --batch and --label, of --label, and of --env; their input is a struct
   ss_row_arguments. */
extern const struct argp ss_row_argp;
extern const struct argp ss_label_argp;
extern const struct argp ss_row_env_argp;

/* Sets batch if it is not given: the time of --at, or if at_ns is 0 the current one. */
void ss_row_arguments_begin(struct ss_row_arguments *arguments, uint64_t at_ns);
void ss_row_arguments_deinit(struct ss_row_arguments *arguments);

/* What rows say besides the snapshot. Owns its strings. */
struct ss_row_source {
	struct ss_row_options options;
	char *batch;
	char boot_id[64];
	SS_VECTOR(char *) labels;
};

/* Fills it in. Without memory labels are missing. */
void ss_row_source_init(struct ss_row_source *source,
			const struct ss_row_arguments *arguments);
/* Adds the variables of the environment of target. */
void ss_row_source_add(struct ss_row_source *source,
		       const struct ss_row_arguments *arguments,
		       const struct ss_target *target);
void ss_row_source_deinit(struct ss_row_source *source);

#endif
