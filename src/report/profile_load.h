/*
 * Adds the selected samples of recordings to a profile.
 */
#ifndef SS_REPORT_PROFILE_LOAD_H
#define SS_REPORT_PROFILE_LOAD_H

#include "base/error.h"
#include "data/recording.h"
#include "report/profile.h"
#include "stacksnap/record.h"

/* Select threads and modules; data is that of the options. */
typedef bool ss_load_selects_thread(void *data, pid_t tid, const char *name);
typedef bool ss_load_selects_module(void *data, const char *path);

struct ss_load_options {
	size_t size;				/* sizeof(struct ss_load_options) */
	uint64_t from_ns;			/* wall time; 0: from the start */
	uint64_t to_ns;				/* end, exclusive; 0: to the end */
	const char *states;			/* letters, or NULL: all */
	ss_load_selects_thread *selects_thread; /* NULL: all */
	/* NULL: all stacks; else those with a frame in a selected module */
	ss_load_selects_module *selects_module;
	void *data;
	/* Stacks begin with the host, or with the label of that key ("": all labels) */
	bool by_host;
	const char *by_label; /* or NULL */
	unsigned set;	      /* of two that are compared: 0 or 1 */
	bool raw;	      /* module and offset instead of names */
	bool native;   /* also the native frames for which calls of a runtime stand */
	bool unfolded; /* also those within and outside of calls of a runtime */
	bool unsampled; /* also CPU time that no sample stands for, see ss_unsampled_add() */
};

/*
 * Adds the samples of a recording. The caller has symbolized it, unless raw. file is its
 * name in the report. profile->start_ns must be set, and not be later than both the start
 * of the recording and from_ns. Errors: NO_MEMORY.
 */
struct ss_error *ss_load_recording(struct ss_profile *profile,
				   struct ss_recording *recording, const char *file,
				   const struct ss_load_options *options);

/*
 * Translates modules, frames and stacks of one recording to indexes in a profile, each
 * when it is first used.
 */

struct ss_load_frames {
	struct ss_profile *profile;
	const struct ss_recording *recording;
	const struct ss_load_options *options;
	uint32_t *modules;	/* by module of the recording */
	bool *selected_modules; /* by module; NULL: all are wanted */
	uint32_t *
		place_frames; /* by place: index + 1 into frames; 0: not translated yet */
	SS_VECTOR(uint32_t)
	frames; /* of each place: count, then the frames, innermost first */
	uint32_t *stack_calls;	 /* by stack: call + 1; 0: not translated yet */
	uint8_t *stack_selected; /* by stack: 0: unknown yet, 1: no, 2: yes */
	bool truncated;		 /* the profile was full */
};

/* Translates the modules. Returns false without memory. */
bool ss_load_frames_init(struct ss_load_frames *frames);
void ss_load_frames_deinit(struct ss_load_frames *frames);

/* Whether a stack contains a wanted module. */
bool ss_load_frames_wants(struct ss_load_frames *frames, uint32_t stack);

/* Returns the call of CPU time that no sample stands for; SS_ID_NONE without memory, or if the
   profile is full. */
uint32_t ss_load_frames_unsampled(struct ss_load_frames *frames);

/* Returns the call of a stack of the recording; SS_ID_NONE without memory. */
uint32_t ss_load_frames_call(struct ss_load_frames *frames, uint32_t stack);

/*
 * Snapshots of one process, each in a recording of its own, are ticks of one recording in a
 * profile: its threads are the same, and its stacks add up.
 */

struct ss_series {
	bool is_snapshot;      /* the recording is one, of one process */
	uint32_t process;      /* in the profile; SS_ID_NONE: it continues none */
	size_t first_lifetime; /* likewise, of its modules */
};

/* Finds the series that a recording continues: earlier snapshots of a process with the same
   host, boot, pid, name and program, in the same of two sets. */
struct ss_series ss_series_find(const struct ss_profile *profile,
				const struct ss_recording *recording, unsigned set);

/* Whether the module with this index in the recording was loaded at the same address
   before. */
bool ss_series_has_module(const struct ss_profile *profile,
			  const struct ss_series *series, size_t index, uint32_t module,
			  uint64_t base);

/* Removes the waits of the process. */
void ss_series_drop_waits(struct ss_profile *profile, const struct ss_series *series);

/*
 * CPU time that no sample stands for. The clock that samples the CPUs is an interrupt,
 * which the kernel blocks while it switches threads, and a virtual machine delivers it late:
 * of a thread that sleeps often, too few samples are in the kernel. The scheduler counts
 * that time. It becomes samples of a function of its own, at ticks of the thread without
 * one: so the shares of all other functions are shares of the CPU time.
 */

/* Adds them to the threads of a recording of scope SS_SCOPE_CPUS, if there are more than chance
   explains, with a call for stack. The threads begin at first_thread. False without memory. */
bool ss_unsampled_add(struct ss_profile *profile, uint32_t recording, size_t first_thread,
		      uint32_t call);

/* Whether there are so many. */
bool ss_unsampled_has(const struct ss_profile *profile, uint32_t recording,
		      size_t first_thread);

#endif
