/*
 * Everything that comes from the target - thread names, paths, symbols - may hold
 * anything. Here it is made safe to print: what controls a terminal, what is not
 * UTF-8 and what hides or reorders text is written as \xNN, a backslash as \\.
 */
#ifndef SS_VIEW_ESCAPE_H
#define SS_VIEW_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Characters that a format cannot hold: each of from becomes its neighbour in to. */
struct ss_substitution {
	const char *from;
	const char *to;
};

/* Text that is escaped later, when it is written to where it is shown. */
extern const struct ss_substitution ss_escape_later;

/* Writes text escaped. substitution may be NULL; it is applied first. With
   &ss_escape_later it stays as it is. */
void ss_escape_write(const char *text, const struct ss_substitution *substitution,
		     FILE *out);

/*
 * A copy of text that is valid UTF-8: each byte that is not part of it becomes the
 * four characters \xNN, all else stays (JSON has its own escapes for the rest).
 * NULL without memory; freed by the caller with free().
 */
char *ss_escape_invalid(const char *text);

/* Whether text is valid UTF-8 as it is. */
bool ss_escape_is_valid(const char *text);

/* Bytes of the character at text, which ends with a NUL byte, if it can be printed as
   it is; 0: it controls, hides or reorders, or is no character. */
size_t ss_escape_safe_size(const char *text);

/* Writes bytes as \xNN. */
void ss_escape_write_hex(const char *bytes, size_t size, FILE *out);

/* The largest count of bytes, max at most, at which text is not cut in the middle
   of a character. */
size_t ss_escape_cut(const char *text, size_t max);

#endif
