#include "cli/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/usage_guard.h"

enum key { KEY_HELP = 'h' };

enum { NAME_SIZE = 64 };

const struct argp_option ss_usage_options[] = {
	{ "help", KEY_HELP, NULL, 0, "Print this help", -1 },
	{},
};

/* The command whose arguments are parsed: a struct argp_state has no place for it. */
static const struct ss_command *current;

__attribute__((noreturn)) static void hint_and_exit(const struct ss_command *command)
{
	ss_failure_hint("stacksnap %s --help lists the options", command->name);
	exit(EX_USAGE);
}

void ss_usage_fail(const struct argp_state *state, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	(void)state;
	va_start(ap, format);
	int size = vasprintf(&text, format, ap);
	va_end(ap);
	ss_failure_warn("%s", size < 0 ? "out of memory" : text);
	hint_and_exit(current);
}

static void print_help(struct argp_state *state, const struct ss_command *command)
{
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof(name), "stacksnap %s", command->name); /* it fits */
	state->name = name;
	argp_state_help(state, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK);
	exit(EXIT_SUCCESS);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->input;
		/* argp then prints no hint of its own; getopt prints to stderr. */
		state->err_stream = NULL;
		return 0;
	case KEY_HELP:
		print_help(state, current);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

bool ss_usage_parse(const struct ss_command *command, int argc, char **argv,
		    unsigned flags, void *input)
{
	const struct argp_child children[] = { { command->argp, 0, NULL, 0 }, {} };
	const struct argp argp = {
		.options = ss_usage_options,
		.parser = parse,
		.children = children,
	};

	current = command;
	ss_usage_guard_begin(argc, argv);
	error_t errnum = argp_parse(&argp, argc, argv, flags | ARGP_NO_HELP, NULL, input);
	ss_usage_guard_end();
	if (errnum == EINVAL) /* getopt has named the option */
		hint_and_exit(command);
	if (errnum)
		ss_failure_warn("%s", strerror(errnum));
	return errnum == 0;
}

int ss_usage_print_overview(void)
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
		"stacksnap COMMAND --help lists all options of a command; those of the "
		"default\n"
		"command: stacksnap snap --help.\n",
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

int ss_usage_open_manual(const struct ss_command *command)
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
