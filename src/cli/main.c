/*
 * From the arguments of the program to a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/child.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/process.h"

enum { NAME_SIZE = 64, NOT_RUN = 127 };

/* Each capture has a thread of its own, and releases what it has allocated. Without this, each
   would map a heap, and the kernel would clear the same pages again. */
static void configure_heap(void)
{
	(void)mallopt(M_ARENA_MAX, 1); /* best effort */
	(void)mallopt(M_TRIM_THRESHOLD, 4 << 20);
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

/* argp prints the help and exits: only an exit handler can check its output. */
static void check_stdout(void)
{
	if (ferror(stdout) == 0 && fflush(stdout) == 0)
		return;
	ss_failure_warn("cannot write to standard output");
	_exit(SS_STATUS_NOTHING);
}

/* Opens those of descriptors 0 to 2 that are closed, so that no other file becomes "standard output".
   Writing to these fails. Also makes the program fail if a help text could not be written. */
static void prepare_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* open() returns the lowest free number: this one */
		if (open("/dev/null", O_RDONLY) != fd)
			_exit(SS_STATUS_NOTHING);
	}
	(void)atexit(check_stdout); /* if it fails, write errors of --help go unnoticed */
}

static int print_help(void)
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
		"Common options:\n"
		"  -p PID, --name=REGEX      the process\n"
		"  -t TID|REGEX, --state=R   only some threads\n"
		"  -i TIME, -c N             several snapshots, merged; --each: not "
		"merged\n"
		"  -f FORMAT, -o FILE        output format and output file\n"
		"  --mode=no-stop            never stop a thread\n"
		"  -v, -h, -V                do not shorten output; help; version\n\n"
		"stacksnap COMMAND --help lists the options of a command, such as snap.\n"
		"stacksnap help words explains idle, blocked, stuck, atomic and "
		"others.\n",
		stdout);
	return SS_STATUS_WHOLE;
}

/* The words that a user of the output has to know. */
static int print_words(void)
{
	(void)fputs(
		"Words in the output of stacksnap, the first six for threads and "
		"processes:\n"
		"  deadlock  threads wait for each other in a cycle\n"
		"  stuck     no progress, in a wait that is not idle: a lock, a disk\n"
		"  blocked   no progress, waiting for a lock of the application\n"
		"  busy      on a CPU, or ready to run, for most of the time\n"
		"  moving    runs, and is found in different places\n"
		"  idle      waits for work: a request, a timer, a job\n"
		"  atomic    a snapshot that shows all threads at one moment\n"
		"  sample    what a thread was doing at one tick of a recording\n",
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

/* Opens the manual page of a command, or prints its help if there is no man(1) or no page. */
static int open_manual(const struct ss_command *command)
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

static int run_help(int argc, char **argv)
{
	const struct ss_command *command = argc > 2 ? ss_command_find(argv[2]) : NULL;

	if (argc <= 2)
		return print_help();
	if (argc == 3 && strcmp(argv[2], "words") == 0)
		return print_words();
	if (command && argc == 3)
		return open_manual(command);
	struct ss_suggestion suggestion = { .given = argv[2] };
	ss_command_suggest(&suggestion);
	if (command)
		ss_failure_warn("expected one command after help");
	else
		ss_failure_warn("'%s' is not a command", argv[2]);
	if (!command && suggestion.best)
		ss_failure_hint("%s", ss_suggestion_hint(&suggestion, "stacksnap help "));
	ss_failure_hint("stacksnap --help lists the commands");
	return EX_USAGE;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Runs the command that argv names, or else the default one. */
static int dispatch(int argc, char **argv)
{
	char program[] = "stacksnap"; /* for messages, whatever argv[0] is */
	const struct ss_command *command = ss_command_at(0);
	char *none[] = { program, NULL };

	if (argc < 1) {
		argc = 1;
		argv = none;
	}
	if (argc == 2 && is_help(argv[1]))
		return print_help();
	if (argc > 1 && strcmp(argv[1], "help") == 0)
		return run_help(argc, argv);
	if (argc > 1 && ss_command_find(argv[1])) {
		command = ss_command_find(argv[1]);
		argc--;
		argv++;
	}
	argv[0] = program;
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	configure_heap();
	prepare_streams();
	ss_file_limit_raise();
	return dispatch(argc, argv);
}
