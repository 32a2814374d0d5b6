/*
 * What all formats of a report are made from: the samples of one or more recordings, with
 * named frames, brought together. Frames of the same build at the same offset are one
 * frame, whichever process or machine they come from.
 *
 * Stacks are kept as trees that share their outer parts: a call is a frame and the call
 * that it was made by, a node the same with functions for frames. Number 0 of both is the
 * root, which stands for nothing. Samples are kept as runs: ticks of a recording, one
 * after the other, at which a thread had the same stack and state.
 *
 * Everything is a number into a vector here; SS_NUMBER_NOT is none. Functions that add
 * give it where there is no memory.
 */
#ifndef SS_REPORT_PROFILE_H
#define SS_REPORT_PROFILE_H

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vector.h"
#include "report/numbering.h"
#include "stacksnap.h"

struct ss_profile_recording {
	const char *file;
	const char *host;	   /* or NULL */
	const char *machine;	   /* "x86_64", or NULL */
	const char *problem;	   /* why it is not whole, or NULL */
	uint64_t start_ns;	   /* wall time */
	uint64_t period_ns;	   /* 0: a snapshot */
	uint64_t missed;	   /* ticks */
	SS_VECTOR(uint64_t) ticks; /* since the begin of the profile, ascending */
};

struct ss_profile_process {
	uint32_t recording;
	pid_t pid;
	const char *name;
	const char *executable; /* or NULL */
};

struct ss_profile_run {
	uint32_t tick; /* the first one */
	uint32_t count;
	uint32_t call;
	uint32_t wait;	   /* or SS_NUMBER_NOT */
	uint64_t argument; /* of wait, as it says; or 0 */
	uint64_t cpu_ns;   /* on a processor, since the sample before each */
	char state;
};

enum ss_wait_argument { SS_WAIT_NOTHING, SS_WAIT_DESCRIPTOR, SS_WAIT_ADDRESS };

/* A system call that threads waited in. */
struct ss_profile_wait {
	const char *name;		/* "futex", "epoll_wait" */
	enum ss_wait_argument argument; /* what its first argument says */
	bool restart; /* another call that goes on, which one is not known */
};

struct ss_profile_thread {
	uint32_t process;
	pid_t tid;
	const char *name;
	SS_VECTOR(struct ss_profile_run) runs;
};

/* What a thread of a snapshot waits for; see struct ss_recorded_wait. */
struct ss_profile_link {
	uint32_t thread;
	uint32_t owner; /* or SS_NUMBER_NOT */
	const char *kind;
	const char *text;
	bool in_circle;
};

/* One build of a module. */
struct ss_profile_module {
	const char *path;
	const char *build_id; /* or NULL */
	const char *problem;  /* why it has no names, or NULL */
};

struct ss_profile_lifetime {
	uint32_t module;
	uint32_t process;
	uint64_t base;
	uint64_t size;
	int64_t from_ns; /* since the begin of the profile */
	int64_t to_ns;	 /* INT64_MAX: till the end */
};

struct ss_profile_function {
	const char *name;
	uint64_t module;
};

struct ss_profile_frame {
	uint64_t function;
	uint64_t offset; /* ELF virtual address to look up; without a module the pc */
	uint64_t symbol_offset; /* of the return address */
	const char *file;	/* or NULL */
	uint64_t line;		/* 0: not known */
	uint32_t inlined;
	uint32_t named; /* by a symbol, not by where it lies */
};

struct ss_profile_call {
	uint32_t parent;
	uint32_t frame;
};

struct ss_profile_node {
	uint32_t parent;
	uint32_t function;
};

struct ss_profile {
	uint64_t start_ns; /* wall time of the begin: that of the first recording */
	struct ss_intern *strings;
	SS_VECTOR(struct ss_profile_recording) recordings;
	SS_VECTOR(struct ss_profile_process) processes;
	SS_VECTOR(struct ss_profile_thread) threads;
	SS_VECTOR(struct ss_profile_module) modules;
	struct ss_numbering module_keys; /* what tells them apart: ss_profile_module */
	SS_VECTOR(struct ss_profile_lifetime) lifetimes;
	SS_VECTOR(struct ss_profile_wait) waits;
	SS_VECTOR(struct ss_profile_link) links;
	SS_VECTOR(const char *) notes; /* what is missing, in words */
	SS_VECTOR(uint32_t) node_of;   /* by call */
	struct ss_numbering functions; /* of struct ss_profile_function */
	struct ss_numbering frames;    /* of struct ss_profile_frame */
	struct ss_numbering calls;     /* of struct ss_profile_call */
	struct ss_numbering nodes;     /* of struct ss_profile_node */
	uint64_t samples;
};

/* No profile has more of each: a hostile recording shall not take all memory. */
enum { SS_PROFILE_CALLS_MAX = 24 << 20, SS_PROFILE_RUNS_MAX = 48 << 20 };

/* Nor all time: a repeated sample takes next to nothing in a file, and some nanoseconds
   to read. This is half a day of a thousand threads, or some minutes here. */
#define SS_PROFILE_SAMPLES_MAX (UINT64_C(1) << 32)

/* NULL without memory. */
struct ss_profile *ss_profile_new(void);
void ss_profile_free(struct ss_profile *profile);

/* The module with this build-id; without one, or with a problem, that path as well. */
uint32_t ss_profile_module(struct ss_profile *profile, const char *path,
			   const char *build_id, const char *problem);

/* Texts are copied. module and the like may be SS_NUMBER_NOT. */
uint32_t ss_profile_function(struct ss_profile *profile, const char *name,
			     uint32_t module);
uint32_t ss_profile_frame(struct ss_profile *profile,
			  const struct ss_profile_frame *frame);

/* The call of frame by parent. SS_NUMBER_NOT also of a new one where there are too many. */
uint32_t ss_profile_call(struct ss_profile *profile, uint32_t parent, uint32_t frame);

/* Whether there are as many calls as there may be. */
static inline bool ss_profile_is_full(const struct ss_profile *profile)
{
	return profile->calls.count >= SS_PROFILE_CALLS_MAX;
}

/* Adds one tick to the runs of a thread, or as many as run has. False without memory. */
bool ss_profile_sample(struct ss_profile *profile, uint32_t thread,
		       const struct ss_profile_run *run);

/* Adds a line to what is missing. False without memory. */
bool ss_profile_note(struct ss_profile *profile, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The pool's copy of text; NULL of NULL, and without memory. */
const char *ss_profile_text(struct ss_profile *profile, const char *text);

/* When a run ends: at the tick after it, or what would be one. */
uint64_t ss_profile_run_end(const struct ss_profile_recording *recording,
			    const struct ss_profile_run *run);

/* The end of the last recording, since the begin. */
uint64_t ss_profile_duration(const struct ss_profile *profile);

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
		return ss_numbering_key(&profile->name##s, (uint32_t)number);            \
	}
SS_PROFILE_ACCESS(function)
SS_PROFILE_ACCESS(frame)
SS_PROFILE_ACCESS(call)
SS_PROFILE_ACCESS(node)

SS_DEFINE_CLEANUP(struct ss_profile, ss_profile, ss_profile_free)

#endif
