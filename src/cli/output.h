/*
 * Where results go.
 */
#ifndef SS_CLI_OUTPUT_H
#define SS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "stacksnap.h"

/*
 * The destination of the output: stdout, or a new file that only its owner can read. The file
 * appears with the first complete document. Existing files are never overwritten; symbolic
 * links are never followed.
 */

struct ss_output;

/* Whether this is the pattern of stdout: NULL or "-". */
bool ss_output_is_stdout(const char *pattern);

/* Whether each target gets a file of its own: the pattern contains %p. */
bool ss_output_is_per_target(const char *pattern);

/* Checks a pattern (%p, %t, %%). Errors: INVALID. */
struct ss_error *ss_output_check(const char *pattern);

/* The name that a pattern stands for now; the caller frees it. NULL: no memory. */
char *ss_output_expand(const char *pattern, pid_t pid);

/*
 * Opens stdout or creates the file that pattern names: %p is pid, %t the local time as 20240131T235959. Errors: INVALID (it exists), SYSTEM,
 * DENIED, NO_MEMORY.
 */
struct ss_error *ss_output_open(const char *pattern, pid_t pid, struct ss_output **ret);

/* The same for a file in an open directory, whose name is used as it is. */
struct ss_error *ss_output_open_at(int directory, const char *name,
				   struct ss_output **ret);

/* The same for standard error. */
struct ss_error *ss_output_open_stderr(struct ss_output **ret);

FILE *ss_output_file(struct ss_output *output);

/* For callers that do not write through the stream: a new descriptor, owned by the caller;
   directory, name and path of the file, owned by the output, NULL for stdout. */
struct ss_error *ss_output_duplicate(const struct ss_output *output, int *ret);
const char *ss_output_directory(const struct ss_output *output);
const char *ss_output_name(const struct ss_output *output);
const char *ss_output_path(const struct ss_output *output);

/* Gives the file its name although nothing was flushed. Errors: INVALID (it exists by now),
   SYSTEM, DENIED, NO_MEMORY. */
struct ss_error *ss_output_publish(struct ss_output *output);

/* Whether the output is a terminal that supports colours, and NO_COLOR is not set. */
bool ss_output_wants_color(const char *pattern);

/* Flushes the stream, and publishes the file. Errors: SYSTEM (for example, disk full), those
   of ss_output_publish(). */
struct ss_error *ss_output_flush(struct ss_output *output);

/* Closes the output. Nothing is left of a file without a complete document. */
void ss_output_close(struct ss_output *output);

SS_DEFINE_CLEANUP(struct ss_output, ss_output, ss_output_close)

/*
 * Copies output of the sandboxed child, which is untrusted: control characters in it could
 * take over a terminal.
 */

/*
 * Copies a whole file to out. Newlines, tabs and, with color, sequences that switch colours
 * are kept; anything else that is not safe to print becomes \xNN. Write errors are left in
 * ferror() of out. Errors: SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_escaped_copy(int fd, bool color, FILE *out);

/* Copies a whole file to out unchanged. For output that does not go to a terminal. */
struct ss_error *ss_plain_copy(int fd, FILE *out);

#endif
