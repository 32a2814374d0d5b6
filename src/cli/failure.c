#include "cli/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "report/escape.h"

#define HINT "  hint: "

/* Ignores write errors: there is no other place to report them. */
static void print_line(const char *prefix, const char *text)
{
	(void)fputs(prefix, stderr);
	ss_escape_write(text, NULL, stderr);
	(void)fputc('\n', stderr);
}

void ss_failure_print(const struct ss_error *error)
{
	print_line("stacksnap: ", ss_error_message(error));
	if (ss_error_remedy(error))
		print_line(HINT, ss_error_remedy(error));
}

static void print_formatted(const char *prefix, const char *format, va_list ap)
{
	_cleanup_free_ char *text = NULL;

	if (vasprintf(&text, format, ap) < 0)
		text = NULL; /* undefined after a failure */
	print_line(prefix, text ? text : "out of memory");
}

void ss_failure_warn(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print_formatted("stacksnap: ", format, ap);
	va_end(ap);
}

void ss_failure_list(const char *text)
{
	print_line("", text);
}

void ss_failure_hint(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print_formatted(HINT, format, ap);
	va_end(ap);
}
