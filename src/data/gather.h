/*
 * Gather plans, and what executes one: it follows lists and pointers in the memory of a stopped
 * process. Plans and memory are untrusted input. Every plan ends: steps refer to earlier steps only,
 * and nodes, bytes and reads are limited.
 */
#ifndef SS_DATA_GATHER_H
#define SS_DATA_GATHER_H

#include "base/cleanup.h"
#include "data/memory.h"
#include "stacksnap.h"

/*
 * A gather plan says which memory to copy while the threads stand still, in addition to
 * their stacks. It is plain data without pointers, so a process without privileges can
 * make it. Steps are executed in order. Each copies nodes of `size` bytes, at
 *
 *	address = (value & mask) + offset
 *
 * base says what value is. If value & mask is 0, there is no node. With max_nodes above 1
 * the node is the first of a linked list: the next value is read at `next` in the node,
 * and the same mask and offset apply. A list ends after max_nodes nodes, at 0, at
 * unreadable memory, and at a cycle.
 */
enum ss_gather_base {
	SS_GATHER_ADDRESS = 0, /* address */
	SS_GATHER_REGISTER,    /* of each thread: the register with DWARF number parent */
	SS_GATHER_THREAD_POINTER, /* of each thread: pthread_self() of most C libraries */
	SS_GATHER_NODE,	   /* of each node of step parent: the address of that node */
	SS_GATHER_POINTER, /* of each node of step parent: the pointer at field in it */
	SS_GATHER_ROOT,	   /* each root of the plan: its address */
};

enum {
	SS_GATHER_STEPS_MAX = 32,
	SS_GATHER_ROOTS_MAX = 512,
	SS_GATHER_COPY_MAX = 4 << 20,  /* bytes of a node */
	SS_GATHER_CHECK_MAX = 512,     /* bytes of a node that are read again */
	SS_GATHER_NODES_MAX = 1 << 20, /* of a whole plan, as the next two */
	SS_GATHER_BYTES_MAX = 128 << 20,
	SS_GATHER_READS_MAX = 1 << 15,
};

/* Fields that a base does not use must be 0. field, count_field and next are offsets into
   the copy of a node, and must lie within it. */
struct ss_gather_step {
	uint32_t base;	 /* enum ss_gather_base */
	uint32_t parent; /* an earlier step, or a register */
	uint64_t address;
	uint64_t mask; /* bits of value to keep; tags of a pointer are cleared with it */
	int64_t offset;
	uint32_t size; /* bytes to copy, at least 1 */
	uint32_t field;
	uint32_t stride; /* POINTER: more pointers follow, one every stride bytes, up to
			    the end of what was copied of the parent; 0: only one */
	uint32_t
		count_size; /* 4 or 8: the parent has a count of that size at count_field,
				and at most count * element bytes are copied; 0: no */
	uint32_t count_field;
	uint32_t element;
	uint32_t max_nodes; /* of one list; 1: not a list */
	uint32_t next;
	uint32_t end_size; /* 8: the parent has an address at end_field, at which the copy
			      ends at the latest; 0: no */
	uint32_t end_field;
	uint32_t check_size; /* so many first bytes of each node are read again after the
				last step, to tell nodes that changed meanwhile; 0: none */
	uint32_t reserved;
};

/* Memory of a thread that was known before: many addresses for one step. A recording copies
   those of the threads that have run. */
struct ss_gather_root {
	uint64_t address;
	uint64_t thread_pointer; /* its thread's pthread_t */
	int32_t tid;		 /* likewise; 0: not known */
	uint32_t reserved;
};

/* If a limit is reached, the plan ends early; what was copied until then is kept. */
struct ss_gather_plan {
	uint32_t size; /* sizeof(struct ss_gather_plan) */
	uint32_t step_count;
	uint32_t max_nodes; /* of all steps */
	uint32_t max_bytes;
	uint32_t max_reads; /* system calls; each reads up to 1,024 nodes */
	uint32_t root_count;
	struct ss_gather_step steps[SS_GATHER_STEPS_MAX];
	struct ss_gather_root roots[SS_GATHER_ROOTS_MAX];
};

/*
 * All memory is allocated by ss_gather_new(). ss_gather_run() is for the freeze: it
 * allocates nothing, and reads through the functions of a struct ss_gather_source.
 */

struct ss_gathered;

/* Provides the memory and the threads of a process. Embed it to add data. */
struct ss_gather_source {
	/* Fills pieces as process_vm_readv(2) does. */
	void (*read)(const struct ss_gather_source *source, struct ss_piece *pieces,
		     size_t count);
	/* The value of a step's base in a thread. False: not known. May be NULL if
	   there are no threads. */
	bool (*find_base)(const struct ss_gather_source *source, size_t thread,
			  const struct ss_gather_step *step, uint64_t *ret);
	size_t thread_count;
	/* Copies what has been copied before of the stack of a thread: lists on a stack
	   are read without a system call for each node. False: read it. NULL: none. */
	bool (*read_stack)(const struct ss_gather_source *source, size_t thread,
			   uint64_t address, void *bytes, size_t size);
	/* Whether the roots of a thread are to be copied; then its id and thread pointer (0: not
	   known) say which they are. NULL: all roots are. */
	bool (*selects)(const struct ss_gather_source *source, size_t thread,
			int32_t *ret_tid, uint64_t *ret_pointer);
	bool selects_others;	/* the roots of all other threads instead */
	uint16_t pthread_below; /* struct ss_arch */
};

/* Nodes that one call reads: UIO_MAXIOV. */
enum { SS_GATHER_BATCH = 1024, SS_GATHER_RECENT = 1024 };

/* One copy of memory at an address. */
struct ss_gather_node {
	uint64_t address;
	uint64_t seen;	 /* an earlier address of its list, to find cycles */
	uint8_t *bytes;	 /* in gather->bytes */
	uint32_t size;	 /* to copy; after the read: copied */
	uint32_t index;	 /* in its list */
	uint32_t thread; /* to whose registers its list belongs, + 1; 0: none */
	bool changed;	 /* since it was copied */
};

struct ss_gather {
	struct ss_gather_plan plan; /* checked */
	struct ss_gather_node *nodes;
	size_t node_count;
	size_t first[SS_GATHER_STEPS_MAX +
		     1]; /* nodes of a step: from first[i] to [i+1] */
	uint8_t *bytes;
	size_t used;
	bool touched; /* its memory is, for the freeze */
	uint32_t reads;
	uint32_t pointers; /* of nodes visited */
	bool truncated;	   /* a limit was reached */
	size_t node_limit; /* of this run: nodes and bytes, with those of earlier ones */
	size_t byte_limit;
	bool has_later;
	size_t later; /* the first node of a later moment; has_later */
	struct ss_piece pieces[SS_GATHER_BATCH];
	uint32_t recent
		[SS_GATHER_RECENT]; /* indexes of nodes by a hash of their address */
	uint8_t *again; /* scratch: nodes of a batch that are read again; or NULL */
	/* Roots by thread and by thread pointer, sorted before the freeze: comparing hundreds of
	   roots with thousands of threads takes milliseconds. */
	uint16_t by_tid[SS_GATHER_ROOTS_MAX];
	uint16_t by_pointer[SS_GATHER_ROOTS_MAX];
	bool wanted[SS_GATHER_ROOTS_MAX]; /* scratch: the selected roots */
};

/* Copies and checks a plan; reserves all memory that it may need. freeze: memory is also
   touched, so that the freeze need not wait for it. INVALID, NO_MEMORY. */
struct ss_error *ss_gather_new(const struct ss_gather_plan *plan, bool freeze,
			       struct ss_gather **ret);
void ss_gather_free(struct ss_gather *gather);

/* A number that differs for plans that differ in more than the thread ids of roots. */
uint64_t ss_gather_plan_id(const struct ss_gather_plan *plan);

/* Takes another plan with the same limits, without allocating. False: it has others, or steps
   that read nodes again, or is not valid; then nothing has changed. */
bool ss_gather_set_plan(struct ss_gather *gather, const struct ss_gather_plan *plan);

/* Whether the plan has steps whose nodes are read again, to see whether they have changed. */
bool ss_gather_reads_again(const struct ss_gather *gather);

/* Executes the plan. Drops what an earlier run copied. */
void ss_gather_run(struct ss_gather *gather, const struct ss_gather_source *source);

/* Executes the steps that begin at roots, and those that follow from them, once more: for roots
   that source did not want before. Keeps what was copied. */
void ss_gather_run_more(struct ss_gather *gather, const struct ss_gather_source *source);

/* Executes the plan at a later moment, for threads that stood still then only. Keeps what was
   copied; ss_gather_give_later() returns the rest. Once at most. */
void ss_gather_run_later(struct ss_gather *gather, const struct ss_gather_source *source);

/* Drops what was copied. */
void ss_gather_clear(struct ss_gather *gather);

/* Executes the plan once more, for threads that stand still at this moment only. Keeps what was
   copied before. Limits: those of the plan in all; max_nodes, max_bytes and the plan's max_reads for
   this turn. Returns the index of its first node. */
size_t ss_gather_run_turn(struct ss_gather *gather, const struct ss_gather_source *source,
			  size_t max_nodes, size_t max_bytes);

/* Before ss_gather_give(): what ss_gather_run_later() has copied. Its bytes belong to what
   ss_gather_give() returns. NO_MEMORY. */
struct ss_error *ss_gather_give_later(struct ss_gather *gather, struct ss_gathered *ret);

/* Moves the copies into the capture. Afterwards the gather can only be freed.
   NO_MEMORY. */
struct ss_error *ss_gather_give(struct ss_gather *gather, struct ss_gathered *ret);

/* After ss_gather_give(): replaces the bytes that it gave, which later (of ss_gather_give_later())
   refers to, by a copy of as many as are used. The gather can be run again. False: it stays as it
   is, without memory or if its memory was not touched, so that there is nothing to be saved. */
bool ss_gather_take_back(struct ss_gather *gather, struct ss_gathered *gathered,
			 struct ss_gathered *later);

SS_DEFINE_CLEANUP(struct ss_gather, ss_gather, ss_gather_free)

#endif
