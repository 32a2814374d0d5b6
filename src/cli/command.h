/*
 * The commands, in one table. A command parses its own options and returns an exit
 * status.
 */
#ifndef SS_CLI_COMMAND_H
#define SS_CLI_COMMAND_H

#include <argp.h>
#include <stddef.h>

struct ss_command {
	const char *name;
	const char *summary; /* one line, for the help */
	const struct argp *argp;
	int (*run)(int argc, char **argv); /* argv[0] is the program's name */
};

extern const struct ss_command ss_command_snap;
extern const struct ss_command ss_command_hang;
extern const struct ss_command ss_command_report;
extern const struct ss_command ss_command_record;
extern const struct ss_command ss_command_modules;

/* The command at that place in the table, the default one first; NULL at its end. */
const struct ss_command *ss_command_at(size_t index);

/* Runs the command that argv names, or the default one, and returns the exit status
   of the process. */
int ss_command_run(int argc, char **argv);

/* An argp help filter that adds the list of commands below the options. */
char *ss_command_help(int key, const char *text, void *input);

#endif
