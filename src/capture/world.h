/*
 * What is mapped in a process, looked at again and again: a text that has not changed
 * costs a read and a comparison. Modules that are still there stay the same objects, with
 * their files open.
 */
#ifndef SS_CAPTURE_WORLD_H
#define SS_CAPTURE_WORLD_H

#include "model/capture.h"
#include "target/memory.h"
#include "target/target.h"

enum ss_world_change {
	SS_WORLD_SAME = 0,
	SS_WORLD_MORE,	   /* areas were added, or others than modules changed */
	SS_WORLD_CHANGED,  /* a module went, or another is in its place */
	SS_WORLD_REPLACED, /* the process runs another program */
	SS_WORLD_ENDED,
};

struct ss_world {
	struct ss_target *target; /* borrowed */
	int maps_fd;
	int statm_fd;
	bool no_query;	    /* the kernel does not say what is mapped at one address */
	uint64_t pages;	    /* of all that was mapped, at the last look */
	uint64_t looked_ns; /* CLOCK_MONOTONIC; when that began */
	uint64_t cost_ns;   /* how long it took */
	struct ss_memory memory;
	struct ss_text text;
	struct ss_text next;
	struct ss_capture *capture; /* areas and modules of text; its threads are the
				       user's */
	struct ss_capture *before;  /* that of the look before this one */
};

/* Nothing is known before the first look. */
void ss_world_init(struct ss_world *world, struct ss_target *target);
void ss_world_deinit(struct ss_world *world);

/* Brings it up to date. Errors: NO_MEMORY, SYSTEM, DENIED. */
struct ss_error *ss_world_look(struct ss_world *world, enum ss_world_change *ret);

/* The same, but reads all maps only if something was mapped or unmapped, or for a second
   nothing was read, and not so often that it would take more than a hundredth of the
   time. What is used of it must be asked for then: ss_world_holds(). */
struct ss_error *ss_world_glance(struct ss_world *world, enum ss_world_change *ret);

enum ss_world_answer { SS_WORLD_NO, SS_WORLD_ASK_ALL, SS_WORLD_YES };

/* Whether what is mapped at address is what is known to be there; ASK_ALL: only
   ss_world_look() can say that. */
enum ss_world_answer ss_world_holds(struct ss_world *world, uint64_t address);

#endif
