/*
 * Writes a trace as it happens: as text, or as JSON with one object in each line; or,
 * when it has ended, as folded stacks. See stacksnap-trace(1).
 *
 * To add a format: a struct ss_trace_format, a line in the table of trace.c, a paragraph in the
 * manual page, a test.
 */
#ifndef SS_REPORT_TRACE_H
#define SS_REPORT_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "base/vector.h"
#include "report/profile.h"
#include "stacksnap.h"
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

void ss_durations_add(struct ss_durations *durations, uint64_t ns);
struct ss_durations *ss_profile_durations(const struct ss_profile *profile);

/* A line with sum, mean, extremes and percentiles. */
void ss_durations_write_line(const struct ss_durations *durations, FILE *out);

/* A line with the totals of a trace. */
void ss_trace_write_totals(const struct ss_trace_summary *summary, FILE *out);

/* A line for each power of two, with a bar. */
void ss_durations_write(const struct ss_durations *durations, FILE *out);

/* What the writers know besides the event. */
struct ss_trace_output {
	FILE *out;
	const struct ss_trace *trace;
	struct ss_durations *durations; /* by probe; of scopes that returned */
	uint32_t stacks;		/* so many have been written */
	SS_VECTOR(uint64_t) weights;	/* folded: by number of the stack - 1 */
	struct ss_growth *growth;	/* of ss_growth_text and the like, or NULL */
	uint64_t last_second;		/* text: of the time that is in date */
	char date[16];
};

struct ss_trace_format {
	const char *name;
	bool wants_stacks;			       /* useless without */
	void (*begin)(struct ss_trace_output *output); /* or NULL */
	void (*event)(struct ss_trace_output *output, const struct ss_trace_event *event);
	/* After the last event; durations have been counted. */
	void (*end)(struct ss_trace_output *output);
};

/* Of page faults, for --alloc. */
extern const struct ss_trace_format ss_growth_text;
extern const struct ss_trace_format ss_growth_json;
extern const struct ss_trace_format ss_growth_folded;
extern const struct ss_trace_format ss_growth_pprof;
/* NULL: there is no format of that name. */
const struct ss_trace_format *ss_growth_format_find(const char *name);

/* Writes one line. */
void ss_trace_write_folded(const struct ss_trace_stack *stack, uint64_t weight,
			   FILE *out);

/* NULL: there is no format of that name. */
const struct ss_trace_format *ss_trace_format_find(const char *name);

/* For --list: what the specs select. */
void ss_trace_write_probes(const struct ss_trace *trace, FILE *out);

#endif
