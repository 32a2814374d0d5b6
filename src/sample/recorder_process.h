/*
 * A recorded process: what the recording has of it, and its ticks (recorder_tick.c), which make
 * definitions and samples of captures of its sampler and stacks of the unwinder.
 */
#ifndef SS_SAMPLE_RECORDER_PROCESS_H
#define SS_SAMPLE_RECORDER_PROCESS_H

#include "base/intern.h"
#include "base/vector.h"
#include "data/facts.h"
#include "data/gather.h"
#include "data/recording_writer.h"
#include "diagnose/wait_table.h"
#include "sample/sampler.h"
#include "sample/modules.h"
#include "sample/unwinder.h"

/*
 * What the threads of a recording wait for: the object, its owner, the other end of a connection. It
 * is looked up once for each wait, when it begins, and recorded with the system call. No thread is
 * stopped. All lookups together take a limited share of the time.
 */

enum { SS_WAIT_NAME_MAX = 64 };

/*
 * The lookup of a wait.
 *
 *	NONE     -> PENDING  the thread was captured in a call that is known to wait
 *	PENDING  -> DROPPED  it was captured again, and does not wait
 *	         -> NONE     it was looked up
 *	DROPPED  -> PENDING  it waits once more, and has kept its place in the queue
 *	         -> NONE     its turn has come
 */
enum ss_wait_lookup { SS_LOOKUP_NONE, SS_LOOKUP_PENDING, SS_LOOKUP_DROPPED };

/* The wait of one thread, as it was captured. */
struct ss_recorder_wait {
	enum ss_wait_lookup lookup;
	bool musl; /* its C library */
	char state;
	pid_t tid;
	uint64_t run_count; /* while it is the same, the thread is in that call */
	struct ss_syscall call;
	struct ss_regs regs;
	char function[SS_WAIT_NAME_MAX]; /* that waits for a lock; "": not known */
};

/* A thread of the recording. */
struct ss_recorder_thread {
	uint32_t handle; /* the writer's */
	uint32_t stack;	 /* likewise; SS_ID_NONE: not captured yet */
	uint32_t call;	 /* likewise, or SS_ID_NONE */
	char state;
	uint64_t counted_ns;	   /* time on a CPU that samples account for */
	uint64_t counted_ready_ns; /* waiting for one, likewise */
	bool has_runtime_name;
	struct ss_recorder_wait wait;
	/* CLOCK_MONOTONIC; when its stack was first unreadable, or in its current sleep on a stack
	   that the memory map does not have; 0: never */
	uint64_t unread_ns;
	uint64_t unread_count; /* its run count then */
	uint32_t place; /* of its sample among the last ones, + 1; 0: it is not there */
};

/* The time that the lookups of all processes take. Those that find none left are the first ones
   in the next tick. A zeroed struct has spent nothing. */
struct ss_recorder_waits_budget {
	uint64_t begin_ns; /* CLOCK_MONOTONIC of the first lookup; 0: none yet */
	uint64_t spent_ns; /* of CPU time */
	size_t asked;	   /* processes that asked in this tick */
	size_t first;	   /* those before have had their turn */
	bool refused;	   /* a process, in this tick */
};

struct ss_recorder_waits {
	struct ss_wait_table *table;
	struct ss_idtable known;   /* keys of waits without an owner that changes */
	SS_VECTOR(uint32_t) calls; /* the writer's numbers, by key */
	struct ss_buffer key;	   /* scratch */
	SS_VECTOR(pid_t) queue; /* threads whose waits are to be looked up, or dropped */
	uint64_t forgotten_ns;	/* CLOCK_MONOTONIC; when known was emptied */
};

void ss_recorder_waits_deinit(struct ss_recorder_waits *waits);

/* A thread was captured, or its sample has no stack (NULL): notes its wait, if it is in a call that
   is known to wait. function: NULL, not known. False: no memory. */
bool ss_recorder_waits_note(struct ss_recorder_waits *waits,
			    struct ss_recorder_wait *wait,
			    const struct ss_capture_thread *captured,
			    const char *function, bool musl);

/* Begins a tick of all processes. */
void ss_recorder_waits_budget_begin(struct ss_recorder_waits_budget *budget);

/* Whether time is left for lookups of the next process, which asks once in a tick. */
bool ss_recorder_waits_may_look(struct ss_recorder_waits *waits,
				struct ss_recorder_waits_budget *budget, uint64_t now_ns);

/* Looks up what threads wait for whose waits have begun, some in a tick, if time is left. samples: the
   last ones, which get the calls that were found, or NULL. False: no memory. */
bool ss_recorder_waits_look(struct ss_recorder_waits *waits,
			    struct ss_recorder_waits_budget *budget,
			    struct ss_sampler *sampler, struct ss_writer *writer,
			    struct ss_sample_record *samples, uint64_t now_ns);

/* The writer's numbers are not valid any more. */
void ss_recorder_waits_forget(struct ss_recorder_waits *waits);

struct ss_samples {
	SS_VECTOR(struct ss_sample_record) items;
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

/* A module, by the id of the unwinder. */
struct ss_recorder_module {
	uint32_t handle; /* the writer's; SS_ID_NONE: not defined yet */
	uint64_t begin_ns;
};

/* As of the last tick. */
enum ss_recorder_process_state {
	SS_PROCESS_RECORDED,
	SS_PROCESS_LOST, /* the unwinder failed in this tick */
	SS_PROCESS_ENDED,
};

struct ss_recorder_process_options {
	bool on_cpu; /* see struct ss_sampler */
	/* Threads are neither listed nor stopped: ticks consist of samples of the CPUs, see
	   ss_sampler_take(). */
	bool only_samples;
	struct ss_load_feed *feed;	 /* NULL: running threads are stopped */
	struct ss_sample_reader *reader; /* of the samples, or NULL */
	uint64_t period_ns;
	struct ss_capture_options capture;
	struct ss_arena *arena;
	struct ss_writer *writer;
	struct ss_unwinder *unwinder;
	struct ss_recorder_waits_budget *waits_budget; /* shared by all processes */
};

struct ss_recorder_process {
	const struct ss_recorder_process_options *options; /* borrowed */
	struct ss_target *target;
	bool owned; /* the target is closed with the process */
	enum ss_recorder_process_state state;
	/* What runtimes need with the stacks, as the unwinder has planned it; owned. NULL: nothing yet */
	struct ss_gather_plan *plan;
	uint32_t sample_plan; /* the handle that the reader has of it */
	struct ss_sampler sampler;
	struct ss_module_set modules;			       /* id: the unwinder's */
	SS_VECTOR(struct ss_recorder_module) recorded_modules; /* by that id */
	size_t undefined;	      /* modules without a handle */
	struct ss_load_feed *feed;    /* borrowed; NULL: loads are not known */
	struct ss_module_loads loads; /* by the feed */
	uint64_t begin_ns;	      /* of the process in the recording */
	uint64_t brief_ns;	      /* when brief was set to 0 */
	unsigned brief;		      /* modules that came and went */
	struct ss_unwinder_space space;
	uint32_t handle; /* the writer's; SS_ID_NONE: not defined */
	uint64_t now_ns; /* CLOCK_MONOTONIC of the current tick */
	struct ss_recorder_perf_map perf_map;
	struct ss_recorder_waits waits;
	SS_VECTOR(uint32_t) stacks; /* the writer's numbers of the unwound stacks */
	SS_VECTOR(struct ss_frame_record) frames;
	/* The samples of the last tick, and whether they are still those of the same threads. */
	SS_VECTOR(struct ss_sample_record) last;
	bool grouped;
};

/* Borrows all options, except the target if owned is set. NULL: no memory; an owned
   target is closed. The caller frees the process. */
struct ss_recorder_process *
ss_recorder_process_new(struct ss_target *target, bool owned,
			const struct ss_recorder_process_options *options);
void ss_recorder_process_free(struct ss_recorder_process *process);

/* Takes one tick: captures the threads that have run, defines new objects, and appends a sample of
   each thread. clocked: what was on the CPUs then, if that was sampled; with only_samples, of each of
   these threads. Errors: those of ss_sampler_tick(). */
struct ss_error *ss_recorder_process_tick(struct ss_recorder_process *process,
					  uint64_t now_ns,
					  const struct ss_on_cpu_sample *clocked,
					  size_t count, struct ss_samples *samples,
					  struct ss_tick_record *written);

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
 * What a tick defines. Each returns false, or NULL, without memory.
 */

/* Whether the kernel has reported no mapping of code since the memory map was read. */
bool ss_recorder_process_is_current(const struct ss_recorder_process *process);

/* Applies a change of the address space, which is SAME then. New modules are defined once the
   unwinder has described them: by the next function. */
bool ss_recorder_process_follow(struct ss_recorder_process *process,
				enum ss_address_space_change *change);
bool ss_recorder_process_define_modules(struct ss_recorder_process *process);

/* Defines a new thread, or a new name of a known one. */
struct ss_recorder_thread *
ss_recorder_process_define_thread(struct ss_recorder_process *process,
				  struct ss_sampled_thread *thread);

/* The name that a runtime has for a thread takes the place of the kernel's. NULL: as before. */
void ss_recorder_process_name_thread(struct ss_recorder_process *process,
				     struct ss_recorder_thread *recorded,
				     const char *name);

/* Ends the threads that have ended. */
void ss_recorder_process_end_threads(struct ss_recorder_process *process);

/* The process has ended. Errors: those of ss_recorder_process_finish(). */
struct ss_error *ss_recorder_process_end(struct ss_recorder_process *process);

/* Takes the plan of an answer. Whether it must be set: it is new, or for threads whose ids are known by
   now. */
bool ss_recorder_process_take_plan(struct ss_recorder_process *process,
				   const struct ss_unwound *unwound);

/* Sets what is copied with the stacks of threads from now on. What was copied is dropped. */
void ss_recorder_process_set_plan(struct ss_recorder_process *process);

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

/* recorder: max_frames, children, on_cpu and period_ns. feed, reader: see struct
   ss_recorder_process_options. Errors: SYSTEM, NO_MEMORY; must be deinitialized even then. */
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
