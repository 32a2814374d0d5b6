/*
 * Parses the arguments of a command with argp, in one style for all commands: -h prints the
 * help, and wrong usage is one line and a hint.
 */
#ifndef SS_CLI_USAGE_H
#define SS_CLI_USAGE_H

#include <stdbool.h>

#include "cli/command.h"

/* The options that every command has: --help. */
extern const struct argp_option ss_usage_options[];

/* Parses the arguments of a command; exits if they are wrong. False, after a message: the
   parser failed. */
bool ss_usage_parse(const struct ss_command *command, int argc, char **argv,
		    unsigned flags, void *input);

/* For parsers below ss_usage_parse(): prints a message and a hint, and exits with EX_USAGE. */
__attribute__((noreturn, format(printf, 2, 3))) void
ss_usage_fail(const struct argp_state *state, const char *format, ...);

#endif
