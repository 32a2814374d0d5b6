/*
 * The rate at which top samples, by what the samples cost.
 */
#ifndef SS_CLI_TOP_RATE_H
#define SS_CLI_TOP_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum { SS_TOP_RATE = 99, SS_TOP_RATE_MIN = 5 };

/* Zeroed, there is no limit. */
struct ss_top_rate {
	uint64_t limit; /* samples per second; 0: none */
	unsigned cheap; /* measurements in succession that would allow for more */
};

/* Sets the limit by a measurement: CPU time of the recorder in wall_ns at the given rate. Returns
   whether the rate must be lower at once. */
bool ss_top_rate_limit(struct ss_top_rate *rate, uint64_t now, uint64_t cpu_ns,
		       uint64_t wall_ns);

#endif
