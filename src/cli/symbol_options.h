/*
 * The options of commands that symbolize.
 */
#ifndef SS_CLI_SYMBOL_OPTIONS_H
#define SS_CLI_SYMBOL_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

struct ss_symbol_options {
	bool raw;
	unsigned flags;	       /* enum ss_symbolize_flags */
	const char *debug_dir; /* NULL: /usr/lib/debug */
	const char *sysroot;   /* or NULL */
	bool debuginfod;       /* download missing files */
};

/* Its input is a struct ss_symbol_options. */
extern const struct argp ss_symbols_argp;

#endif
