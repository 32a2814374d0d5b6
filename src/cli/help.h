/*
 * The help of the program, and manual pages.
 */
#ifndef SS_CLI_HELP_H
#define SS_CLI_HELP_H

#include "cli/command.h"

/* Prints the help of the program: a screen. Returns the exit status. */
int ss_help_print(void);

/* Opens the manual page of a command, or prints its help if there is no man(1) or no page.
   Returns the exit status. */
int ss_help_open_manual(const struct ss_command *command);

#endif
