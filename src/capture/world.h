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
	struct ss_memory memory;
	struct ss_text text;
	struct ss_text next;
	struct ss_capture *capture; /* areas and modules of text */
};

/* Nothing is known before the first look. */
void ss_world_init(struct ss_world *world, struct ss_target *target);
void ss_world_deinit(struct ss_world *world);

/* Brings it up to date. Errors: NO_MEMORY, SYSTEM, DENIED. */
struct ss_error *ss_world_look(struct ss_world *world, enum ss_world_change *ret);

/* Gives areas and modules, which stay shared, to a capture that has none. */
struct ss_error *ss_world_fill(const struct ss_world *world, struct ss_capture *capture);

#endif
