/*
 * Wrong usage: one line, and a hint.
 *
 * argp(3) and getopt(3) quote an argument as it is, and a control character in it would reach the
 * terminal: if an argument has a byte that is to be escaped, standard error is collected until the
 * end of parsing or of the program.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/command.h"
#include "cli/failure.h"
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

enum { TEXT_MAX = 1 << 20 };

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

/* The command whose arguments are parsed. */
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

/* Offers the options of a group and of its children. True: the word begins one of them. */
static bool offer_options(const struct ss_option_group *group,
			  struct ss_suggestion *suggestion)
{
	size_t length = strlen(suggestion->given);

	for (const struct ss_option *o = group->options; o && !ss_option_is_end(o); o++) {
		if (o->name && strncmp(o->name, suggestion->given, length) == 0)
			return true;
		if (o->name)
			ss_suggestion_offer(suggestion, o->name);
	}
	for (const struct ss_option_child *c = group->children; c && c->group; c++) {
		if (offer_options(c->group, suggestion))
			return true;
	}
	return false;
}

/* It is probably the first that is none. */
void ss_usage_fail_option(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strncmp(argv[i], "--", 2) != 0)
			continue;
		_cleanup_free_ char *name =
			strndup(argv[i] + 2, strcspn(argv[i] + 2, "="));
		struct ss_suggestion suggestion = { .given = name ? name : "" };
		if (!offer_options(current->options, &suggestion))
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

void ss_usage_begin(const struct ss_command *command, int argc, char **argv)
{
	current = command;
	begin_guard(argc, argv);
}

void ss_usage_end(void)
{
	end_guard();
}
