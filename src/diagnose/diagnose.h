/*
 * The diagnosis of one thread in progress: its captured facts, and the wait to fill in.
 * Diagnosis never accesses the process.
 */
#ifndef SS_DIAGNOSE_DIAGNOSE_H
#define SS_DIAGNOSE_DIAGNOSE_H

#include "data/call.h"
#include "data/futex.h"
#include "data/snapshot.h"
#include "diagnose/lock.h"
#include "diagnose/wait_table.h"

struct ss_diagnosis {
	struct ss_snapshot *snapshot;
	const struct ss_task *thread;
	const struct ss_thread_facts *facts; /* of the thread; never NULL */
	struct ss_wait *wait; /* initially of kind OTHER, with fd -1 and so on */
	bool failed;	      /* out of memory */
};

/*
 * The time limits of system calls.
 */

/* Sets timed, timeout_ns and left_ns of the wait if known. */
void ss_time_limit_read(struct ss_diagnosis *d, const struct ss_call *call);
void ss_time_limit_read_futex(struct ss_diagnosis *d, const struct ss_futex *futex);

/*
 * File descriptors in snapshots.
 */

/* Converts a process of the facts to one of a snapshot. */
struct ss_related_process ss_related_process(const struct ss_facts *facts,
					     const struct ss_process_fact *process);

/*
 * The wait-for graph of one process: its cycles are deadlocks, the threads at the ends of
 * its chains are blockers. A deadlock is reported only if all its waits existed at the
 * same time.
 */

/* Whether idle threads typically wait like this, without a time limit. Who reads from a FIFO may
   wait for work, but who writes has something to say; and UNIX sockets are connected at once, unless too many
   wait for it. */
bool ss_wait_is_idle(const struct ss_wait *wait);

/* Whether the program handles a signal that someone would send to it to make it go on or
   end. Python handles SIGINT in every program; the other exceptions report errors and
   children, or are those of the C library. */
bool ss_process_expects_signal(const struct ss_process *process);

/*
 * Waits for related processes, whose snapshots are in snapshot->others.
 */

/* Sets the chain of each wait, after the threads of all processes were diagnosed. False
   without memory. */
bool ss_chains_find(struct ss_snapshot *snapshot);

/* Sets deadlocks and blockers of a snapshot after its threads were diagnosed. False
   without memory. */
bool ss_deadlock_find(struct ss_snapshot *snapshot);

/*
 * The wait-for graph of several processes, and its proven cycles.
 */

/* Sets cycles, and stuck_elsewhere and closed of waits, after the threads of all processes were
   diagnosed. False without memory. */
bool ss_process_cycle_find(struct ss_snapshot *snapshot);

/*
 * Tasks of asyncio that wait for each other in a cycle, or whose event loop nothing can wake: none of
 * them can continue, unless one is cancelled.
 */

/* Sets in_cycle, cycle_next and endless of the tasks, after the threads were diagnosed. False without
   memory. */
bool ss_task_cycles_find(struct ss_snapshot *snapshot);

/*
 * What functions on the stacks say about waits, according to a table; and the locks of
 * applications that threads wait for.
 */

/*
 * Frames counted from the outermost one: what two stacks have in common.
 */

/* Whether two frames are of the same function; without symbols, whether they have the
   same pc. */
bool ss_frame_is_same_function(const struct ss_frame *a, const struct ss_frame *b);

/* The frame with that number, counted from the outermost one, which is 0. */
const struct ss_frame *ss_outer_frame(const struct ss_snapshot *snapshot,
				      const struct ss_task *thread, size_t from_outside);

/* The number of outermost frames of two threads with the same functions. */
size_t ss_outer_frames_common(const struct ss_snapshot *a, const struct ss_task *x,
			      const struct ss_snapshot *b, const struct ss_task *y);

/*
 * The frames of a lock's owner that refer to the lock.
 */

/* Sets owner_frames of all waits with a known owner in the same process. */
void ss_owner_frames_find(struct ss_snapshot *snapshot);

/* Sets the purpose of the waits of a diagnosed snapshot. False without memory. */
bool ss_purposes_find(struct ss_snapshot *snapshot, const struct ss_wait_table *table);

/* Sets the application locks of a snapshot whose waits have a purpose. False without
   memory. */
bool ss_application_locks_find(struct ss_snapshot *snapshot);

#endif
