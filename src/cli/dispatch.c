#include "cli/dispatch.h"

#include <string.h>
#include <sysexits.h>

#include "cli/failure.h"
#include "cli/help.h"

static int help(int argc, char **argv)
{
	const struct ss_command *command = argc > 2 ? ss_command_find(argv[2]) : NULL;

	if (argc <= 2)
		return ss_help_print();
	if (command && argc == 3)
		return ss_help_open_manual(command);
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

int ss_dispatch(int argc, char **argv)
{
	char program[] = "stacksnap"; /* for messages, whatever argv[0] is */
	const struct ss_command *command = ss_command_at(0);
	char *none[] = { program, NULL };

	if (argc < 1) {
		argc = 1;
		argv = none;
	}
	if (argc == 2 && is_help(argv[1]))
		return ss_help_print();
	if (argc > 1 && strcmp(argv[1], "help") == 0)
		return help(argc, argv);
	if (argc > 1 && ss_command_find(argv[1])) {
		command = ss_command_find(argv[1]);
		argc--;
		argv++;
	}
	argv[0] = program;
	return command->run(argc, argv);
}
