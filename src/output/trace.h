/*
 * Writes a trace as it happens: as text, or as JSON with one object in each line; or,
 * when it has ended, as folded stacks. See stacksnap-trace(1).
 *
 * To add a format: a struct ss_trace_format, a line in the table of trace.c, a paragraph in the
 * manual page, a test.
 */
#ifndef SS_OUTPUT_TRACE_H
#define SS_OUTPUT_TRACE_H

#include <stdio.h>

#include "base/vector.h"
#include "output/durations.h"
#include "stacksnap.h"

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

extern const struct ss_trace_format ss_trace_text;
extern const struct ss_trace_format ss_trace_json;
extern const struct ss_trace_format ss_trace_folded;

/* Of page faults, for --alloc. */
extern const struct ss_trace_format ss_growth_text;
extern const struct ss_trace_format ss_growth_json;
extern const struct ss_trace_format ss_growth_folded;
extern const struct ss_trace_format ss_growth_pprof;
/* NULL: there is no format of that name. */
const struct ss_trace_format *ss_growth_format_find(const char *name);

/* What they have in common. */
void ss_growth_begin(struct ss_trace_output *output);
void ss_growth_take(struct ss_trace_output *output, const struct ss_trace_event *event);

/* Writes one line. */
void ss_trace_write_folded(const struct ss_trace_stack *stack, uint64_t weight,
			   FILE *out);

/* NULL: there is no format of that name. */
const struct ss_trace_format *ss_trace_format_find(const char *name);
/* NULL after the last one. */
const struct ss_trace_format *ss_trace_format_at(size_t index);

/* For --list: what the specs select. */
void ss_trace_write_probes(const struct ss_trace *trace, FILE *out);

#endif
