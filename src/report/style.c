#include "report/style.h"

#include <stdarg.h>

void ss_style_write(enum ss_style style, bool color, FILE *out)
{
	static const char *const codes[] = {
		[SS_STYLE_NONE] = "\033[0m",
		[SS_STYLE_STRONG] = "\033[1m",
		[SS_STYLE_FAINT] = "\033[2m",
		[SS_STYLE_WARN] = "\033[33m",
	};

	if (color)
		(void)fputs_unlocked(codes[style], out);
}

void ss_style_print(enum ss_style style, bool color, FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ss_style_write(style, color, out);
	(void)vfprintf(out, format, args);
	ss_style_write(SS_STYLE_NONE, color, out);
	va_end(args);
}
