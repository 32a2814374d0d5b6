/*
 * The samples of one or more recordings with labelled frames: the input of all formats of
 * a report. Frames of the same build at the same offset are one frame, whichever process
 * or machine they come from.
 *
 * Stacks are trees with shared outer parts. A call is a frame and its calling call; a node
 * is a function and its calling node. Index 0 of both is the root. A run is a sequence of
 * consecutive ticks at which a thread had the same stack and state.
 *
 * Objects refer to each other by index; SS_ID_NONE is none. Functions that add an object
 * return its index, or SS_ID_NONE without memory.
 */
#ifndef SS_REPORT_PROFILE_H
#define SS_REPORT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vector.h"
#include "stacksnap.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

/*
 * The names of frames in every format: the function, or module and offset, never a
 * bare address. Labels are not escaped: they may contain any byte but NUL.
 */

/* The functions below return memory for free(), or NULL if there is none. */

/* The symbol, or else the place; with raw, as ss_label_new_raw(). */
char *ss_label_new(const struct ss_frame *frame, bool raw);

/* "libc.so.6+0x10e0ae [9fa53c...]": the address to look names up with. */
char *ss_label_new_raw(const struct ss_frame *frame);

/* "libc.so.6+0x10e0af"; outside of modules the offset in the memory area, "[jit]+0x7a0",
   or, where nothing is mapped, the address. */
char *ss_label_new_place(const struct ss_frame *frame);

/* "libc.so.6", "[jit]", "[unmapped]": the module or memory area of a frame. */
char *ss_label_new_module(const struct ss_frame *frame);

struct ss_profile_recording {
	const char *file;
	const char *host;	   /* or NULL */
	const char *boot_id;	   /* "": not known */
	const char *const *labels; /* owned array; of recorded labels */
	size_t label_count;
	unsigned set;	     /* of two that are compared: 0 or 1 */
	const char *machine; /* "x86_64", or NULL */
	const char *problem; /* why it is incomplete, or NULL */
	uint64_t start_ns;   /* wall time */
	uint64_t period_ns;  /* 0: a snapshot */
	enum ss_recording_scope scope;
	uint64_t missed;    /* ticks, in the selected time */
	uint64_t unsampled; /* samples that were added, see ss_unsampled_add() */
	size_t more; /* further snapshots of the process that are ticks of this one */
	SS_VECTOR(uint64_t) ticks; /* since the start of the profile, ascending */
};

struct ss_profile_process {
	uint32_t recording;
	pid_t pid;
	const char *name;
	const char *executable; /* or NULL */
	uint64_t begin_ns;	/* as recorded; of a snapshot 0 */
};

struct ss_profile_run {
	uint32_t tick; /* the first one */
	uint32_t count;
	uint32_t call;
	uint32_t wait;	   /* or SS_ID_NONE */
	uint64_t argument; /* of the system call, see struct ss_profile_wait; or 0 */
	uint64_t cpu_ns;   /* CPU time since the previous sample, summed */
	uint64_t ready_ns; /* time of waiting for a CPU, likewise */
	char state;
	uint32_t
		lock; /* of the application, that the thread waits for: index + 1; 0: none */
	uint32_t detail; /* what it waits for: index in details + 1; 0: not known */
	uint32_t event;	 /* of a trace, which the sample stands for: index + 1; 0: none */
};

enum ss_profile_probe_kind { SS_PROBE_OF_FUNCTION, SS_PROBE_OF_USDT, SS_PROBE_OF_LINE };

/* What was traced. */
struct ss_profile_probe {
	const char *name;
	uint64_t module; /* or SS_ID_NONE */
	uint64_t offset; /* ELF virtual address */
	uint64_t kind;	 /* enum ss_profile_probe_kind */
};

/* A hit or scope of a trace. There are many: compact. */
struct ss_profile_event {
	uint64_t duration_ns;
	uint64_t self_ns; /* without the scopes within */
	uint32_t probe;
	uint32_t args; /* index of the first one in event_args */
	uint32_t depth : 24;
	uint32_t kind : 4; /* enum ss_trace_kind */
	uint32_t arg_count : 4;
};

/* Totals of a trace. */
struct ss_profile_trace {
	uint32_t recording;
	struct ss_trace_summary totals;
};

/* A lock of the application: see struct ss_wait_table. */
struct ss_profile_lock {
	const char *function; /* that waits for it */
	const char *words;    /* description, or NULL */
};

enum ss_wait_argument { SS_WAIT_NOTHING, SS_WAIT_DESCRIPTOR, SS_WAIT_ADDRESS };

/* A system call that threads waited in. */
struct ss_profile_wait {
	const char *name;		/* "futex", "epoll_wait" */
	enum ss_wait_argument argument; /* meaning of its first argument */
	bool restart; /* restart_syscall(2): continues an unknown call */
};

struct ss_profile_thread {
	uint32_t process;
	pid_t tid;
	const char *name;
	/* Not THREAD: a task of a runtime that is on no thread, in a snapshot. "goroutine (chan
	   receive)" or "task (waiting for Future)" is its name; its id is as in struct ss_task,
	   and that of a goroutine is its tid, too, if it fits. */
	enum ss_task_kind kind;
	uint64_t id;
	const char *task; /* ASYNCIO: what it is called; or NULL */
	/* Of a snapshot, of the last one: what it waits for; owned, or NULL */
	struct ss_wait *wait;
	uint32_t owner; /* the thread that it waits for: index + 1; 0: none */
	bool in_cycle;	/* it is part of a deadlock */
	/* It waits for a lock, a condition or a thread, also of another process, or is one that
	   others wait for. */
	bool in_wait_graph;
	SS_VECTOR(struct ss_profile_run) runs;
};

static inline bool ss_profile_is_thread(const struct ss_profile_thread *thread)
{
	return thread->kind == SS_TASK_THREAD;
}

struct ss_profile_lifetime {
	uint32_t module;
	uint32_t process;
	uint64_t base;
	uint64_t size;
	int64_t from_ns; /* since the start of the profile */
	int64_t to_ns;	 /* INT64_MAX: until the end */
};

struct ss_profile_function {
	const char *name; /* the symbol, or the location: "libc.so.6+0x1a0" */
	const char
		*place;	 /* without a symbol: the module or area: "libc.so.6"; or NULL */
	uint64_t module; /* SS_ID_NONE: in no file */
	uint64_t
		has_start; /* without a symbol: name is where it starts; else one address */
	/* Not a function: name says why the stack ends here; enum ss_end + 1 */
	uint64_t is_end;
	uint64_t is_origin; /* not a function: name says where the stack is from */
	uint64_t kind;	    /* enum ss_frame_kind */
	const char *file;   /* of a function of a runtime, or NULL */
};

struct ss_profile_frame {
	uint64_t function;
	uint64_t offset; /* ELF virtual address for the lookup; without a module the pc */
	uint64_t symbol_offset; /* of the return address */
	const char *file;	/* or NULL */
	uint64_t line;		/* 0: unknown */
	uint32_t inlined;
	uint32_t named; /* it has a symbol */
};

struct ss_profile_call {
	uint32_t parent;
	uint32_t frame;
};

struct ss_profile_node {
	uint32_t parent;
	uint32_t function;
};

/* What a value of a stack counts: "alloc_space", "bytes". */
struct ss_profile_unit {
	const char *kind;
	const char *unit;
};

enum { SS_PROFILE_UNITS_MAX = 4 };

/* A stack, and a value for each unit of the profile. */
struct ss_profile_total {
	uint32_t call;
	uint64_t values[SS_PROFILE_UNITS_MAX];
};

struct ss_profile {
	uint64_t start_ns; /* wall time of the start: that of the first recording */
	struct ss_intern *strings;
	SS_VECTOR(struct ss_profile_recording) recordings;
	SS_VECTOR(struct ss_profile_process) processes;
	SS_VECTOR(struct ss_profile_thread) threads;
	SS_VECTOR(struct ss_module) modules; /* builds, without their addresses */
	struct ss_idtable module_keys;	     /* struct module_key */
	SS_VECTOR(struct ss_profile_lifetime) lifetimes;
	SS_VECTOR(struct ss_profile_wait) waits;
	SS_VECTOR(struct ss_profile_lock) locks;
	SS_VECTOR(struct ss_wait *) details; /* owned; of samples */
	size_t detail_bytes;		     /* of memory that they take */
	struct ss_idtable probes;	     /* of struct ss_profile_probe */
	SS_VECTOR(struct ss_profile_event) events;
	SS_VECTOR(uint64_t) event_args;
	SS_VECTOR(struct ss_profile_trace) traces;
	/* Weight of a stack: the time of scopes, in nanoseconds, instead of samples. */
	bool by_time;
	uint64_t weight;	       /* of all samples */
	SS_VECTOR(const char *) notes; /* what is missing, one line each */
	size_t harmless;	       /* notes that do not mean an incomplete report */
	SS_VECTOR(uint32_t) node_of;   /* by call */
	struct ss_idtable functions;   /* of struct ss_profile_function */
	struct ss_idtable frames;      /* of struct ss_profile_frame */
	struct ss_idtable calls;       /* of struct ss_profile_call */
	struct ss_idtable nodes;       /* of struct ss_profile_node */
	/* Threads of snapshots, and those that are tasks of runtimes, by their keys */
	struct ss_idtable tasks;
	size_t task_counts[SS_TASK_KINDS];
	SS_VECTOR(uint32_t) task_threads; /* by number of these */
	uint64_t samples;
	uint64_t bytes; /* of the files of all recordings */
	/* In place of recordings: stacks with values, of a trace */
	struct ss_profile_unit units[SS_PROFILE_UNITS_MAX];
	size_t unit_count;
	size_t shown_unit; /* the one that counts, unless the reader chooses another */
	uint64_t period;   /* of that: what a sample stands for */
	uint64_t elapsed_ns;
	SS_VECTOR(struct ss_profile_total) totals;
};

/* Limits, so that a hostile recording cannot exhaust memory. */
enum { SS_PROFILE_CALLS_MAX = 24 << 20, SS_PROFILE_RUNS_MAX = 48 << 20 };

/* Lower limits for small recordings, and what each byte of a file adds to them. An idle
   thread is sampled a thousand times in eleven bytes, if there are a thousand threads. */
enum {
	SS_PROFILE_CALLS = 2 << 20,
	SS_PROFILE_CALLS_PER_BYTE = 64,
	SS_PROFILE_RUNS = 4 << 20,
	SS_PROFILE_RUNS_PER_BYTE = 16,
	SS_PROFILE_SAMPLES = 64 << 20,
	SS_PROFILE_SAMPLES_PER_BYTE = 1024,
	SS_PROFILE_TICKS = 1 << 20,
	SS_PROFILE_TICKS_PER_BYTE = 4,
};

/* Limits the time to load: a repeated sample takes almost no space in a file. Enough for
   twelve hours of a thousand threads at 100 Hz; takes minutes to load. */
#define SS_PROFILE_SAMPLES_MAX (UINT64_C(1) << 32)

/* NULL without memory. */
struct ss_profile *ss_profile_new(void);
void ss_profile_free(struct ss_profile *profile);

/* Finds or adds a module by build-id; by path as well if there is no build-id, or a
   problem. Strings are copied. with_problem: what says why it has no symbols is kept. */
uint32_t ss_profile_module(struct ss_profile *profile, const struct ss_module *from,
			   bool with_problem);

/* Find or add. Strings are copied. module may be SS_ID_NONE. */
uint32_t ss_profile_function(struct ss_profile *profile,
			     const struct ss_profile_function *function);
uint32_t ss_profile_frame(struct ss_profile *profile,
			  const struct ss_profile_frame *frame);

/* The same for a frame of a snapshot, with the names of formats. module: of the profile, or SS_ID_NONE. */
uint32_t ss_profile_add_frame(struct ss_profile *profile, const struct ss_frame *frame,
			      uint32_t module, bool raw);

/* Finds or adds the call of frame by parent. Returns SS_ID_NONE also if the profile is
   full. */
uint32_t ss_profile_call(struct ss_profile *profile, uint32_t parent, uint32_t frame);

/* Whether the limit of calls is reached. */
static inline bool ss_profile_is_full(const struct ss_profile *profile)
{
	return profile->calls.count >=
	       SS_MIN(SS_PROFILE_CALLS + SS_PROFILE_CALLS_PER_BYTE * profile->bytes,
		      (uint64_t)SS_PROFILE_CALLS_MAX);
}

/* Appends a run to those of a thread, or extends the last one. False without memory. */
bool ss_profile_sample(struct ss_profile *profile, uint32_t thread,
		       const struct ss_profile_run *run);

/* Adds a note about missing data. Returns false without memory. */
bool ss_profile_note(struct ss_profile *profile, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Returns the interned copy of text; NULL for NULL, and without memory. */
const char *ss_profile_text(struct ss_profile *profile, const char *text);

/* The state as a letter of proc(5); '?' if the recording contains anything else. */
static inline char ss_profile_state(const struct ss_profile_run *run)
{
	bool letter = (run->state >= 'A' && run->state <= 'Z') || run->state == 't';

	return letter ? run->state : '?';
}

/* The end of a run: the tick after it, or when that would have been. */
uint64_t ss_profile_run_end(const struct ss_profile_recording *recording,
			    const struct ss_profile_run *run);

/* The end of the last recording, since the start of the profile. */
uint64_t ss_profile_duration(const struct ss_profile *profile);

/* What a thread waits for in a run; NULL: not known. That of a snapshot is of its last sample. */
static inline const struct ss_wait *
ss_profile_wait_of(const struct ss_profile *profile,
		   const struct ss_profile_thread *thread,
		   const struct ss_profile_run *run)
{
	if (run->detail)
		return profile->details.items[run->detail - 1];
	return run == &thread->runs.items[thread->runs.count - 1] && run->state != 'R' ?
		       thread->wait :
		       NULL;
}

static inline const struct ss_profile_recording *
ss_profile_recording_of(const struct ss_profile *profile,
			const struct ss_profile_thread *thread)
{
	return &profile->recordings
			.items[profile->processes.items[thread->process].recording];
}

#define SS_PROFILE_ACCESS(name)                                                          \
	static inline const struct ss_profile_##name *ss_profile_##name##_at(            \
		const struct ss_profile *profile, uint64_t number)                       \
	{                                                                                \
		return ss_idtable_key(&profile->name##s, (uint32_t)number, NULL);        \
	}
SS_PROFILE_ACCESS(function)
SS_PROFILE_ACCESS(frame)
SS_PROFILE_ACCESS(call)
SS_PROFILE_ACCESS(node)
SS_PROFILE_ACCESS(probe)

/* The frame as one of a snapshot. Its symbol is NULL if it has none; then its area is known, unless it has
   a module or was outside of all areas. */
struct ss_frame ss_profile_frame_model(const struct ss_profile *profile,
				       const struct ss_profile_frame *frame);

static inline const struct ss_profile_event *
ss_profile_event_of(const struct ss_profile *profile, const struct ss_profile_run *run)
{
	return run->event ? &profile->events.items[run->event - 1] : NULL;
}

/* What a run counts for its stack. */
static inline uint64_t ss_profile_weight(const struct ss_profile *profile,
					 const struct ss_profile_run *run)
{
	const struct ss_profile_event *event = ss_profile_event_of(profile, run);

	if (!profile->by_time)
		return run->count;
	return event ? event->self_ns : 0;
}

/* Sets how stacks are weighted, after the last recording was loaded. */
void ss_profile_weigh(struct ss_profile *profile, bool by_time);

/* Whether all recordings are traces. */
bool ss_profile_is_trace(const struct ss_profile *profile);

SS_DEFINE_CLEANUP(struct ss_profile, ss_profile, ss_profile_free)

#endif
