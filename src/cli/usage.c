#include "cli/usage.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

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
