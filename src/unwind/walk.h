/*
 * The walk along one stack, frame by frame: which unwinder finds the caller of a frame, and
 * why the stack ends.
 */
#ifndef SS_UNWIND_WALK_H
#define SS_UNWIND_WALK_H

#include "data/capture.h"
#include "data/gather.h"
#include "data/snapshot.h"
#include "unwind/cfi.h"
#include "unwind/unwinder.h"

/*
 * Which frames of a thread refer to a lock that the thread may own: in their memory (as
 * C++ guards do), in a register, or in their code, which has called a function with
 * that global as its argument. Nothing records where a lock was taken, but the function
 * that took it, if it has not returned, usually still refers to it.
 */

struct ss_lock_references {
	const struct ss_arch *arch;
	SS_VECTOR(uint64_t) locks;  /* futexes that threads wait on; ascending */
	SS_VECTOR(uint32_t) owners; /* thread ids that these may name; ascending */
	bool initializing; /* any thread may be the one that initialises something */
	bool enabled;	   /* the current thread may be an owner */
	size_t code_read;  /* bytes */
};

/* False without memory. */
bool ss_lock_references_init(struct ss_lock_references *refs,
			     const struct ss_capture *capture);
void ss_lock_references_deinit(struct ss_lock_references *refs);

/* Whether a thread may own a lock that another one waits for. */
bool ss_lock_references_is_owner(const struct ss_lock_references *refs,
				 const struct ss_capture_thread *thread);

enum { SS_UNWINDERS_MAX = 16 };

/* The state that unwinders keep for a session. */
struct ss_unwinders {
	void *states[SS_UNWINDERS_MAX]; /* by index in the table of walk.c; NULL: none */
};

/* False without memory; ss_unwinders_deinit() is needed in any case. */
bool ss_unwinders_init(struct ss_unwinders *unwinders);
void ss_unwinders_deinit(struct ss_unwinders *unwinders);

struct ss_walk {
	struct ss_snapshot *snapshot; /* for its strings */
	struct ss_unwind_context ctx;
	struct ss_lock_references lock_references;
	const struct ss_unwinders *unwinders;
	/* The thread does not run, and the pc of its registers is a return address. */
	bool parked;
	size_t limit;	   /* of the frames of a thread that are shown */
	size_t max_frames; /* at present; those of runtimes may take more native ones */
	const char *frames_reason;
	SS_VECTOR(struct ss_frame) frames; /* result: of the current thread */
	/* Registers of each of frames. LIVE: none */
	SS_VECTOR(struct ss_native_frame) natives;
	enum ss_end end;	     /* result */
	enum ss_frame_source source; /* of the current frame */
	unsigned guesses;
	bool searched;	  /* a return address or frame pointer was searched for */
	bool guessed;	  /* nothing has confirmed it: what follows is a guess */
	unsigned inward;  /* signal frames that led inwards */
	uint64_t skipped; /* frames of recursions, in all threads */
};

/* Finds the frames of a thread and why they end. False without memory. */
bool ss_walk_thread(struct ss_walk *walk, const struct ss_capture_thread *thread);

/*
 * What the tables of Go's runtime tell about stacks: where functions begin, which are the outermost
 * ones, and how far the stack pointer has moved at each instruction. The latter makes CFI rows for
 * programs without CFI, which, unlike frame pointers, cover functions without a frame.
 */

/* address: ELF virtual. False: not a Go program, or its tables do not cover address. */
bool ss_go_row_make(struct ss_image *image, uint64_t address, struct ss_cfi_row *ret);

/*
 * Unwinds the goroutines of a Go program that are parked: runtime/go/goroutines.h says where
 * each continues.
 */

/* Adds the goroutines of the capture to the walk's snapshot, after its threads. False
   without memory. */
bool ss_goroutines_walk(struct ss_walk *walk, const struct ss_unwind_options *options);

/* See ss_capture_plan_goroutines(). */
bool ss_goroutines_plan(struct ss_unwind_context *ctx, struct ss_gather_plan *ret);

/*
 * The stacks of a snapshot with the functions of runtimes, and the locks and tasks of these, as
 * bytes: see ss_capture_add_stacks(). Of a series, one child process after another finds them, since
 * the process must not have moved on, and a last one reads what they have sent. The bytes are
 * untrusted.
 */

struct ss_saved_stacks;

/* Reads what a capture has for its snapshot, to which the runtimes, their locks, tasks and
   stacks are added. native: keep the native frames for which those of runtimes stand. earlier: only
   the stacks of the previous capture of a series, of which those of threads count that have not run
   since. *ret is NULL if there is nothing, or if it is not valid: then threads are unwound. False
   without memory. */
bool ss_saved_stacks_open(const struct ss_capture *capture, struct ss_snapshot *snapshot,
			  bool native, bool earlier, struct ss_saved_stacks **ret);
void ss_saved_stacks_free(struct ss_saved_stacks *saved);

/* Whether there is a stack of a thread that lacks nothing. */
bool ss_saved_stacks_has_whole(const struct ss_saved_stacks *saved, pid_t tid);

/* Sets the stack of the last thread of the snapshot, with the locks to which it refers. *found:
   there is one. False without memory. */
bool ss_saved_stacks_apply(struct ss_saved_stacks *saved, struct ss_task *thread,
			   bool *found);

SS_DEFINE_CLEANUP(struct ss_saved_stacks, ss_saved_stacks, ss_saved_stacks_free)

#endif
