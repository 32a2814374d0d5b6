/*
 * Copying the stacks of stopped threads (or blocked ones that were not stopped) into
 * one arena, which is made and faulted in before the freeze.
 */
#ifndef SS_CAPTURE_STACKS_H
#define SS_CAPTURE_STACKS_H

#include "target/memory.h"
#include "capture/tasks.h"
#include "model/capture.h"

struct ss_arena {
	uint8_t *bytes;
	size_t size;
	size_t used;
	size_t ready; /* has been faulted in */
	struct ss_piece *pieces;
	struct ss_task **owners; /* of pieces */
	uint8_t *parts;		 /* what each piece is to its owner: a stack, or LOCK */
	size_t piece_capacity;
};

/* Reserves max_total bytes of addresses and faults in what tasks will need. An arena that
   was used is emptied, and used again. */
struct ss_error *ss_arena_prepare(struct ss_arena *arena,
				  const struct ss_capture *capture,
				  const struct ss_task_list *tasks,
				  const struct ss_capture_options *options);
void ss_arena_deinit(struct ss_arena *arena);

/* Copies the stacks of the tasks that wanted() picks, and the locks that they wait for.
   Allocates nothing. */
typedef bool ss_task_predicate(const struct ss_task *task);
void ss_arena_copy(struct ss_arena *arena, const struct ss_capture *capture,
		   struct ss_task_list *tasks, const struct ss_memory *memory,
		   const struct ss_capture_options *options, ss_task_predicate *wanted);

/* Moves the arena, less what is unused, into the capture. */
void ss_arena_give(struct ss_arena *arena, struct ss_capture *capture);

#endif
