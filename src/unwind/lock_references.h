/*
 * Which frames of a thread refer to a lock that the thread may own: in their memory (as
 * C++ guards do), in a register, or in their code, which has called a function with
 * that global as its argument. Nothing records where a lock was taken, but the function
 * that took it, if it has not returned, usually still refers to it.
 */
#ifndef SS_UNWIND_LOCK_REFERENCES_H
#define SS_UNWIND_LOCK_REFERENCES_H

#include "model/snapshot.h"
#include "unwind/unwinder.h"

struct ss_lock_references {
	const struct ss_arch *arch;
	SS_VECTOR(uint64_t) locks;  /* futexes that threads wait on; ascending */
	SS_VECTOR(uint32_t) owners; /* thread ids that these may name; ascending */
	bool enabled;		    /* the current thread is one of owners */
	size_t code_read;	    /* bytes */
};

/* False without memory. */
bool ss_lock_references_init(struct ss_lock_references *refs,
			     const struct ss_capture *capture);
void ss_lock_references_deinit(struct ss_lock_references *refs);

/* Whether a thread may own a lock that another one waits for. */
bool ss_lock_references_is_owner(const struct ss_lock_references *refs,
				 const struct ss_capture_thread *thread);

/* Sets the current thread. */
void ss_lock_references_begin(struct ss_lock_references *refs,
			      const struct ss_capture_thread *thread);

/*
 * Adds to the snapshot the locks that a frame of its last thread refers to. index: of
 * the frame. caller: NULL if unknown. A value that the frame only preserves for its
 * caller, in a register or on the stack, counts for the caller.
 */
void ss_lock_references_add(struct ss_lock_references *refs, struct ss_snapshot *snapshot,
			    struct ss_unwind_context *ctx,
			    const struct ss_unwind_frame *frame,
			    const struct ss_unwind_frame *caller, size_t index);

#endif
