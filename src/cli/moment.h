/*
 * Moments of a recording as people type them: seconds since its begin ("12.5"), or times
 * of the clock ("11:45:06", "2026-11-21 11:45:06.5", with "T" for the space).
 */
#ifndef SS_CLI_MOMENT_H
#define SS_CLI_MOMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct ss_moment {
	bool is_set;
	bool is_relative;
	bool has_date;
	struct tm clock;      /* local time, without a date that of the begin */
	uint64_t nanoseconds; /* since the begin, or of the second */
};

/* False: text is none. */
bool ss_moment_parse(const char *text, struct ss_moment *ret);

/* The wall time of a moment in a recording that began at begin_ns; 0 if it is not set.
   Without a date it is the first such time from the second of the begin on. */
uint64_t ss_moment_resolve(const struct ss_moment *moment, uint64_t begin_ns);

#endif
