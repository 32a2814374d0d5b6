/*
 * Describes waits in words, for people. Only this file forms sentences about waits.
 *
 * Grammar of the text that follows "waits for":
 *   all:    [an application lock: FUNCTION, through] ...
 *   lock:   [read|write access to] NOUN [PLACE] [, DETAIL]... [, OWNER] [, LIMIT]
 *   PLACE:  SYMBOL[+0xOFFSET] (0xADDRESS) | at 0xADDRESS
 *   OWNER:  held [for writing] by TID (NAME) [of process PID (NAME)] | owner unknown: REASON
 *   others: NOUN [from|to|on fd NUMBER, DESCRIPTOR] [, held by PID (NAME)] [, LIMIT]
 *   LIMIT:  for at most TIME | TIME left | with a time limit
 */
#ifndef SS_REPORT_WAIT_TEXT_H
#define SS_REPORT_WAIT_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "stacksnap.h"

/* Writes the text with strings of the target escaped; with color the owner is
   highlighted. */
void ss_wait_text_write(const struct ss_wait *wait, bool color, FILE *out);

/* Writes prefix and the lock of the wait: "mutex stock (0x55d0c83f4a10)". Returns false,
   and writes nothing, if the wait is not for a lock with a known owner. */
bool ss_wait_text_write_lock(const struct ss_wait *wait, const char *prefix, FILE *out);

/* Writes "PREFIX4712 (cat) waits for ...; 4713 (sort) runs": the chain of threads in other
   processes that the wait depends on. Writes nothing if there are none. */
void ss_wait_text_write_chain(const struct ss_wait *wait, const char *prefix, FILE *out);

/* The same as strings, to be freed by the caller; they may contain any bytes. NULL: there
   is no such text, or no memory. */
char *ss_wait_text_new(const struct ss_wait *wait);
/* Without what differs from thread to thread: the remaining time, and where a thread waits
   for a lock of the application. */
char *ss_wait_text_new_merged(const struct ss_wait *wait);
/* The lock or futex: "mutex stock", or "mutex at 0x55d0c83f4a10". */
char *ss_wait_text_new_lock(const struct ss_wait *wait);
char *ss_wait_text_new_chain(const struct ss_wait *wait);
char *ss_wait_text_new_owner_unknown(const struct ss_wait *wait);
char *ss_wait_text_new_descriptor(const struct ss_descriptor *descriptor);

/*
 * The waits of several threads: equal ones are one line.
 */

struct ss_wait_line {
	unsigned class; /* of the caller; lines of the first one come first */
	struct ss_wait wait;
	char *text;		      /* of the wait without the remaining time; owned */
	const struct ss_task *thread; /* the first one; or NULL */
	size_t count;
};

struct ss_wait_lines {
	struct ss_wait_line *items;
	size_t count;
	size_t capacity;
};

/* thread may be NULL. False without memory. */
bool ss_wait_lines_add(struct ss_wait_lines *lines, unsigned class,
		       const struct ss_wait *wait, const struct ss_task *thread);
/* Merges equal waits, and sorts them: by class, the most frequent first. */
void ss_wait_lines_merge(struct ss_wait_lines *lines);
void ss_wait_lines_deinit(struct ss_wait_lines *lines);

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

/* A file descriptor in words: what it is, and who is at the other end. Writes "pipe, written by 4711 (cat)", "TCP connection 127.0.0.1:80 to ...", a path. */
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
