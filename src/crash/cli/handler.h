/*
 * stacksnap core --handler: what the kernel runs when a process has crashed
 * (/proc/sys/kernel/core_pattern, core(5)).
 */
#ifndef SS_CRASH_CLI_HANDLER_H
#define SS_CRASH_CLI_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "data/gather_plan.h"

/* Where reports are, by default. */
#define SS_CORE_DIRECTORY "/var/lib/stacksnap"

/* What the kernel passes: %P %I %s %t %d %F. */
enum { SS_CORE_HANDLER_ARGUMENTS = 6 };

struct ss_core_handler {
	struct ss_options *settings;
	const char *directory; /* of reports */
	uint64_t quota;	       /* bytes */
	unsigned rate;	       /* reports in a minute */
	const char *forward;   /* a command that gets the whole dump; or NULL */
	const char *arguments[SS_CORE_HANDLER_ARGUMENTS];
	unsigned argument_count;
	/* For --install: what else is on the command line, without the program. */
	const char *const *options;
	size_t option_count;
	size_t skip; /* the index of --install in options */
};

/* Standard input is the dump. Returns the exit status. */
int ss_core_handler_run(const struct ss_core_handler *handler);

/* A ss_core_planner; data: the session. */
bool ss_core_handler_plan_goroutines(void *data, const struct ss_capture *capture,
				     struct ss_gather_plan *ret);

#endif
