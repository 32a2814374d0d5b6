/*
 * Locks of CPython, 3.8 to 3.14: threading.Lock (_thread.lock) and threading.RLock
 * (_thread.RLock). Each object has a semaphore, on which threads wait; from 3.14 on each thread
 * that waits has one. An RLock records its owner. A Lock does not: its owner is known only if that is in a "with" statement of
 * this lock. The frame has the lock's __exit__ on its stack then, and its code says that the current
 * instruction is between the two.
 *
 * threading.Thread.join() waits for a Lock that a thread releases as it ends, from 3.13 on for an
 * event that is no object.
 *
 * It reads memory of the time since the capture: what it finds of a thread counts if the thread
 * has not run since.
 */
#ifndef SS_RUNTIME_PYTHON_LOCKS_H
#define SS_RUNTIME_PYTHON_LOCKS_H

#include "runtime/python/code.h"
#include "runtime/runtime.h"

struct ss_python_lock {
	uint64_t address;
	uint64_t
		shown; /* identifies it to users: its semaphore, or from 3.14 on its mutex */
	uint64_t semaphore;
	bool recursive; /* RLock */
	bool certain; /* what the thread at the semaphore waits for, with or without an owner */
	/* RLock: the owner's id in its thread state; 0: none */
	uint64_t owner_id;
	/* Lock: the thread in whose with statement it provably is; or NULL */
	const struct ss_capture_thread *owner;
	const struct ss_capture_thread *waiter; /* one of those that wait for it */
	/* To 3.12: the thread whose end releases this Lock; or NULL */
	const struct ss_capture_thread *joined;
	/* From 3.13 on: it is no lock, but the end of the thread with that id; or 0 */
	uint64_t joined_id;
	bool several; /* threads are, or not all were searched: none of them counts */
};

/* Locks that threads wait for and that are locked; at most max. copied: memory of the moment of
   the capture. Returns how many. */
size_t ss_python_locks_find(const struct ss_runtime_process *process,
			    const struct ss_python_layout *layout,
			    const struct ss_memory *copied, struct ss_python_lock *ret,
			    size_t max);

/* Sets joined of the locks that the end of a thread releases. */
void ss_python_joins_find(const struct ss_memory *memory,
			  const struct ss_python_layout *layout, uint64_t state,
			  const struct ss_capture_thread *thread,
			  struct ss_python_lock *locks, size_t count);

/* Of the threads of a process, in bytes of tables: a fraction of a second. Hostile tables are
   large, and all of a thread's functions may have one. */
enum { SS_PYTHON_LOCKS_WORK = 1 << 26 };

/* Searches the frames of a thread state for with statements of these locks, and sets their
   owners. work_left: for all threads, SS_PYTHON_LOCKS_WORK at first; with none left no Lock has an
   owner. */
void ss_python_locks_search(const struct ss_memory *memory,
			    const struct ss_python_layout *layout, uint64_t state,
			    const struct ss_capture_thread *thread,
			    struct ss_python_lock *locks, size_t count,
			    uint64_t *work_left);

#endif
