#include "cli/help.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/failure.h"

enum { NAME_SIZE = 64 };

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

/* Runs a program from PATH and waits for it, with standard output to nowhere if it is to be
   quiet. Returns its exit status, or -1. */
static int run(char *const argv[], bool quiet)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = 0;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	for (int fd = STDOUT_FILENO; quiet && fd <= STDERR_FILENO; fd++) {
		if (posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY,
						     0) != 0)
			quiet = false;
	}
	int errnum = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions); /* cannot fail */
	if (errnum != 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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
	if (run(find, true) != 0)
		return command->run(2, print);
	return run(open, false) == 0 ? SS_STATUS_WHOLE : SS_STATUS_NOTHING;
}
