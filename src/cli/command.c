#include "cli/command.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/failure.h"
#include "view/render.h"

static const struct ss_command *const commands[] = {
	&ss_command_snap,   &ss_command_record,	 &ss_command_hang,
	&ss_command_report, &ss_command_modules,
};

const struct ss_command *ss_command_at(size_t index)
{
	return index < SS_ARRAY_SIZE(commands) ? commands[index] : NULL;
}

static const struct ss_command *find(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static int refuse(const char *name)
{
	_cleanup_error_ struct ss_error *error = ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID, "'%s' is neither a command nor a pid",
			     name),
		"a process is named by its id, such as: stacksnap $(pidof NAME); see "
		"stacksnap --help");

	ss_failure_print(error);
	return EX_USAGE;
}

int ss_command_run(int argc, char **argv)
{
	char *program = (char *)"stacksnap"; /* in messages, whatever argv has */
	const struct ss_command *command = commands[0];
	char *none[] = { program, NULL };

	if (argc < 1) {
		argc = 1;
		argv = none;
	}
	if (argc > 1 && isalpha((unsigned char)argv[1][0])) {
		command = find(argv[1]);
		if (!command)
			return refuse(argv[1]);
		argc--;
		argv++;
	}
	argv[0] = program;
	return command->run(argc, argv);
}

static void write_lists(FILE *out)
{
	const struct ss_renderer *renderer = NULL;

	(void)fputs("Commands (snap unless told):\n", out);
	for (size_t i = 0; i < SS_ARRAY_SIZE(commands); i++)
		(void)fprintf(out, "  %-8s %s\n", commands[i]->name,
			      commands[i]->summary);
	(void)fputs("\nFormats:\n", out);
	for (size_t i = 0; (renderer = ss_renderer_at(i)); i++)
		(void)fprintf(out, "  %-8s %s\n", renderer->name, renderer->summary);
	(void)fputs("\nExit status: 0 everything is shown whole, 1 something is missing, "
		    "2 not one stack could be shown, 64 wrong usage.\n",
		    out);
}

char *ss_command_help(int key, const char *text, void *input)
{
	char *help = NULL;
	size_t size = 0;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	FILE *out = open_memstream(&help, &size);
	if (!out)
		return (char *)text;
	write_lists(out);
	return fclose(out) == 0 ? help : (char *)text;
}
