/*
 * The options that several commands share, as one argp table. The help and the shell
 * completions are generated from it.
 */
#ifndef SS_CLI_OPTIONS_H
#define SS_CLI_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "cli/selection.h"
#include "cli/symbol_options.h"
#include "output/format.h"

struct ss_options {
	size_t size;			   /* sizeof(struct ss_options) */
	enum ss_format_input format_input; /* what the command writes */
	const struct ss_format *format;
	const char *output; /* pattern for ss_output_open(), or NULL: stdout */
	unsigned max_frames;
	struct ss_selection selection;
	bool no_group;
	bool no_waits;
	bool verbose;
	struct ss_symbol_options symbols;
	enum ss_mode mode;
	unsigned interpret_ms; /* limit for the analysis of a capture */
	unsigned timeout_ms;   /* 0: default of the library, also below */
	size_t max_stack;      /* bytes */
	size_t max_total;      /* bytes */
};

/* The parser of the shared options; its input is a struct ss_options. Exits with EX_USAGE
   if a value is invalid. */
extern const struct argp ss_options_argp;

/* Fills in the defaults. */
void ss_options_init(struct ss_options *options);
void ss_options_deinit(struct ss_options *options);

/* Finds the format with this name that can write this input. If there is none, prints the
   known formats and exits with EX_USAGE. */
const struct ss_format *ss_options_parse_format(const struct argp_state *state,
						enum ss_format_input input,
						const char *name);

/* Parses a decimal number from min to max. Exits with EX_USAGE if text is not one. */
uint64_t ss_options_parse_number(const struct argp_state *state, const char *name,
				 const char *text, uint64_t min, uint64_t max);

/* If error is not NULL, prints it and exits with EX_USAGE. */
void ss_options_check(const struct argp_state *state, struct ss_error *error);

#endif
