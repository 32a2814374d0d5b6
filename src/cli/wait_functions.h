/*
 * Files with functions that are known to wait: those of the system and of the user, and those
 * that options name.
 */
#ifndef SS_CLI_WAIT_FUNCTIONS_H
#define SS_CLI_WAIT_FUNCTIONS_H

#include "stacksnap.h"
#include "diagnose/wait_table.h"

/* An element of a struct argp_option array. */
#define SS_WAIT_FUNCTIONS_OPTION(key, group)                                             \
	{                                                                                \
		"wait-functions", (key), "FILE", 0,                                      \
			"Add the functions in FILE to those that are known to wait; "    \
			"see stacksnap-waits(5)",                                        \
			(group)                                                          \
	}

/* Creates a table of the functions that are built in and of those in
   /etc/stacksnap/wait-functions and $XDG_CONFIG_HOME/stacksnap/wait-functions. Warns of
   files that cannot be used. Errors: NO_MEMORY. */
struct ss_error *ss_wait_functions_load(struct ss_wait_table **ret);

/* Adds the functions in a file. Errors: SYSTEM (it cannot be read), INVALID, NO_MEMORY. */
struct ss_error *ss_wait_functions_add(struct ss_wait_table *table, const char *path);

#endif
