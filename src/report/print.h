/*
 * How strings of the target and numbers are printed, and in which colour.
 *
 * Strings of the target (names of threads, paths, symbols) may hold any bytes. To print
 * them safely, control characters, invalid UTF-8 and characters that hide or reorder text
 * become \xNN, and a backslash becomes \\.
 */
#ifndef SS_REPORT_PRINT_H
#define SS_REPORT_PRINT_H

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

/*
 * Terminal colours.
 */

enum ss_style { SS_STYLE_NONE, SS_STYLE_STRONG, SS_STYLE_FAINT, SS_STYLE_WARN };

/* Switches to a style. Does nothing without color. */
void ss_style_write(enum ss_style style, bool color, FILE *out);

/* Prints in a style, and switches back. */
__attribute__((format(printf, 4, 5))) void
ss_style_print(enum ss_style style, bool color, FILE *out, const char *format, ...);

/*
 * Numbers for people.
 */

/* A number in words, for the arguments of a print function: ss_quantity_count(n).text */
struct ss_quantity {
	char text[64];
};

/* "49,990" */
struct ss_quantity ss_quantity_count(uint64_t count);

/* "1 thread", "49,990 threads", "2 addresses" */
struct ss_quantity ss_quantity_things(uint64_t count, const char *thing);

/* "0.041 ms", "1.20 ms", "3.40 s" */
struct ss_quantity ss_quantity_time(uint64_t time_ns);

/* "2026-11-21 11:45:06.047", local time. */
struct ss_quantity ss_quantity_date(uint64_t time_ns);

/* "512 bytes", "256 KiB", "1.5 MiB" */
struct ss_quantity ss_quantity_size(uint64_t size);

/* A stream that compresses with gzip (RFC 1952), optionally encodes the result as base64 (RFC 4648), and
   writes it to out. Close it with fclose(), before out. NULL: no memory. Write errors of out are left in
   ferror(out). */
FILE *ss_gzip_open(FILE *out, bool base64);

#endif
