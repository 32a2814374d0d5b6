/*
 * Parses times in a recording: seconds since its start ("12.5"), or wall times ("11:45:06",
 * "2026-11-21 11:45:06.5", or with "T" for the space).
 */
#ifndef SS_CLI_TIME_ARGUMENT_H
#define SS_CLI_TIME_ARGUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct ss_time_argument {
	bool is_set;
	bool is_relative;
	bool has_date;
	struct tm clock;      /* local time; without a date, the date of the start */
	uint64_t nanoseconds; /* since the start, or within the second */
};

/* Returns false if text is not a time. */
bool ss_time_argument_parse(const char *text, struct ss_time_argument *ret);

/* Returns the wall time of the argument for a recording that started at begin_ns; 0 if it is
   not set. Without a date it is the first such time not before the second of the start. */
uint64_t ss_time_argument_resolve(const struct ss_time_argument *argument,
				  uint64_t begin_ns);

#endif
