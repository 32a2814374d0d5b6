/*
 * The stacks of a snapshot with the functions of runtimes, and the locks and tasks of these, as
 * bytes. Of a series, one child process after another finds them, since the process must not
 * have moved on, and a last one reads what they have saved. The bytes are untrusted: every
 * index, count and length is checked. Both children are forks of the same program, so
 * structs are written as they are.
 */
#ifndef SS_UNWIND_SAVED_STACKS_H
#define SS_UNWIND_SAVED_STACKS_H

#include "data/capture.h"
#include "data/snapshot.h"

struct ss_saved_stacks;

/* Reads what a capture has for its snapshot, to which the runtimes, their locks, tasks and
   stacks are added. native: keep the native frames for which those of runtimes stand. *ret is
   NULL if there is nothing, or if it is not valid: then threads are unwound. False without
   memory. */
bool ss_saved_stacks_open(const struct ss_capture *capture, struct ss_snapshot *snapshot,
			  bool native, struct ss_saved_stacks **ret);
/* Reads those of the previous capture of a series, of which only the stacks of threads count that
   have not run since. *ret and the result are as above. */
bool ss_saved_stacks_open_earlier(const struct ss_capture *capture,
				  struct ss_snapshot *snapshot,
				  struct ss_saved_stacks **ret);
void ss_saved_stacks_free(struct ss_saved_stacks *saved);

/* Whether there is a stack of a thread that lacks nothing. */
bool ss_saved_stacks_has_whole(const struct ss_saved_stacks *saved, pid_t tid);

/* Sets the stack of the last thread of the snapshot, with the locks to which it refers. *found:
   there is one. False without memory. */
bool ss_saved_stacks_apply(struct ss_saved_stacks *saved, struct ss_task *thread,
			   bool *found);

SS_DEFINE_CLEANUP(struct ss_saved_stacks, ss_saved_stacks, ss_saved_stacks_free)

#endif
