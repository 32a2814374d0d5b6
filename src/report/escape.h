/*
 * Strings of the target (names of threads, paths, symbols) may hold any bytes. To print
 * them safely, control characters, invalid UTF-8 and characters that hide or reorder text
 * become \xNN, and a backslash becomes \\.
 */
#ifndef SS_REPORT_ESCAPE_H
#define SS_REPORT_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Replaces characters that a format cannot represent: from[i] becomes to[i]. */
struct ss_substitution {
	const char *from;
	const char *to;
};

/* Writes text escaped. substitution may be NULL; it is applied first. */
void ss_escape_write(const char *text, const struct ss_substitution *substitution,
		     FILE *out);

/* The same for allocated text, which is freed. NULL (no memory) becomes "?". */
void ss_escape_write_owned(char *text, const struct ss_substitution *substitution,
			   FILE *out);

/* Returns a copy of text as valid UTF-8, for free(): each invalid byte becomes the four
   characters \xNN. NULL without memory. */
char *ss_escape_invalid(const char *text);

/* Whether text is valid UTF-8. */
bool ss_escape_is_valid(const char *text);

/* Returns the size of the UTF-8 sequence at text if it may be printed as it is; 0: it has
   to be escaped. */
size_t ss_escape_safe_size(const char *text);

/* Writes bytes as \xNN. */
void ss_escape_write_hex(const char *bytes, size_t size, FILE *out);

/* Returns the largest size, at most max bytes, that does not split a character of text. */
size_t ss_escape_cut(const char *text, size_t max);

#endif
