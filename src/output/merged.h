/*
 * Merges the stacks of several snapshots of a process: which calls threads were in, and in
 * how many of the snapshots.
 */
#ifndef SS_OUTPUT_MERGED_H
#define SS_OUTPUT_MERGED_H

#include "base/buffer.h"
#include "output/format.h"
#include "output/group.h"

struct ss_merged_thread {
	const struct ss_thread
		*thread;  /* as in the last snapshot in which it has the stack */
	size_t snapshots; /* in which it has the stack */
};

/* A stack that threads had in at least one snapshot. */
struct ss_merged_stack {
	enum ss_group_class class;    /* the first of those that it had */
	size_t last;		      /* the last snapshot that has it, */
	const struct ss_group *group; /* and its group there */
	size_t snapshots;	      /* that have it */
	size_t times;		      /* threads that had it, summed over the snapshots */
	size_t states[128];	      /* these by state */
	SS_VECTOR(struct ss_merged_thread) threads;
};

struct ss_merged {
	struct ss_merged_stack
		*items; /* the class that comes first, then the most often */
	size_t count;
	struct ss_grouping **groupings; /* by snapshot */
	size_t grouping_count;
	size_t thread_count; /* different ones */
};

/*
 * Stacks are equal if they have the same functions and end for the same reason: the places in
 * these functions do not count, so that a thread that runs in a loop has one stack. Stacks
 * of different threads that execute an interpreter are different. NULL without memory.
 */
struct ss_merged *ss_merged_new(const struct ss_snapshots *snapshots);
void ss_merged_free(struct ss_merged *merged);

/* Adds what tells frames apart: the function, and its file if it is of a runtime; without a name
   its address. */
void ss_merged_add_frame(struct ss_buffer *key, const struct ss_frame *frame,
			 bool with_module);

SS_DEFINE_CLEANUP(struct ss_merged, ss_merged, ss_merged_free)

#endif
