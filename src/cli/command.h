/*
 * The commands, in one table, and how their arguments are parsed.
 */
#ifndef SS_CLI_COMMAND_H
#define SS_CLI_COMMAND_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
	const struct ss_option_group *options;
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

/*
 * Options. A row says where the value goes and how it is read; --help and completions are made from
 * the same rows. Options that several commands have are groups of their own, which a command lists as
 * its children, each with the part of its input that the options set.
 *
 * argp(3) parses them, in one style for all commands: -h prints the help, and wrong usage is one line
 * and a hint.
 */

enum ss_option_type {
	SS_OPTION_TAKEN = 0, /* by take() */
	SS_OPTION_FLAG,
	SS_OPTION_TEXT, /* points into argv */
	SS_OPTION_NUMBER,
	SS_OPTION_DURATION,
};

struct ss_option {
	const char *name;
	char letter;	 /* of the short option; 0: none */
	const char *arg; /* in the help; NULL: the option has none */
	const char *doc; /* without a name: heading of the group */
	int group;	 /* in the help, see argp(3) */
	int flags;	 /* OPTION_... of argp(3) */
	enum ss_option_type type;
	size_t offset; /* of the member of the input that is set; 0 is the input itself, for take() */
	size_t size;
	uint64_t min, max, unit; /* of a number, which is multiplied by unit; 0: 1 */
	void (*take)(void *member, const char *arg);
};

static inline bool ss_option_is_end(const struct ss_option *option)
{
	return !option->name && !option->letter && !option->doc;
}

/* What follows the group says which member an option sets. */
#define SS_OPTION_MEMBER(structure, member)                                              \
	.offset = offsetof(structure, member), .size = sizeof(((structure *)NULL)->member)
/* A bool. */
#define SS_SETS_FLAG(structure, member)                                                  \
	.type = _Generic(((structure *)NULL)->member, bool                               \
			 : SS_OPTION_FLAG),                                              \
	SS_OPTION_MEMBER(structure, member)
/* A const char *. */
#define SS_SETS_TEXT(structure, member)                                                  \
	.type = _Generic(((structure *)NULL)->member, const char *: SS_OPTION_TEXT),     \
	SS_OPTION_MEMBER(structure, member)
/* An unsigned integer of 32 or 64 bits. */
#define SS_SETS_NUMBER(structure, member, lowest, highest, ...)                          \
	.type = _Generic(((structure *)NULL)->member, unsigned                           \
			 : SS_OPTION_NUMBER, unsigned long                               \
			 : SS_OPTION_NUMBER),                                            \
	SS_OPTION_MEMBER(structure, member), .min = (lowest), .max = (highest),          \
	__VA_ARGS__
/* A uint64_t: nanoseconds. */
#define SS_SETS_DURATION(structure, member)                                              \
	.type = _Generic(((structure *)NULL)->member, uint64_t                           \
			 : SS_OPTION_DURATION),                                          \
	SS_OPTION_MEMBER(structure, member)

struct ss_option_group;

struct ss_option_child {
	const struct ss_option_group *group;
	size_t offset; /* of its input in that of the command */
};

/* Functions may be NULL. All get the input of the group. */
struct ss_option_group {
	const struct ss_option *options;	/* ends with an empty one; or NULL */
	const struct ss_option_child *children; /* likewise */
	const char *args_doc, *doc;		/* see argp(3) */
	void (*begin)(void *input);		/* before the command line is parsed */
	/* Takes an argument that is no option. True: it has taken those that follow, too. quoted: it
	   comes after "--". */
	bool (*argument)(void *input, char **argv, bool quoted);
	void (*none)(void *input); /* there was no argument */
	void (*end)(void *input);  /* of the children first */
	/* Returns the help of an option, for free(); NULL without memory. */
	char *(*describe)(const struct ss_option *option, const void *input);
	void (*write_help)(FILE *out); /* after that of the options */
};

/* The option that every command has: --help. */
extern const struct ss_option_group ss_usage_group;

/* Writes the formats of a snapshot and the exit statuses, for --help. */
void ss_command_write_help(FILE *out);

/* Parses the arguments of a command; exits if they are wrong. False, after a message: the
   parser failed. flags: of argp_parse(). */
bool ss_usage_parse(const struct ss_command *command, int argc, char **argv,
		    unsigned flags, void *input);

/* While an option is parsed: the index in argv of what follows it. */
int ss_usage_next(void);

/* For ss_usage_parse(): messages name the command, and arguments in messages of argp are escaped until
   the end. */
void ss_usage_begin(const struct ss_command *command, int argc, char **argv);
void ss_usage_end(void);

/* After getopt has named an option that it does not know: prints a hint, and exits. */
__attribute__((noreturn)) void ss_usage_fail_option(int argc, char **argv);

/* For parsers below ss_usage_parse(): prints a message and a hint, and exits with EX_USAGE. */
__attribute__((noreturn, format(printf, 1, 2))) void ss_usage_fail(const char *format,
								   ...);

/* The same with another hint; NULL: the usual one. */
__attribute__((noreturn, format(printf, 2, 3))) void
ss_usage_fail_hint(const char *hint, const char *format, ...);

/* The same if there is an error, which is freed. */
void ss_usage_check(struct ss_error *error);

/* Shell completion scripts, generated from the table of commands and their options. */

/* Writes the script for a shell. Returns false if the shell is unknown. */
bool ss_completion_print(const char *shell, FILE *out);

/* "bash, zsh, fish" */
const char *ss_completion_shells(void);

#endif
