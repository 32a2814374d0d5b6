/*
 * Durations of the scopes of a trace, as it happens or recorded, and the totals of one.
 */
#ifndef SS_REPORT_DURATIONS_H
#define SS_REPORT_DURATIONS_H

#include <stdint.h>
#include <stdio.h>

#include "report/profile.h"
#include "stacksnap/trace.h"

/*
 * The distribution of durations, in constant memory: sixteen ranges for each power of two, so that
 * a percentile is at most 6.25 % too high.
 */

enum { SS_DURATION_STEPS = 16, SS_DURATION_RANGES = 61 * SS_DURATION_STEPS };

struct ss_durations {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t ranges[SS_DURATION_RANGES];
};

/* "hit", "enter", "exit", "left", "open". Never NULL. */
const char *ss_trace_kind_name(enum ss_trace_kind kind);

void ss_durations_add(struct ss_durations *durations, uint64_t ns);
struct ss_durations *ss_profile_durations(const struct ss_profile *profile);

/* With three digits below a microsecond: functions are short. */
void ss_duration_write(uint64_t ns, FILE *out);

/* A line with sum, mean, extremes and percentiles. */
void ss_durations_write_line(const struct ss_durations *durations, FILE *out);

/* A line with the totals of a trace. */
void ss_trace_write_totals(const struct ss_trace_summary *summary, FILE *out);

/* A line for each power of two, with a bar. */
void ss_durations_write(const struct ss_durations *durations, FILE *out);

#endif
