/*
 * Hands on what a process wrote that is not trusted any more: a text whose control
 * characters could take over a terminal.
 */
#ifndef SS_CLI_RELAY_H
#define SS_CLI_RELAY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Writes the whole of a file to out. New lines and tabs pass, and with color the
 * sequences that switch colours; anything else that is not safe to print becomes \xNN.
 * That writing failed is left to ferror() of out. Errors: SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_relay_write(int fd, bool color, FILE *out);

/* Writes the whole of a file to out as it is: bytes that no terminal gets to see. */
struct ss_error *ss_relay_copy(int fd, FILE *out);

#endif
