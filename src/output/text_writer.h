/*
 * Writes text for people that consists of fixed words and of strings from the target.
 */
#ifndef SS_OUTPUT_TEXT_WRITER_H
#define SS_OUTPUT_TEXT_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct ss_text_writer {
	FILE *out;
	bool color;
	bool raw; /* do not escape strings of the target: the caller does */
};

/* Writes fixed words, as printf(3). Strings of the target must not be arguments. */
void ss_text_writer_add(const struct ss_text_writer *writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes a string of the target; NULL: "?". */
void ss_text_writer_add_string(const struct ss_text_writer *writer, const char *text);

/* Writes "4711 (cat)", a thread or process; name may be NULL. */
void ss_text_writer_add_id(const struct ss_text_writer *writer, pid_t id,
			   const char *name);

/* Writes "200 ms", "1.5 s", "5 min". */
void ss_text_writer_add_duration(const struct ss_text_writer *writer, uint64_t time_ns);

/* Writes "HUP, INT and TERM"; bit n-1 is signal n. */
void ss_text_writer_add_signals(const struct ss_text_writer *writer, uint64_t signals);

#endif
