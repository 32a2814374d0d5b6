/*
 * Terminal colours.
 */
#ifndef SS_REPORT_STYLE_H
#define SS_REPORT_STYLE_H

#include <stdbool.h>
#include <stdio.h>

enum ss_style { SS_STYLE_NONE, SS_STYLE_STRONG, SS_STYLE_FAINT, SS_STYLE_WARN };

/* Switches to a style. Does nothing without color. */
static inline void ss_style_write(enum ss_style style, bool color, FILE *out)
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

#endif
