/*
 * A recorded process: converts captures of its sampler and stacks of the unwinder to
 * definitions and samples of the recording.
 */
#ifndef SS_SAMPLE_RECORDER_PROCESS_H
#define SS_SAMPLE_RECORDER_PROCESS_H

#include "base/vector.h"
#include "data/gather_plan.h"
#include "data/recording_writer.h"
#include "sample/access.h"
#include "sample/module_loads.h"
#include "sample/recorder_waits.h"
#include "sample/sampler.h"
#include "sample/unwinder.h"

struct ss_samples {
	SS_VECTOR(struct ss_sample_record) items;
};

/* A thread of the recording. */
struct ss_recorder_thread {
	pid_t tid;	 /* 0: the slot is free */
	uint32_t handle; /* the writer's */
	bool sampled;	 /* has been captured; the following members are valid: */
	uint32_t stack;	 /* the writer's number */
	uint32_t call;	 /* likewise, or SS_ID_NONE */
	char state;
	uint64_t counted_ns;	   /* time on a CPU that samples account for */
	uint64_t counted_ready_ns; /* waiting for one, likewise */
	char name[SS_COMM_MAX];
	struct ss_recorder_wait wait;
	bool queued; /* in pending */
	/* CLOCK_MONOTONIC; when its stack was first unreadable, or in its current sleep on a stack
	   that the memory map does not have; 0: never */
	uint64_t unread_ns;
	uint64_t unread_count; /* its run count then */
	uint32_t place;	       /* index of its sample in last + 1; 0: it is not in it */
};

/*
 * The names of code that a JIT compiler made in a recorded process: its perf map is
 * copied to the recording, and the report looks names up. Nothing is interpreted here.
 */
struct ss_recorder_perf_map {
	struct ss_perf_map_file map; /* file NULL: not found yet */
	bool has_jit_frames;	     /* a recorded frame is in no module */
	uint64_t searched_ns;	     /* CLOCK_MONOTONIC */
};

struct ss_recorder_process {
	struct ss_target *target;
	bool owned; /* the target is closed with the process */
	bool ended;
	bool lost; /* the unwinder failed in this tick */
	/* What runtimes need with the stacks, as the unwinder has planned it; owned. NULL: nothing yet */
	struct ss_gather_plan *plan;
	bool has_new_ids; /* of threads, since the plan was set */
	struct ss_sampler sampler;
	SS_VECTOR(struct ss_recorder_thread)
	threads;		      /* by slot of the sampler's threads */
	struct ss_module_set modules; /* id: the unwinder's */
	SS_VECTOR(uint32_t) handles;  /* of modules by their ids; SS_ID_NONE: none yet */
	SS_VECTOR(uint64_t) begins;   /* likewise, when they were loaded */
	struct ss_load_feed *feed;    /* borrowed, or NULL */
	struct ss_sample_reader *reader; /* likewise */
	uint32_t sample_plan;		 /* its handle of the plan */
	struct ss_module_loads loads;	 /* by the feed */
	uint64_t begin_ns;		 /* of the process in the recording */
	uint64_t brief_ns;		 /* when brief was set to 0 */
	unsigned brief;			 /* modules that came and went */
	size_t undefined;		 /* modules without a handle */
	bool no_memory;			 /* in a callback */
	struct ss_writer *writer;	 /* borrowed */
	struct ss_unwinder *unwinder;	 /* borrowed */
	struct ss_unwinder_space space;
	uint32_t handle; /* the writer's; SS_ID_NONE: not defined */
	uint64_t now_ns; /* CLOCK_MONOTONIC of the current tick */
	uint64_t period_ns;
	bool sampled; /* the current tick consists of samples of the CPUs */
	struct ss_recorder_perf_map perf_map;
	struct ss_recorder_waits waits;
	struct ss_recorder_waits_budget *waits_budget; /* borrowed */
	pid_t inner_pid;	    /* in its innermost pid namespace; 0: not known */
	SS_VECTOR(uint32_t) stacks; /* the writer's numbers of the unwound stacks */
	SS_VECTOR(struct ss_frame_record) frames;
	SS_VECTOR(pid_t) pending; /* threads whose waits are to be looked up */
	/* The samples of the last tick, and whether they are still those of the same threads. */
	SS_VECTOR(struct ss_sample_record) last;
	bool grouped;
};

struct ss_recorder_process_options {
	bool on_cpu;			 /* see struct ss_sampler */
	struct ss_load_feed *feed;	 /* NULL: running threads are stopped */
	struct ss_sample_reader *reader; /* of the samples, or NULL */
	uint64_t period_ns;
	struct ss_capture_options capture;
	struct ss_arena *arena;
	struct ss_writer *writer;
	struct ss_unwinder *unwinder;
	struct ss_recorder_waits_budget *waits_budget; /* shared by all processes */
};

/* Borrows all options, except the target if owned is set. NULL: no memory; an owned
   target is closed. The caller frees the process. */
struct ss_recorder_process *
ss_recorder_process_new(struct ss_target *target, bool owned,
			const struct ss_recorder_process_options *options);
void ss_recorder_process_free(struct ss_recorder_process *process);

/* Takes one tick: captures the threads that have run, defines new objects, and appends
   a sample of each thread. clocked: what was on the CPUs then, if that was sampled. Errors: those
   of ss_sampler_tick(). */
struct ss_error *ss_recorder_process_tick(struct ss_recorder_process *process,
					  uint64_t now_ns,
					  const struct ss_on_cpu_sample *clocked,
					  size_t count, struct ss_samples *samples,
					  struct ss_tick_record *written);

/* The same for a tick that consists of samples of the CPUs, see ss_sampler_take(). Appends
   samples of the threads that were on one. */
struct ss_error *ss_recorder_process_take(struct ss_recorder_process *process,
					  uint64_t now_ns,
					  const struct ss_on_cpu_sample *sampled,
					  size_t count, struct ss_samples *samples);

/* At the end of the recording. Errors: SYSTEM (the disk is full), NO_MEMORY. */
struct ss_error *ss_recorder_process_finish(struct ss_recorder_process *process);

/* The last sample of each thread, for ss_writer_roll(). False: no memory. */
bool ss_recorder_process_last(const struct ss_recorder_process *process,
			      struct ss_samples *samples);
/* Stores the new numbers of these samples. *next is the first sample of this process
   and is advanced past its last. */
void ss_recorder_process_renumber(struct ss_recorder_process *process,
				  const struct ss_sample_record **next);

/*
 * Its stacks (recorder_stacks.c).
 */

/* Writes the map of a process, if it has one. Errors: those of ss_writer_perf_map(). */
struct ss_error *ss_recorder_perf_map_write(struct ss_recorder_perf_map *perf_map,
					    struct ss_target *target,
					    struct ss_writer *writer, uint32_t process);

void ss_recorder_perf_map_deinit(struct ss_recorder_perf_map *perf_map);

/* Before stacks of a capture are written, of which there are count. False: no memory. */
bool ss_recorder_stacks_begin(struct ss_recorder_process *process, size_t count);

/* The number of a thread's stack. Threads share stacks, except those that end early with a reason.
   SS_ID_NONE: no memory. */
uint32_t ss_recorder_stack_of(struct ss_recorder_process *process,
			      const struct ss_capture *capture,
			      const struct ss_unwound *unwound, size_t index);

/* That of a stack without frames, since modules have changed (stale), or the thread has run. */
uint32_t ss_recorder_no_stack(struct ss_recorder_process *process, bool stale);

/*
 * Checks that the frames of a capture lie in the modules that the sampler assigned to them. current:
 * the kernel reports mappings of code, and has reported none since the memory map was read; then
 * frames in its areas are not checked. Returns the worst result for areas that were not verified.
 * Even SAME does not verify them: it was read after the thread may have run. *verified: all areas
 * of all threads were.
 */
enum ss_mapping_check ss_recorder_check_frames(struct ss_recorder_process *process,
					       const struct ss_capture *capture,
					       const struct ss_unwound *unwound,
					       bool current, bool *verified);

/*
 * The processes of a recording (recorder_processes.c): the first one and its descendants.
 */

struct ss_family {
	const struct ss_process_access *access; /* borrowed */
	SS_VECTOR(struct ss_target *) members;	/* likewise */
	uint64_t searched_ns;			/* CLOCK_MONOTONIC */
};

void ss_family_init(struct ss_family *family, const struct ss_process_access *access);
void ss_family_deinit(struct ss_family *family);

/* False: no memory. */
bool ss_family_add(struct ss_family *family, struct ss_target *target);
void ss_family_remove(struct ss_family *family, const struct ss_target *target);

/* Takes ownership of a found target; calls ss_family_add(). False: no memory. */
typedef bool ss_family_adopt(void *data, struct ss_target *target);

/* Searches for children of all members, at most every 50 ms. Skips children that have
   ended or may not be inspected and, without privileges, those that will probably execute
   a program next. False: no memory. */
bool ss_family_search(struct ss_family *family, uint64_t now_ns, ss_family_adopt *adopt,
		      void *data);

/* All of them and what they share: the arena for stacks and the unwinder. */
struct ss_processes {
	SS_VECTOR(struct ss_recorder_process *) items;
	struct ss_family family;
	struct ss_arena arena; /* the unwinder's child sees it */
	struct ss_unwinder unwinder;
	struct ss_recorder_process_options options;
	struct ss_recorder_waits_budget waits_budget;
	bool children; /* they are recorded, too */
	/* See ss_processes_count_stops(); in processes that have ended */
	uint64_t ended_stops;
	uint64_t ended_not_stopped;
	bool left_out; /* so were some children, for want of descriptors */
	bool late;     /* a sampler was late in this tick */
	bool lost;     /* the unwinder failed in this tick */
	_Atomic uint64_t
		/* CLOCK_MONOTONIC when the current read of one of them began; 0: none
		   */
		busy_since;
};

/* recorder: max_frames, children and on_cpu. feed, reader: see struct ss_recorder_process_options. Errors:
   SYSTEM, NO_MEMORY; must be deinitialized even then. */
struct ss_error *ss_processes_init(struct ss_processes *processes,
				   struct ss_target *target, struct ss_writer *writer,
				   const struct ss_recorder_options *recorder,
				   const struct ss_capture_options *options,
				   struct ss_load_feed *feed,
				   struct ss_sample_reader *reader);
void ss_processes_deinit(struct ss_processes *processes);

/* Takes one tick of all processes. clocked: see ss_recorder_process_tick(). */
struct ss_error *ss_processes_tick(struct ss_processes *processes, uint64_t now_ns,
				   const struct ss_on_cpu_sample *clocked, size_t count,
				   struct ss_samples *samples,
				   struct ss_tick_record *written);

/* The same for a tick that consists of samples of the CPUs; count: 0 if there are none. */
struct ss_error *ss_processes_take(struct ss_processes *processes, uint64_t now_ns,
				   const struct ss_on_cpu_sample *sampled, size_t count,
				   struct ss_samples *samples);

/* Whether a process is recorded. data: the processes. */
bool ss_processes_have(void *data, pid_t pid);

/* Begins a new segment of the file. */
struct ss_error *ss_processes_roll(struct ss_processes *processes, uint64_t monotonic_ns,
				   uint64_t wall_ns);

/* At the end of the recording. Errors: those of ss_recorder_process_finish(). */
struct ss_error *ss_processes_finish(struct ss_processes *processes);

/* How often threads were stopped, and how often they were not because of the limit of stops. */
void ss_processes_count_stops(const struct ss_processes *processes, uint64_t *ret_stops,
			      uint64_t *ret_not_stopped);

#endif
