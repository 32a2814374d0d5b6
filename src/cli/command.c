#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/failure.h"
#include "cli/usage.h"
#include "output/format.h"

static const struct ss_command *const commands[] = {
	&ss_command_snap,   &ss_command_record, &ss_command_hang, &ss_command_diff,
	&ss_command_report, &ss_command_run,	&ss_command_core, &ss_command_modules,
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

static int help(int argc, char **argv)
{
	const struct ss_command *command = argc > 2 ? find(argv[2]) : NULL;

	if (argc <= 2)
		return ss_usage_print_overview();
	if (command && argc == 3)
		return ss_usage_open_manual(command);
	if (command)
		ss_failure_warn("expected one command after help");
	else
		ss_failure_warn("'%s' is not a command", argv[2]);
	ss_failure_hint("stacksnap --help lists the commands");
	return EX_USAGE;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int ss_command_main(int argc, char **argv)
{
	char program[] = "stacksnap"; /* for messages, whatever argv[0] is */
	const struct ss_command *command = commands[0];
	char *none[] = { program, NULL };

	if (argc < 1) {
		argc = 1;
		argv = none;
	}
	if (argc == 2 && is_help(argv[1]))
		return ss_usage_print_overview();
	if (argc > 1 && strcmp(argv[1], "help") == 0)
		return help(argc, argv);
	if (argc > 1 && find(argv[1])) {
		command = find(argv[1]);
		argc--;
		argv++;
	}
	argv[0] = program;
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

static void write_lists(FILE *out)
{
	ss_format_write_help(SS_FORMAT_SNAPSHOT, out);
	(void)fputs("Formats of merged snapshots (--interval, --count): ", out);
	ss_format_write_names(SS_FORMAT_SERIES, ", ", out);
	(void)fputs(
		"\n"
		"\nExit status: 0 complete, 1 something is missing, 2 no stack could be "
		"shown, 64 wrong usage.\n",
		out);
}

char *ss_command_help(int key, const char *text, void *input)
{
	(void)input;
	return ss_command_filter_help(key, text, write_lists);
}
