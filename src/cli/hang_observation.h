/*
 * Observes a process for a while at little cost to it: scheduler counters and captures of
 * all threads at the start and at the end, and a few captures of running threads between.
 */
#ifndef SS_CLI_HANG_OBSERVATION_H
#define SS_CLI_HANG_OBSERVATION_H

#include <stdbool.h>

#include "base/error.h"
#include "cli/analysis.h"

enum { SS_HANG_CAPTURES = 8 };

struct ss_hang_observation {
	struct ss_target *target;
	struct ss_activity *before;
	struct ss_activity *after;
	struct ss_capture *captures[SS_HANG_CAPTURES];
	size_t count; /* of captures; the last one has all threads */
	struct ss_analysis_owner owner;
};

/* Observes the process for that time. Errors: those of ss_target_open() and
   ss_capture_take(). */
struct ss_error *ss_hang_observe(pid_t pid, uint64_t time_ns,
				 const struct ss_options *options,
				 struct ss_hang_observation *ret);
/* Stops these threads of the last capture to complete their stacks, as far as possible. */
void ss_hang_observation_complete(struct ss_hang_observation *observation,
				  const struct ss_options *options, const pid_t *tids,
				  size_t count);
/* Takes all captures once more, in a shorter time, with a plan: frames of runtimes in threads that run
   are copied with their stacks. After a failure the observation stays as it was. */
void ss_hang_observation_repeat(struct ss_hang_observation *observation,
				const struct ss_options *options,
				const struct ss_gather_plan *plan);
void ss_hang_observation_deinit(struct ss_hang_observation *observation);

#endif
