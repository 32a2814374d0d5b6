/*
 * Where the traces go: stdout, or a new file that only its owner can read. An
 * existing file is never written to, and a symbolic link never followed.
 */
#ifndef SS_CLI_OUTPUT_H
#define SS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "stacksnap.h"

struct ss_output;

/* Whether every target gets a file of its own: the pattern has %p. */
bool ss_output_is_per_target(const char *pattern);

/* Checks a pattern (%p, %t, %%). Errors: INVALID. */
struct ss_error *ss_output_check(const char *pattern);

/*
 * Opens stdout (pattern NULL or "-") or creates the file that pattern names: %p is
 * pid, %t the local time as 20240131T235959. Errors: INVALID (it exists), SYSTEM,
 * DENIED, NO_MEMORY.
 */
struct ss_error *ss_output_open(const char *pattern, pid_t pid, struct ss_output **ret);

FILE *ss_output_file(struct ss_output *output);

/* What a file is that is written to in another way: a new descriptor of it, which
   outlives the output; the directory, name and path of it, NULL where it is stdout. The
   strings live as long as the output. */
struct ss_error *ss_output_duplicate(const struct ss_output *output, int *ret);
const char *ss_output_directory(const struct ss_output *output);
const char *ss_output_name(const struct ss_output *output);
const char *ss_output_path(const struct ss_output *output);

/* The file is not removed by ss_output_close(). */
void ss_output_keep(struct ss_output *output);

/* Whether it is a terminal. */
bool ss_output_is_terminal(const struct ss_output *output);

/* Whether it is one that shows colours, and nobody objects (NO_COLOR). */
bool ss_output_wants_color(const struct ss_output *output);

/* Writes out what is buffered. Errors: SYSTEM, the disk is full for one. */
struct ss_error *ss_output_flush(struct ss_output *output);

/* Closes it; a file that never got one whole trace is removed again. */
void ss_output_close(struct ss_output *output);

SS_DEFINE_CLEANUP(struct ss_output, ss_output, ss_output_close)

#endif
