/*
 * The wait-for graph of one process: its cycles are deadlocks, the threads at the ends of
 * its chains are blockers. A deadlock is reported only if all its waits existed at the
 * same time.
 */
#ifndef SS_DIAGNOSE_DEADLOCK_H
#define SS_DIAGNOSE_DEADLOCK_H

#include "data/snapshot.h"

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

#endif
