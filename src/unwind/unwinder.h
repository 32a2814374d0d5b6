/*
 * Ways to find the caller of a frame. Each is one constant struct; walk.c has the table
 * that says which one is tried when. They use registers, memory and the unwind tables
 * of files, never a live process: stacks of any processor can be unwound on any
 * machine.
 *
 * To add one: write a file with its struct ss_unwinder, declare it below, add it to the
 * table in walk.c.
 */
#ifndef SS_UNWIND_UNWINDER_H
#define SS_UNWIND_UNWINDER_H

#include "unwind/context.h"

enum ss_step {
	SS_STEP_OK,	  /* the frame is the caller's now */
	SS_STEP_ROOT,	  /* this is the outermost frame */
	SS_STEP_NO_INFO,  /* no unwind information covers the pc */
	SS_STEP_BAD,	  /* unwind information that cannot be interpreted */
	SS_STEP_COMPLEX,  /* unwind information that this unwinder does not support */
	SS_STEP_MISSING,  /* memory that is needed was not copied: see ctx->missing */
	SS_STEP_REGISTER, /* the value of a register that is needed is not known */
	SS_STEP_SKIP,	  /* not applicable: the previous result stands */
};

/* A frame as unwinders see it. */
struct ss_unwind_frame {
	struct ss_regs regs;
	bool call;	 /* pc is a return address */
	bool signal;	 /* pc is in a signal trampoline */
	bool new_thread; /* the thread has not run in user space yet */
	unsigned links;	 /* consecutive frame records followed to get here */
};

struct ss_unwinder {
	const char *name;
	enum ss_frame_source source; /* source of the frames that it finds */

	/* What it keeps for a session. Both NULL: nothing. new() returns NULL without
	   memory. */
	void *(*new)(void);
	void (*free)(void *state);

	/* Turns the frame into its caller's. Unless it returns OK, the frame is
	   unchanged. */
	enum ss_step (*step)(void *state, struct ss_unwind_context *ctx,
			     struct ss_unwind_frame *frame);
};

extern const struct ss_unwinder ss_unwinder_signal;	/* signal trampolines */
extern const struct ss_unwinder ss_unwinder_cfi;	/* tables of ELF files */
extern const struct ss_unwinder ss_unwinder_registered; /* CFI of JIT code */
extern const struct ss_unwinder ss_unwinder_runtime;	/* code of runtimes */
extern const struct ss_unwinder ss_unwinder_known_fp;	/* CFI, fp found */
extern const struct ss_unwinder ss_unwinder_missing_fp; /* CFI, fp searched for */
extern const struct ss_unwinder ss_unwinder_libunwind;	/* CFI of every kind */
extern const struct ss_unwinder ss_unwinder_go;		/* Go's runtime tables */
extern const struct ss_unwinder ss_unwinder_new_thread; /* the root of a new one */
extern const struct ss_unwinder ss_unwinder_bad_call;	/* a call through a bad pointer */
extern const struct ss_unwinder ss_unwinder_link_register; /* a leaf without CFI */
extern const struct ss_unwinder ss_unwinder_frame_pointer; /* frame records */
extern const struct ss_unwinder ss_unwinder_scan; /* return addresses on the stack */

/* The address to look up the frame's function and row with: a call may be the last
   instruction of a function. */
static inline uint64_t ss_unwind_lookup_pc(const struct ss_unwind_context *ctx,
					   const struct ss_unwind_frame *frame)
{
	return ss_regs_pc(ctx->arch, &frame->regs) - (frame->call && !frame->signal);
}

#endif
