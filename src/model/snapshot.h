/*
 * What a snapshot is: threads that refer to stacks, stacks that are kept once
 * each, modules. Filled by unwind/, names added by symbolize/, read through the
 * public accessors.
 */
#ifndef SS_MODEL_SNAPSHOT_H
#define SS_MODEL_SNAPSHOT_H

#include "base/intern.h"
#include "base/vector.h"
#include "model/facts.h"
#include "model/module.h"
#include "stacksnap.h"

struct ss_stack {
	struct ss_frame *frames; /* owned */
	size_t count;
	enum ss_end end;
	uint64_t hash; /* of what the stack was added with */
};

struct ss_snapshot {
	struct ss_process process;
	struct ss_intern *strings; /* every string that pub structs point to, but for
				      those of modules */
	SS_VECTOR(struct ss_thread) threads; /* stack_id indexes stacks */
	SS_VECTOR(struct ss_stack) stacks;
	uint32_t *stack_slots; /* hash table of stack_id + 1 */
	size_t stack_slot_count;
	SS_VECTOR(struct ss_module_impl *) modules; /* one reference each */
	struct ss_module_impl *perf_map;	    /* the capture's; one, or NULL */
	struct ss_facts *facts; /* for diagnose/; one reference; or NULL */
	struct ss_wait *waits;	/* owned; what threads[].wait point to */
};

/* An empty snapshot, or NULL without memory. Freed by ss_snapshot_free(). */
struct ss_snapshot *ss_snapshot_new(void);

/*
 * Finds the stack with these frames (the same pc, module, signal_frame and source
 * all along) and this end, or adds a copy of it. Equal hashes never suffice: frames
 * are compared. False without memory.
 */
bool ss_snapshot_add_stack(struct ss_snapshot *snapshot, const struct ss_frame *frames,
			   size_t count, enum ss_end end, uint32_t *ret);

/* Brings frame_count of every thread up to date after stacks[].frames and count
   were replaced (by malloc'd arrays, the old ones freed). */
void ss_snapshot_recount(struct ss_snapshot *snapshot);

SS_DEFINE_CLEANUP(struct ss_snapshot, ss_snapshot, ss_snapshot_free)

#endif
