#include "cli/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "output/escape.h"

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
		print_line("  remedy: ", ss_error_remedy(error));
}

void ss_failure_warn(const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, format);
	int size = vasprintf(&text, format, ap);
	va_end(ap);
	if (size < 0)
		text = NULL; /* undefined after a failure */
	print_line("stacksnap: ", text ? text : "out of memory");
}
