#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "report/format.h"
#include "report/print.h"

enum { WORD_MAX = 32, LONG_WORD = 6 };

/* How many letters must be changed, added, removed or exchanged with the next one. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t before[WORD_MAX + 1] = {};
	size_t last[WORD_MAX + 1];
	size_t row[WORD_MAX + 1];
	size_t columns = strlen(b);

	for (size_t j = 0; j <= columns; j++)
		last[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		row[0] = i;
		for (size_t j = 1; j <= columns; j++) {
			row[j] = SS_MIN(last[j], row[j - 1]) + 1;
			row[j] = SS_MIN(row[j], last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				row[j] = SS_MIN(row[j], before[j - 2] + 1);
		}
		memcpy(before, last, sizeof(before));
		memcpy(last, row, sizeof(last));
	}
	return last[columns];
}

void ss_suggestion_offer(struct ss_suggestion *suggestion, const char *word)
{
	size_t length = strlen(suggestion->given);
	size_t limit = length < 2 ? 0 : length < LONG_WORD ? 1 : 2;

	if (length > WORD_MAX || strlen(word) > WORD_MAX)
		return;
	size_t distance = edit_distance(suggestion->given, word);
	if (distance > limit || (suggestion->best && distance >= suggestion->distance))
		return;
	suggestion->best = word;
	suggestion->distance = distance;
}

const char *ss_suggestion_hint(struct ss_suggestion *suggestion, const char *prefix)
{
	if (!suggestion->best)
		return NULL;
	(void)snprintf(suggestion->hint, sizeof(suggestion->hint), "did you mean %s%s?",
		       prefix, suggestion->best); /* it fits */
	return suggestion->hint;
}

static const struct ss_command *const commands[] = {
	&ss_command_snap,    &ss_command_record, &ss_command_hang,
	&ss_command_diff,    &ss_command_report,
#if SS_CRASH
	&ss_command_run,     &ss_command_core,
#endif
#if SS_HEAP
	&ss_command_heap,
#endif
	&ss_command_modules,
#if SS_TRACE
	&ss_command_trace,
#endif
	&ss_command_top,     &ss_command_names,
};

const struct ss_command *ss_command_at(size_t index)
{
	return index < SS_ARRAY_SIZE(commands) ? commands[index] : NULL;
}

const struct ss_command *ss_command_find(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

void ss_command_suggest(struct ss_suggestion *suggestion)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(commands); i++)
		ss_suggestion_offer(suggestion, commands[i]->name);
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

enum { TEXT_MAX = 1 << 20 };

/*
 * Wrong usage ------------------------------------------------------------------
 *
 * argp(3) and getopt(3) quote an argument as it is, and a control character in it would reach the
 * terminal: if an argument has a byte that is to be escaped, standard error is collected until the
 * end of parsing or of the program.
 */

/* The real standard error; -1: nothing is collected. */
static int real_stderr = -1;

static bool is_plain(const char *text)
{
	for (size_t size; *text; text += size) {
		size = ss_escape_safe_size(text);
		if (size == 0)
			return false;
	}
	return true;
}

/* Lines are those of the messages: a newline in an argument begins one, too. */
static void print_escaped(char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		ss_escape_write(line, NULL, stderr);
		(void)fputc('\n', stderr);
	}
}

static void end_guard(void)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	if (real_stderr < 0)
		return;
	(void)fflush(stderr);
	_cleanup_close_ int collected = dup(STDERR_FILENO);
	(void)dup2(real_stderr, STDERR_FILENO);
	close_cleanup(&real_stderr);
	real_stderr = -1;
	if (collected >= 0 && lseek(collected, 0, SEEK_SET) == 0 &&
	    ss_io_read_all(collected, TEXT_MAX, &text) == 0 && text.size > 0)
		print_escaped(text.bytes);
}

static void begin_guard(int argc, char **argv)
{
	bool plain = true;

	for (int i = 0; i < argc; i++)
		plain = plain && is_plain(argv[i]);
	_cleanup_close_ int file = plain ? -1 : memfd_create("usage", MFD_CLOEXEC);
	if (file < 0)
		return;
	real_stderr = dup(STDERR_FILENO);
	if (real_stderr < 0)
		return;
	(void)dup2(file, STDERR_FILENO);
	(void)atexit(end_guard); /* argp ends the program after an error */
}

enum { KEY_HELP = 'h', NAME_SIZE = 64 };

const struct argp_option ss_usage_options[] = {
	{ "help", KEY_HELP, NULL, 0, "Print this help", -1 },
	{},
};

/* The command whose arguments are parsed: a struct argp_state has no place for it. */
static const struct ss_command *current;

/* hint: NULL for the usual one. */
__attribute__((noreturn)) static void hint_and_exit(const char *hint)
{
	if (hint)
		ss_failure_hint("%s", hint);
	else
		ss_failure_hint("stacksnap %s --help lists the options", current->name);
	exit(EX_USAGE);
}

__attribute__((format(printf, 1, 0))) static void warn(const char *format, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	int size = vasprintf(&text, format, ap);

	ss_failure_warn("%s", size < 0 ? "out of memory" : text);
}

void ss_usage_fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	warn(format, ap);
	va_end(ap);
	hint_and_exit(NULL);
}

void ss_usage_fail_hint(const char *hint, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	warn(format, ap);
	va_end(ap);
	hint_and_exit(hint);
}

void ss_usage_fail_format(const char *name, const char *names)
{
	struct ss_suggestion suggestion = { .given = name };
	_cleanup_free_ char *copy = strdup(names);
	char *rest = copy;

	for (char *known = strsep(&rest, ", "); known; known = strsep(&rest, ", "))
		ss_suggestion_offer(&suggestion, known);
	ss_usage_fail_hint(ss_suggestion_hint(&suggestion, "-f "),
			   "--format: unknown format '%s'; known formats: %s", name,
			   names);
}

/* Offers the options of argp and of its children. True: the word begins one of them. */
static bool offer_options(const struct argp *argp, struct ss_suggestion *suggestion)
{
	const struct argp_option *o = argp->options;
	size_t length = strlen(suggestion->given);

	for (; o && (o->name || o->key || o->doc); o++) {
		if (o->name && strncmp(o->name, suggestion->given, length) == 0)
			return true;
		if (o->name)
			ss_suggestion_offer(suggestion, o->name);
	}
	for (const struct argp_child *c = argp->children; c && c->argp; c++) {
		if (offer_options(c->argp, suggestion))
			return true;
	}
	return false;
}

/* getopt has named an option that it does not know: probably the first that is none. */
__attribute__((noreturn)) static void suggest_option(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strncmp(argv[i], "--", 2) != 0)
			continue;
		_cleanup_free_ char *name =
			strndup(argv[i] + 2, strcspn(argv[i] + 2, "="));
		struct ss_suggestion suggestion = { .given = name ? name : "" };
		if (!offer_options(current->argp, &suggestion))
			hint_and_exit(ss_suggestion_hint(&suggestion, "--"));
	}
	hint_and_exit(NULL);
}

void ss_usage_check(struct ss_error *error)
{
	_cleanup_error_ struct ss_error *owned = error;

	if (owned)
		ss_usage_fail("%s", ss_error_message(owned));
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
	begin_guard(argc, argv);
	error_t errnum = argp_parse(&argp, argc, argv, flags | ARGP_NO_HELP, NULL, input);
	end_guard();
	if (errnum == EINVAL)
		suggest_option(argc, argv);
	if (errnum)
		ss_failure_warn("%s", strerror(errnum));
	return errnum == 0;
}
