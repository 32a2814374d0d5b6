/*
 * Copies output of the sandboxed child, which is untrusted: control characters in it could
 * take over a terminal.
 */
#ifndef SS_CLI_ESCAPED_COPY_H
#define SS_CLI_ESCAPED_COPY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Copies a whole file to out. Newlines, tabs and, with color, sequences that switch colours
 * are kept; anything else that is not safe to print becomes \xNN. Write errors are left in
 * ferror() of out. Errors: SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_escaped_copy(int fd, bool color, FILE *out);

/* Copies a whole file to out unchanged. For output that does not go to a terminal. */
struct ss_error *ss_plain_copy(int fd, FILE *out);

#endif
