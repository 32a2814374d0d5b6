/*
 * Which frames of a thread refer to a lock that it may hold: in their memory, as the
 * guards of C++ do, in a register, or in their code, which has called a function with
 * that global. Nothing tells where a lock was taken; but the function that did, if it has
 * not returned, mostly still knows the lock.
 */
#ifndef SS_UNWIND_HELD_H
#define SS_UNWIND_HELD_H

#include "model/capture.h"
#include "model/snapshot.h"
#include "unwind/memory.h"

struct ss_held {
	SS_VECTOR(uint64_t) locks;  /* futexes that threads wait on; ascending */
	SS_VECTOR(uint32_t) owners; /* ids that these may name; ascending */
	bool looks;		    /* the thread at hand is one of those */
	size_t code_seen;	    /* bytes */
};

/* False without memory. */
bool ss_held_init(struct ss_held *held, const struct ss_capture *capture);
void ss_held_deinit(struct ss_held *held);

void ss_held_begin(struct ss_held *held, const struct ss_capture_thread *thread);

/* What is known of a frame when it is left. next: the registers of its caller, or NULL. */
struct ss_held_frame {
	const struct ss_regs *regs;
	const struct ss_regs *next;
	size_t number;
	bool call; /* its pc is a return address */
};

/* Notes in the snapshot to which locks a frame of its last thread refers by itself: what
   it only keeps for its caller, in a register or saved on the stack, is the caller's. */
void ss_held_look(struct ss_held *held, struct ss_snapshot *snapshot,
		  struct ss_view *view, const struct ss_held_frame *frame);

#endif
