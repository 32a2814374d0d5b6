/*
 * Watching a process for a while at next to no cost for it: counters before and after,
 * a capture at the begin and at the end that stops only what runs, and a few in between
 * of what runs then.
 */
#ifndef SS_CLI_HANG_LOOK_H
#define SS_CLI_HANG_LOOK_H

#include <stdbool.h>

#include "base/error.h"
#include "cli/options.h"

enum { SS_HANG_CAPTURES = 8 };

struct ss_hang_look {
	struct ss_activity *before;
	struct ss_activity *after;
	struct ss_capture *captures[SS_HANG_CAPTURES];
	size_t count; /* of captures; the last one has all threads */
	bool owner_known;
	uid_t uid; /* whom the process belongs to */
	gid_t gid;
};

/* Watches the process for that time. Errors: those of ss_target_open() and
   ss_capture_take(). */
struct ss_error *ss_hang_look_take(pid_t pid, uint64_t time_ns,
				   const struct ss_options *options,
				   struct ss_hang_look *ret);
void ss_hang_look_deinit(struct ss_hang_look *look);

/* Sleeps; returns early if a signal handler ran. */
void ss_hang_sleep(uint64_t time_ns);

#endif
