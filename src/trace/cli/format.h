/*
 * Writes a trace as it happens: as text, or as JSON with one object in each line; or, when it has
 * ended, its stacks in a format for profiles. See stacksnap-trace(1).
 */
#ifndef SS_TRACE_CLI_FORMAT_H
#define SS_TRACE_CLI_FORMAT_H

#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "base/vector.h"
#include "report/durations.h"
#include "report/json.h"
#include "report/format.h"
#include "report/profile.h"
#include "report/text.h"
#include "stacksnap.h"
#include "stacksnap/trace.h"

/*
 * Who makes the memory of a process grow: stacks that touch new pages first, as a trace of page
 * faults reports them, one of so many bytes.
 */
struct ss_growth_sample {
	uint64_t page; /* its number */
	uint32_t stack;
	uint32_t order;
	bool held; /* it is still there */
};

/* A stack with its samples. */
struct ss_growth_site {
	uint32_t stack;
	uint64_t samples;
	uint64_t held; /* of these */
};

/* Zeroed, it is empty. */
struct ss_growth {
	uint64_t sample_bytes; /* that each sample stands for */
	bool held_only; /* leave out what is not there any more, and sort by the rest */
	unsigned rows;
	pid_t pid;
	uint64_t samples;
	uint64_t held;
	uint64_t unsampled_bytes; /* touched since the last sample of a thread on a CPU */
	SS_VECTOR(struct ss_growth_sample) items;
	SS_VECTOR(struct ss_growth_site)
	sites; /* after growth_finish(), largest first */
};

void ss_growth_deinit(struct ss_growth *growth);

/* Hits of a probe that have the same stack. */
struct ss_trace_caller {
	uint32_t probe;
	uint32_t stack; /* 0: not known */
	uint64_t hits;
	uint64_t duration_ns; /* of those that have ended */
};

enum { SS_TRACE_SLOWEST = 5, SS_TRACE_NAME = 64 };

/* A call; zeroed: none. */
struct ss_trace_slow {
	uint64_t duration_ns;
	uint64_t time_ns; /* CLOCK_REALTIME when it began */
	pid_t tid;
	enum ss_trace_kind kind;
	char name[SS_TRACE_NAME]; /* of the thread */
};

struct ss_trace_slowest {
	struct ss_trace_slow calls[SS_TRACE_SLOWEST]; /* slowest first */
};

/* What the writers know besides the event. */
struct ss_trace_output {
	FILE *out;
	const struct ss_trace *trace;
	uint64_t begin_ns;
	uint64_t elapsed_ns;		/* at the end */
	struct ss_durations *durations; /* by probe; of scopes that returned */
	uint32_t stacks;		/* so many have been written */
	SS_VECTOR(uint64_t) weights;	/* profile: by number of the stack - 1 */
	bool scopes;			/* profile: these are times */
	const struct ss_format
		*profile; /* of the stacks at the end; NULL: another format */
	bool failed;	  /* no memory for the result: nothing, or not all, was written */
	struct ss_trace_slowest *slow; /* text: by probe */
	struct ss_idtable caller_ids;  /* text: indexes of callers, by probe and stack */
	SS_VECTOR(struct ss_trace_caller) callers;
	bool whole_stacks;	  /* text: of callers */
	bool summary;		  /* text: hits are not shown */
	struct ss_growth *growth; /* of ss_growth_text and the like, or NULL */
	uint64_t last_second;	  /* text: of the time that is in date */
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

/* A summary; and each hit before it. */
extern const struct ss_trace_format ss_trace_text;
extern const struct ss_trace_format ss_trace_text_verbose;

/* When the trace has ended, a profile. */
extern const struct ss_trace_format ss_trace_profile;

/* Of page faults, for --alloc. */
extern const struct ss_trace_format ss_growth_text;
extern const struct ss_trace_format ss_growth_json;
extern const struct ss_trace_format ss_growth_profile;

/* Writes the members "frames" and "end" of the stack of a hit. */
void ss_json_trace_stack(struct ss_json *json, const struct ss_trace_stack *stack);

/* Plain text. */
extern const struct ss_format_options ss_trace_plain;

/* Adds a stack to a profile. False without memory. */
bool ss_trace_add_total(struct ss_profile *profile, const struct ss_trace_stack *stack,
			const uint64_t values[SS_PROFILE_UNITS_MAX]);

/* Writes it. NULL: no memory. */
void ss_trace_write_profile(struct ss_trace_output *output, struct ss_profile *profile);

/* The formats of a trace, or of growth; of SS_FORMAT_TOTALS in *ret_profile, too. NULL: there is none
   of that name. */
const struct ss_trace_format *ss_trace_format_find(const char *name, bool growth,
						   const struct ss_format **ret_profile);

/* For --list: what the specs select. */
void ss_trace_write_probes(const struct ss_trace *trace, FILE *out);

#endif
