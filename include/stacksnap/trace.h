/*
 * Traces: events of chosen functions of a process, from the kernel's uprobes. Conventions:
 * see stacksnap.h.
 */
#ifndef STACKSNAP_TRACE_H
#define STACKSNAP_TRACE_H

#include "stacksnap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Recordings -------------------------------------------------------------- */

/* What an event of a trace is. */
enum ss_trace_kind {
	SS_TRACE_HIT = 0,
	SS_TRACE_ENTER, /* a scope begins */
	SS_TRACE_EXIT,	/* it returns */
	SS_TRACE_LEFT, /* it ended in another way: an exception, longjmp(), execve(), the end of
			   its thread, a jump whose target is computed */
	SS_TRACE_OPEN, /* it had not ended when the trace ended */
};

enum { SS_TRACE_ARGS = 6 };

/* Totals of a trace. */
struct ss_trace_summary {
	uint64_t hits; /* as the kernel counted them, returns included; after the end */
	uint64_t read; /* of these: that were read */
	uint64_t lost; /* for which there was no room */
	uint64_t skipped;  /* not reported, because of every and max_rate */
	uint64_t unpaired; /* returns of calls that had begun before */
	uint64_t events;   /* reported */
	bool ended;	   /* the process has ended */
};

/* Tracing ----------------------------------------------------------------- */

/*
 * Events of chosen functions: that a thread calls one (a checkpoint), or the time from its
 * entry to its return (a scope). The kernel's uprobes report them; see stacksnap-trace(1) for
 * what may be probed and what it costs.
 */
struct ss_trace;

struct ss_trace_options {
	size_t size;		  /* sizeof(struct ss_trace_options) */
	const char *const *specs; /* what to probe, as the user writes it */
	size_t spec_count;
	bool scopes;	       /* see returns, too */
	uint64_t every;	       /* report each n-th hit only; 0: all */
	uint64_t max_rate;     /* report so many hits a second only; 0: all */
	unsigned args;	       /* registers of arguments to report, at most 6 */
	size_t max_stack;      /* bytes to copy of the stack of each hit; 0: no stacks */
	unsigned max_frames;   /* of a stack; 0: no limit */
	unsigned flags;	       /* enum ss_symbolize_flags, for the frames */
	const char *debug_dir; /* of separate debug files; NULL: /usr/lib/debug */
	/* No probes: sample each n-th minor page fault, and report those in memory without a
	   file, with the address as argument. specs, scopes, every and args are ignored.
	   0: probes */
	uint64_t faults;
	/* Stacks of two frames, a function and what called it, for which at most about half of
	   the time is taken; max_stack and max_frames are ignored */
	bool callers;
};

/* A function, line or USDT probe that a spec selects. */
struct ss_trace_probe {
	size_t spec;	  /* its index */
	const char *name; /* demangled */
	const struct ss_module *module;
	uint64_t offset; /* ELF virtual address */
	size_t returns;	 /* places at which its scope ends */
	bool usdt;
	bool line;     /* FILE:LINE, or MODULE+OFFSET */
	bool set;      /* it is probed; otherwise a note says why not */
	uint64_t hits; /* that were read so far */
};

/* Something that a user should know about a spec. */
struct ss_trace_note {
	size_t spec;
	const char *module; /* path */
	const char *text;
};

/* Valid during the call. */
struct ss_trace_event {
	enum ss_trace_kind kind;
	uint64_t sequence; /* from 1, without gaps */
	uint64_t time_ns;  /* CLOCK_REALTIME */
	uint64_t monotonic_ns;
	pid_t pid;
	pid_t tid;
	const char *name;     /* comm of the thread */
	size_t probe;	      /* for ss_trace_probe() */
	unsigned depth;	      /* of scopes: how many others of the thread contain it */
	uint64_t entry;	      /* EXIT, LEFT, OPEN: sequence of its ENTER */
	uint64_t duration_ns; /* EXIT, LEFT, OPEN */
	uint64_t self_ns;     /* likewise: without the scopes within it */
	uint64_t args[SS_TRACE_ARGS];
	unsigned arg_count;   /* HIT, ENTER */
	uint32_t stack;	      /* HIT, ENTER: for ss_trace_stack(); 0: not known */
	uint32_t entry_stack; /* EXIT, LEFT, OPEN: of its ENTER */
};

/* The stack of a hit. Its frames have no module_index. Strings are valid as long as the trace. */
struct ss_trace_stack {
	const struct ss_frame *frames; /* innermost first */
	size_t count;
	enum ss_end end;
};

typedef void ss_trace_handler(void *data, const struct ss_trace_event *event);

/* Whether this program may set probes. Errors: DENIED, UNSUPPORTED, as ss_trace_start(). */
SS_API struct ss_error *ss_trace_check(void);

/*
 * Finds what the specs select, in the modules that are loaded; a confined child process reads
 * their files. Sets no probe. The target must outlive the trace. Errors: INVALID,
 * NO_PROCESS, SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_trace_new(struct ss_target *target,
				     const struct ss_trace_options *options,
				     struct ss_trace **ret);
/* Removes the probes. */
SS_API void ss_trace_free(struct ss_trace *trace);
SS_API size_t ss_trace_probe_count(const struct ss_trace *trace);
SS_API const struct ss_trace_probe *ss_trace_probe(const struct ss_trace *trace,
						   size_t index);
SS_API size_t ss_trace_note_count(const struct ss_trace *trace);
SS_API const struct ss_trace_note *ss_trace_note(const struct ss_trace *trace,
						 size_t index);

/*
 * Sets the probes, in all threads of the process; threads and processes that these start are
 * traced, too. Errors: DENIED (root or CAP_SYS_ADMIN is needed), UNSUPPORTED (no uprobes),
 * INVALID (nothing to probe), NO_PROCESS, SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_trace_start(struct ss_trace *trace);

/* Reports what has happened since the last call, in the order of time. Call it some fifty
   times a second. Errors: NO_MEMORY. */
SS_API struct ss_error *ss_trace_read(struct ss_trace *trace, ss_trace_handler *handler,
				      void *data);

/* Ends the trace: reports what remains, and scopes that are open. Errors: NO_MEMORY. */
SS_API struct ss_error *ss_trace_end(struct ss_trace *trace, ss_trace_handler *handler,
				     void *data);

/* Stacks have the numbers 1, 2, and so on; those of events are known when they are reported. */
SS_API size_t ss_trace_stack_count(const struct ss_trace *trace);
SS_API const struct ss_trace_stack *ss_trace_stack(const struct ss_trace *trace,
						   uint32_t number);
SS_API const struct ss_trace_summary *ss_trace_summary(const struct ss_trace *trace);

#ifdef __cplusplus
}
#endif

#endif
