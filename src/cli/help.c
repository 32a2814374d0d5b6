#include "cli/help.h"

#include <stdio.h>
#include <unistd.h>

#include "base/child.h"
#include "cli/failure.h"

enum { NAME_SIZE = 64, NOT_RUN = 127 };

int ss_help_print(void)
{
	(void)fputs("Usage: stacksnap [COMMAND] [OPTION...] PID|NAME...\n"
		    "What all threads of a process are doing, and what they wait for.\n\n"
		    "Commands (default: snap):\n",
		    stdout);
	for (size_t i = 0; ss_command_at(i); i++)
		(void)printf("  %-8s %s\n", ss_command_at(i)->name,
			     ss_command_at(i)->summary);
	(void)fputs(
		"  help     open the manual page of a command\n\n"
		"Examples:\n"
		"  stacksnap mariadbd                         the stacks of all threads\n"
		"  stacksnap hang mariadbd                    is it stuck, and on what?\n"
		"  stacksnap record -d 30s -o slow.rec 4711   where does it spend time?\n"
		"  stacksnap report -f html -o slow.html slow.rec\n"
		"  stacksnap -f json 4711 | jq '.threads[].wait.kind'\n\n"
		"Most used options:\n"
		"  -p PID, --name=REGEX      the process\n"
		"  -t TID|REGEX, --state=R   only some threads\n"
		"  -i TIME, -c N             several snapshots, merged; --each: apart\n"
		"  -f FORMAT, -o FILE        output format, and a file for it\n"
		"  --mode=no-stop            never stop a thread\n"
		"  -v                        shorten nothing\n"
		"  -h, -V                    help, version\n\n"
		"stacksnap COMMAND --help lists the options of a command, such as "
		"snap.\n",
		stdout);
	return SS_STATUS_WHOLE;
}

/* In the child. */
static int execute(void *data, int channel)
{
	char *const *argv = data;

	(void)channel; /* none */
	(void)execvp(argv[0], argv);
	return NOT_RUN;
}

/* Runs a program from PATH and waits for it; its messages lead nowhere if it is to be quiet.
   Returns whether it succeeded. */
static bool run(char *argv[], bool quiet)
{
	const int out = quiet ? SS_CHILD_NOWHERE : 0;
	const struct ss_child_options options = { .streams = { 0, out, out } };
	struct ss_child child = SS_NO_CHILD;
	_cleanup_error_ struct ss_error *error =
		ss_child_start(&options, execute, argv, &child);

	return !error && ss_child_wait(&child, SS_CHILD_FOREVER) && child.status == 0;
}

int ss_help_open_manual(const struct ss_command *command)
{
	char page[NAME_SIZE];
	char man[] = "man", where[] = "-w", help[] = "--help", program[] = "stacksnap";
	char *find[] = { man, where, page, NULL };
	char *open[] = { man, page, NULL };
	char *print[] = { program, help, NULL };

	(void)snprintf(page, sizeof(page), "stacksnap%s%s",
		       command == ss_command_at(0) ? "" : "-",
		       command == ss_command_at(0) ? "" : command->name);
	if (!run(find, true))
		return command->run(2, print);
	return run(open, false) ? SS_STATUS_WHOLE : SS_STATUS_NOTHING;
}
