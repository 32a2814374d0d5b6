/*
 * Options that snap, hang, record and report share. Each is described and parsed here once;
 * a command lists the tables it offers as children, all with the same input.
 */
#ifndef SS_CLI_COMMON_OPTIONS_H
#define SS_CLI_COMMON_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/row_options.h"
#include "report/format.h"

enum ss_color { SS_COLOR_AUTO = 0, SS_COLOR_ALWAYS, SS_COLOR_NEVER };

struct ss_common_options {
	/* Set by the command before the options are parsed; options may change the input. */
	enum ss_format_input input; /* what the command writes */
	const char *default_output; /* NULL: standard output */
	bool no_pid;		    /* --output cannot contain %p */

	const char *format_name; /* NULL: text */
	const struct ss_format *format;
	const char *output; /* pattern for ss_output_open(), or NULL: standard output */
	enum ss_color color;
	bool verbose;
	unsigned max_frames; /* 0: no limit */
	size_t max_stack;    /* bytes; 0: default of the library */
	struct ss_row_arguments rows;
};

/* Parsers; their input is a struct ss_common_options. They exit with EX_USAGE if a value is
   invalid. */
extern const struct argp ss_format_argp; /* --format, --color */
extern const struct argp ss_common_argp; /* --output, --verbose */
extern const struct argp ss_limits_argp; /* --max-frames, --max-stack */

/* Parses a decimal number from min to max. Exits with EX_USAGE if text is not one. */
uint64_t ss_options_parse_number(const struct argp_state *state, const char *name,
				 const char *text, uint64_t min, uint64_t max);

/* Parses a duration; returns nanoseconds. Exits with EX_USAGE if text is not one. */
uint64_t ss_options_parse_duration(const struct argp_state *state, const char *name,
				   const char *text);

/* If error is not NULL, prints it and exits with EX_USAGE. */
void ss_options_check(const struct argp_state *state, struct ss_error *error);

/* The value of --color. Exits with EX_USAGE if it is invalid. */
enum ss_color ss_options_parse_color(const struct argp_state *state, const char *name);

/* Whether text is written with colours. */
bool ss_options_want_color(const struct ss_common_options *options);

/* The values of --color; NULL after the last one. */
const char *ss_options_color_name(size_t index);

#endif
