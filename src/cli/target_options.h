/*
 * The processes that a command works on: PID[/TID,TID...] or NAME as arguments, and the
 * options -p and --name.
 */
#ifndef SS_CLI_TARGET_OPTIONS_H
#define SS_CLI_TARGET_OPTIONS_H

#include <argp.h>
#include <regex.h>

#include "cli/target_argument.h"

/* A process given by name. */
struct ss_target_name {
	const char *text; /* in argv */
	bool is_pattern;
	regex_t pattern; /* if is_pattern */
};

struct ss_target_options {
	bool single; /* set by the command: it works on one process, without threads */
	SS_VECTOR(struct ss_target_argument) targets;
	SS_VECTOR(struct ss_target_name) names;
};

/* The parser of -p and --name; its input is a struct ss_target_options. */
extern const struct argp ss_target_argp;

/* Adds an argument. Exits with EX_USAGE if it is invalid. */
void ss_target_options_add(const struct argp_state *state,
			   struct ss_target_options *options, const char *text);

/* How many processes are given. */
size_t ss_target_options_count(const struct ss_target_options *options);

/* Finds the processes that are given by name, and adds them to the targets. False, after a
   message, if there is none of a name, or several, which it lists. */
bool ss_target_options_resolve(struct ss_target_options *options);

/* For a command that works on one process, once it is resolved: its pid; 0: none is given. */
pid_t ss_target_options_pid(const struct ss_target_options *options);

void ss_target_options_deinit(struct ss_target_options *options);

#endif
