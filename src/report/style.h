/*
 * Terminal colours.
 */
#ifndef SS_REPORT_STYLE_H
#define SS_REPORT_STYLE_H

#include <stdbool.h>
#include <stdio.h>

enum ss_style { SS_STYLE_NONE, SS_STYLE_STRONG, SS_STYLE_FAINT, SS_STYLE_WARN };

/* Switches to a style. Does nothing without color. */
void ss_style_write(enum ss_style style, bool color, FILE *out);

/* Prints in a style, and switches back. */
__attribute__((format(printf, 4, 5))) void
ss_style_print(enum ss_style style, bool color, FILE *out, const char *format, ...);

#endif
