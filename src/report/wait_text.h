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
#include <stdio.h>

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

#endif
