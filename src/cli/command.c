#include "cli/command.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/failure.h"
#include "cli/usage_guard.h"
#include "output/format.h"

static const struct ss_command *const commands[] = {
	&ss_command_snap,   &ss_command_record, &ss_command_hang,
	&ss_command_report, &ss_command_core,	&ss_command_modules,
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

static int reject(const char *name)
{
	_cleanup_error_ struct ss_error *error = ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID, "'%s' is neither a command nor a pid",
			     name),
		"name a process by its id, for example: stacksnap $(pidof NAME); see "
		"stacksnap --help");

	ss_failure_print(error);
	return EX_USAGE;
}

/* argp prints argv[0] in the usage line and before errors. */
static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 ||
		    strcmp(argv[i], "--usage") == 0)
			return true;
	}
	return false;
}

int ss_command_run(int argc, char **argv)
{
	char program[] = "stacksnap"; /* for messages, whatever argv[0] is */
	const struct ss_command *command = commands[0];
	char *none[] = { program, NULL };

	if (argc < 1) {
		argc = 1;
		argv = none;
	}
	if (argc > 1 && isalpha((unsigned char)argv[1][0])) {
		command = find(argv[1]);
		if (!command)
			return reject(argv[1]);
		argc--;
		argv++;
	}
	_cleanup_free_ char *usage = NULL;
	if (wants_help(argc, argv) && asprintf(&usage, "stacksnap %s", command->name) < 0)
		usage = NULL;
	argv[0] = usage && argv != none ? usage : program;
	return command->run(argc, argv);
}

char *ss_command_filter_help(int key, const char *text, void (*write)(FILE *out))
{
	char *help = NULL;
	size_t size = 0;
	FILE *out = key == ARGP_KEY_HELP_POST_DOC ? open_memstream(&help, &size) : NULL;

	if (!out)
		return text ? strdup(text) : NULL;
	write(out);
	if (fclose(out) == 0)
		return help;
	free(help);
	return NULL;
}

bool ss_command_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
		      void *input)
{
	ss_usage_guard_begin(argc, argv);
	error_t errnum = argp_parse(argp, argc, argv, flags, NULL, input);
	ss_usage_guard_end();

	if (errnum)
		ss_failure_warn("%s", strerror(errnum));
	return errnum == 0;
}

static void write_lists(FILE *out)
{
	(void)fputs("Commands (default: snap):\n", out);
	for (size_t i = 0; i < SS_ARRAY_SIZE(commands); i++)
		(void)fprintf(out, "  %-8s %s\n", commands[i]->name,
			      commands[i]->summary);
	(void)fputc('\n', out);
	ss_format_write_help(SS_FORMAT_SNAPSHOT, out);
	(void)fputs(
		"\nExit status: 0 complete, 1 something is missing, 2 no stack could be "
		"shown, 64 wrong usage.\n",
		out);
}

char *ss_command_help(int key, const char *text, void *input)
{
	(void)input;
	return ss_command_filter_help(key, text, write_lists);
}
