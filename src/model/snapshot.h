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

/* The names of code that a JIT compiler has made in a process. */
struct ss_perf_map_file {
	struct ss_module_impl *file; /* to read, no ELF; one reference */
	uint64_t settled; /* what was written before that offset holds where it was
			     overwritten since; UINT64_MAX: all, the last line of each
			     address is the one that counts */
};

/* Where a futex lies that a thread waits on, and which object of the program that is. */
struct ss_lock_place {
	uint64_t address;
	int32_t module_index;	 /* -1: in no module's data */
	uint64_t offset;	 /* ELF virtual address in that module */
	const char *symbol;	 /* in strings; NULL: not known (yet) */
	uint64_t symbol_address; /* where it begins in the process */
};

/* A frame that refers to a lock on which a thread waits, and which its own may hold. */
struct ss_lock_reference {
	uint64_t futex;
	uint32_t thread; /* index; ascending */
	uint32_t frame;	 /* without inlined calls; ascending for each thread */
	/* Its function has called another with the lock's address, here; call_offset is in
	   the module, as an ss_frame's lookup_offset. */
	bool in_code;
	int32_t module_index;
	uint64_t call_offset;
	const char *call_file; /* NULL: not known */
	uint32_t call_line;
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
	SS_VECTOR(struct ss_perf_map_file) perf_maps;
	const uint32_t *perf_map_of; /* by stack: number of its process's, or above all;
					NULL: the first one is that of all. Borrowed. */
	struct ss_facts *facts;	     /* for diagnose/; one reference; or NULL */
	SS_VECTOR(struct ss_lock_reference) references;
	SS_VECTOR(struct ss_lock_place) places;	 /* ascending by address, each once */
	struct ss_wait *waits;			 /* owned; what threads[].wait point to */
	SS_VECTOR(struct ss_deadlock) deadlocks; /* threads are owned */
	SS_VECTOR(struct ss_blocker) blockers;
	/* Of other processes, to which waits lead; owned, and known after
	   ss_snapshot_follow(). Each has this one as its first. */
	SS_VECTOR(struct ss_snapshot *) others;
	const struct ss_snapshot *first;     /* NULL: this is no other */
	SS_VECTOR(struct ss_circle) circles; /* members are owned */
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

/* Of a snapshot and those that it leads to, or that lead to it, in turn: index 0 is the
   first one. NULL: there are no more. */
const struct ss_snapshot *ss_snapshot_party(const struct ss_snapshot *snapshot,
					    size_t index);

/* The thread with this id, or NULL. */
const struct ss_thread *ss_snapshot_find_thread(const struct ss_snapshot *snapshot,
						pid_t tid);

/* Sorts places and leaves out what is there twice. */
void ss_snapshot_sort_places(struct ss_snapshot *snapshot);

/* The place at that address, or NULL. */
const struct ss_lock_place *ss_snapshot_find_place(const struct ss_snapshot *snapshot,
						   uint64_t address);

/* Brings frame_count of every thread up to date after stacks[].frames and count
   were replaced (by malloc'd arrays, the old ones freed). */
void ss_snapshot_recount(struct ss_snapshot *snapshot);

SS_DEFINE_CLEANUP(struct ss_snapshot, ss_snapshot, ss_snapshot_free)

#endif
