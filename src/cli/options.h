/*
 * The options that commands share, as one argp table. The help and the completions
 * are made from the same table.
 */
#ifndef SS_CLI_OPTIONS_H
#define SS_CLI_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "cli/selection.h"
#include "view/render.h"

struct ss_options {
	size_t size; /* sizeof(struct ss_options) */
	const struct ss_renderer *renderer;
	const char *output; /* a pattern, or NULL: stdout */
	unsigned max_frames;
	struct ss_selection selection;
	bool raw;
	bool no_group;
	bool no_waits;
	bool verbose;
	unsigned symbolize_flags; /* enum ss_symbolize_flags */
	const char *debug_dir;
	const char *sysroot;
	enum ss_mode mode;
	unsigned interpret_ms; /* the longest that interpreting may take */
	unsigned timeout_ms;   /* 0: the library's choice, as below */
	size_t max_stack;      /* bytes */
	size_t max_total;      /* bytes */
};

/* The parser of the shared options; its input is a struct ss_options. Ends the
   process with EX_USAGE where a value is wrong. */
extern const struct argp ss_options_argp;

/* Fills in the defaults. */
void ss_options_init(struct ss_options *options);
void ss_options_deinit(struct ss_options *options);

/* Ends the process with EX_USAGE if error is one, after telling it. Frees it. */
void ss_options_check(const struct argp_state *state, struct ss_error *error);

#endif
