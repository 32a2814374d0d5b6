/*
 * File descriptors in words: what they are, and who is at the other end.
 */
#ifndef SS_REPORT_DESCRIPTOR_TEXT_H
#define SS_REPORT_DESCRIPTOR_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "stacksnap.h"

/*
 * Writes text for people that consists of fixed words and of strings from the target.
 */

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

/* Writes "pipe, written by 4711 (cat)", "TCP connection 127.0.0.1:80 to ...", a path. */
void ss_descriptor_text_write(const struct ss_text_writer *w,
			      const struct ss_descriptor *descriptor);

/*
 * Keys of waits: threads that wait for the same thing have the same key, on any host, and so
 * have both ends of a connection or pipe.
 */

/* Returns the key of a wait of process pid, to be freed; NULL: it has none, or no memory.
   boot_id identifies the running system. */
char *ss_wait_key_new(const struct ss_wait *wait, pid_t pid, const char *boot_id);

/* The key of a descriptor, likewise. */
char *ss_wait_key_new_descriptor(const struct ss_descriptor *descriptor,
				 const char *boot_id);

#endif
