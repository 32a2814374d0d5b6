#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ss_error_new
#undef ss_error_new_errno
#undef ss_error_no_memory
#undef ss_error_with_remedy

struct ss_error {
	enum ss_error_code code;
	char *message;
	char *remedy;
};

static const struct ss_error no_memory = {
	.code = SS_ERROR_NO_MEMORY,
	.message = "out of memory",
	.remedy = NULL,
};

struct ss_error *ss_error_no_memory(void)
{
	return ss_drop_const(&no_memory); /* ss_error_free() leaves it alone */
}

static struct ss_error *error_from(enum ss_error_code code, char *message)
{
	struct ss_error *error = message ? calloc(1, sizeof(*error)) : NULL;

	if (!error) {
		free(message);
		return ss_error_no_memory();
	}
	error->code = code;
	error->message = message;
	return error;
}

__attribute__((format(printf, 1, 0))) static char *format_alloc(const char *format,
								va_list ap)
{
	char *text = NULL;

	return vasprintf(&text, format, ap) < 0 ? NULL : text;
}

struct ss_error *ss_error_new(enum ss_error_code code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	char *message = format_alloc(format, ap);
	va_end(ap);
	return error_from(code, message);
}

static enum ss_error_code code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOMEM:
		return SS_ERROR_NO_MEMORY;
	case ESRCH:
		return SS_ERROR_NO_PROCESS;
	case EPERM:
	case EACCES:
		return SS_ERROR_DENIED;
	default:
		return SS_ERROR_SYSTEM;
	}
}

struct ss_error *ss_error_new_errno(int errnum, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	_cleanup_free_ char *what = format_alloc(format, ap);
	va_end(ap);
	return ss_error_new(code_of_errno(errnum), "%s: %s", what ? what : "error",
			    strerrordesc_np(errnum) ? strerrordesc_np(errnum) : "?");
}

struct ss_error *ss_error_with_remedy(struct ss_error *error, const char *format, ...)
{
	va_list ap;

	if (error == &no_memory)
		return error;
	va_start(ap, format);
	char *remedy = format_alloc(format, ap);
	va_end(ap);
	free(error->remedy);
	error->remedy = remedy;
	return error;
}

enum ss_error_code ss_error_code(const struct ss_error *error)
{
	return error->code;
}

const char *ss_error_message(const struct ss_error *error)
{
	return error->message;
}

const char *ss_error_remedy(const struct ss_error *error)
{
	return error->remedy;
}

void ss_error_free(struct ss_error *error)
{
	if (!error || error == &no_memory)
		return;
	free(error->message);
	free(error->remedy);
	free(error);
}
