/*
 * Copies the stacks of stopped threads, or of blocked threads that were not stopped, into
 * one arena that is allocated and faulted in before the freeze.
 */
#ifndef SS_CAPTURE_STACKS_H
#define SS_CAPTURE_STACKS_H

#include "process/process_memory.h"
#include "capture/tasks.h"
#include "data/capture.h"
#include "data/gather.h"

struct ss_arena {
	uint8_t *bytes;
	size_t size;
	size_t used;
	size_t kept;	 /* at its beginning, see ss_arena_keep() */
	size_t reserved; /* at its end */
	size_t ready;	 /* bytes that have been faulted in */
	size_t dirty;	 /* bytes that may not be 0 */
	bool shared;	 /* shared with another process: */
	int shared_fd;	 /* read-only descriptor; -1: a child has inherited it */
	struct ss_piece *pieces;
	struct ss_tracee **owners; /* of pieces */
	uint8_t *parts;		   /* for each piece: the index of the stack, or LOCK */
	size_t piece_capacity;
};

/* Makes an empty arena in memory that another process can map read-only. Errors:
   NO_MEMORY. */
struct ss_error *ss_arena_share(struct ss_arena *arena, size_t size);

/* Reserves max_total bytes of address space and faults in what tasks will need. A used
   arena is reused, except for what is kept. kept: see ss_arena_hand_over(), or NULL. */
struct ss_error *ss_arena_prepare(struct ss_arena *arena,
				  const struct ss_capture *capture,
				  const struct ss_task_list *tasks,
				  const struct ss_capture_options *options,
				  struct ss_kept_files *kept);
void ss_arena_deinit(struct ss_arena *arena);

/* For stacks that the caller copies: empties the arena, and takes room in it. NULL: it is
   full. */
void ss_arena_empty(struct ss_arena *arena);
uint8_t *ss_arena_take(struct ss_arena *arena, size_t size);
/* What was taken by now stays when stacks are copied, until the arena is emptied. */
void ss_arena_keep(struct ss_arena *arena);

/* Copies the stacks of the tasks that predicate() accepts, and the lock words they wait
   for. Does not allocate. */
typedef bool ss_task_predicate(const struct ss_tracee *task);
void ss_arena_copy(struct ss_arena *arena, const struct ss_capture *capture,
		   struct ss_task_list *tasks, const struct ss_process_memory *memory,
		   const struct ss_capture_options *options,
		   ss_task_predicate *predicate);

/* Reads from the copies of the stack of a task. False: they do not have all of it. */
bool ss_task_read_stack(const struct ss_tracee *task, uint64_t address, void *bytes,
			size_t size);

/* Of a gather step: the register of a task, or its thread pointer. False: not known. Of a thread
   that was not stopped, only pc and sp are. */
bool ss_task_find_base(const struct ss_tracee *task, const struct ss_gather_step *step,
		       uint64_t *ret);

/* Moves the used part of the arena into the capture. */
void ss_arena_give(struct ss_arena *arena, struct ss_capture *capture);

/*
 * In a series: copies of stacks are moved out of the arena, or taken from the previous capture
 * where they are equal. The arena is kept for the next capture: to fault in memory takes longer
 * than to copy stacks. False without memory, with nothing changed.
 */
bool ss_arena_hand_over(struct ss_arena *arena, struct ss_capture *capture,
			const struct ss_capture *previous, struct ss_kept_files *kept);

#endif
