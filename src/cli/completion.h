/*
 * Shell completion scripts, generated from the table of commands and their options.
 */
#ifndef SS_CLI_COMPLETION_H
#define SS_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

/* Writes the script for a shell. Returns false if the shell is unknown. */
bool ss_completion_print(const char *shell, FILE *out);

/* "bash, zsh, fish" */
const char *ss_completion_shells(void);

#endif
