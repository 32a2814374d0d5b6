/*
 * Gather plans: see ss_capture_gather() and struct ss_capture_options.
 */
#ifndef SS_DATA_GATHER_PLAN_H
#define SS_DATA_GATHER_PLAN_H

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
	uint64_t thread_pointer; /* of its thread */
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

#endif
