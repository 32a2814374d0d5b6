/*
 * The commands, in one table, and how their arguments are parsed.
 */
#ifndef SS_CLI_COMMAND_H
#define SS_CLI_COMMAND_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "report/format.h"

/*
 * "Did you mean": which of some words was probably meant.
 */

/* Zeroed but for given, there is none. */
struct ss_suggestion {
	const char *given;
	const char *best; /* NULL: no word is similar */
	size_t distance;  /* of best */
	char hint[64];	  /* set by ss_suggestion_hint() */
};

/* Offers a word, which must outlive the suggestion. */
void ss_suggestion_offer(struct ss_suggestion *suggestion, const char *word);

/* "did you mean PREFIXWORD?"; NULL: there is no such word. */
const char *ss_suggestion_hint(struct ss_suggestion *suggestion, const char *prefix);

/*
 * The commands, in one table. A command parses its own options and returns an exit
 * status. Those of components that may be left out (SS_CRASH, SS_TRACE, SS_HEAP) are beside their
 * component.
 */

struct ss_report_arguments;

struct ss_command {
	const char *name;
	const char *summary; /* one line, for the help */
	const struct argp *argp;
	int (*run)(int argc, char **argv); /* argv[0] is the program's name */
	/* For completions: what it writes, or the formats that only it has. */
	enum ss_format_input input;
	const char *formats;
	/* Shows what it has written into a directory that has no recordings, for report; or NULL.
	   *ret is the exit status. */
	struct ss_error *(*report)(const struct ss_report_arguments *arguments, int *ret);
};

extern const struct ss_command ss_command_snap;
extern const struct ss_command ss_command_hang;
extern const struct ss_command ss_command_diff;
extern const struct ss_command ss_command_report;
extern const struct ss_command ss_command_record;
extern const struct ss_command ss_command_modules;
extern const struct ss_command ss_command_core;
extern const struct ss_command ss_command_heap;
extern const struct ss_command ss_command_run;
extern const struct ss_command ss_command_names;
extern const struct ss_command ss_command_trace;
extern const struct ss_command ss_command_top;

/* Returns the command with this index; the default one is the first. NULL after the last. */
const struct ss_command *ss_command_at(size_t index);

/* NULL: there is no such command. */
const struct ss_command *ss_command_find(const char *name);

/* Refuses an unknown format: names is what is known, separated by commas. */
__attribute__((noreturn)) void ss_usage_fail_format(const char *name, const char *names);

/* Offers all commands. */
void ss_command_suggest(struct ss_suggestion *suggestion);

/* For argp help filters: what write writes if key is that of the text after the options, else
   a copy of text, which may be NULL. NULL without memory. */
char *ss_command_filter_help(int key, const char *text, void (*write)(FILE *out));

/* An argp help filter that appends the formats of a snapshot and the exit statuses. */
char *ss_command_help(int key, const char *text, void *input);

/*
 * Parses the arguments of a command with argp, in one style for all commands: -h prints the
 * help, and wrong usage is one line and a hint.
 */

/* The options that every command has: --help. */
extern const struct argp_option ss_usage_options[];

/* Parses the arguments of a command; exits if they are wrong. False, after a message: the
   parser failed. */
bool ss_usage_parse(const struct ss_command *command, int argc, char **argv,
		    unsigned flags, void *input);

/* For parsers below ss_usage_parse(): prints a message and a hint, and exits with EX_USAGE. */
__attribute__((noreturn, format(printf, 1, 2))) void ss_usage_fail(const char *format,
								   ...);

/* Shell completion scripts, generated from the table of commands and their options. */

/* The same with another hint; NULL: the usual one. */
__attribute__((noreturn, format(printf, 2, 3))) void
ss_usage_fail_hint(const char *hint, const char *format, ...);

/* The same if there is an error, which is freed. */
void ss_usage_check(struct ss_error *error);

/* Writes the script for a shell. Returns false if the shell is unknown. */
bool ss_completion_print(const char *shell, FILE *out);

/* "bash, zsh, fish" */
const char *ss_completion_shells(void);

#endif
