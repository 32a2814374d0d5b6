/*
 * The runtimes of one capture: finds out which there are, and puts their calls into the
 * stacks of threads in place of the native frames that execute them.
 */
#ifndef SS_RUNTIME_RUNTIMES_H
#define SS_RUNTIME_RUNTIMES_H

#include "data/snapshot.h"
#include "runtime/runtime.h"

/*
 * The order of a thread's calls: that of their native frames.
 */

/* Merges two parts of a list: the calls before an index, and those from it on. Each is in order; of
   the same native frame, those of the first part come first. False: no memory, nothing changed. */
bool ss_runtime_calls_merge(struct ss_runtime_call *calls, size_t first, size_t count);

struct ss_runtimes;

struct ss_runtimes_options {
	ss_memory_read_function *read;
	ss_thread_check_function *check;
	ss_memory_read_function *read_early;	     /* as in struct ss_unwind_options */
	ss_memory_read_ranges_function *read_ranges; /* likewise */
	void *read_data;
	bool native; /* keep the native frames */
	bool many;   /* a plan is for later captures, too */
};

/* Adds to the runtimes of the snapshot. NULL without memory. Everything is borrowed and
   must outlive the result. */
struct ss_runtimes *ss_runtimes_new(const struct ss_capture *capture,
				    struct ss_session *session,
				    struct ss_snapshot *snapshot,
				    const struct ss_runtimes_options *options);
void ss_runtimes_free(struct ss_runtimes *runtimes);

/* The stack of a thread. */
struct ss_runtimes_stack {
	const struct ss_frame *frames;
	const struct ss_native_frame *natives; /* the same frames */
	size_t count;
	bool complete;
};

/* Steps from a frame in the code of a runtime to its caller. */
enum ss_runtime_step ss_runtimes_step(struct ss_runtimes *runtimes,
				      struct ss_runtime_frame *frame);

/* The frames of a thread with those of runtimes, valid until the next call. */
struct ss_runtimes_frames {
	const struct ss_frame *items; /* NULL: there are none of runtimes */
	size_t count;
	const uint32_t
		*map; /* the new index of each frame of the stack; UINT32_MAX: none */
	/* Frames were left out since they are of other stacks: this one ends before them */
	bool ended;
	const char *reason; /* why there are native frames only; or NULL */
};

/* Finds the calls of a thread. False without memory. */
bool ss_runtimes_apply(struct ss_runtimes *runtimes,
		       const struct ss_capture_thread *thread,
		       const struct ss_runtimes_stack *stack,
		       struct ss_runtimes_frames *ret);

/* Whether a thread need not be unwound whose stack is known from the previous capture of a series,
   since when it has not run. */
bool ss_runtimes_skip(struct ss_runtimes *runtimes,
		      const struct ss_capture_thread *thread);

/* Adds the locks of runtimes to the snapshot. False without memory. */
bool ss_runtimes_add_locks(struct ss_runtimes *runtimes);

/* Adds the tasks of runtimes to the snapshot. Without memory they count as unread. */
void ss_runtimes_add_tasks(struct ss_runtimes *runtimes);

/* Gives the threads of the snapshot the names that their runtimes know. Without memory they keep
   those of the kernel. */
void ss_runtimes_add_names(struct ss_runtimes *runtimes);

/* Sets what signals can do, of the runtimes of the snapshot. */
void ss_runtimes_add_signals(struct ss_runtimes *runtimes);

/* Plans for the threads that could not be read late, in snapshot->runtime_plan. */
void ss_runtimes_plan(struct ss_runtimes *runtimes);

SS_DEFINE_CLEANUP(struct ss_runtimes, ss_runtimes, ss_runtimes_free)

/*
 * Which session of PostgreSQL holds the lock that a backend waits for: the shared memory of the
 * server has it. Relations, rows (by transaction), advisory locks; not lightweight locks.
 */

struct ss_postgres_lock {
	uint64_t address; /* of its LOCK */
	pid_t holder;	  /* the first session that has to release it */
};

/* The same for a session with that pid and PGPROC, in that shared memory. */
bool ss_postgres_read_lock(const struct ss_memory *memory, uint64_t proc, pid_t pid,
			   const struct ss_area *shared, struct ss_postgres_lock *ret);

/* False: the process is no backend that waits for a lock, or the holder is not known. */
bool ss_postgres_find_lock(const struct ss_runtime_process *process,
			   struct ss_postgres_lock *ret);

#endif
