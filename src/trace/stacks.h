/*
 * The stacks of hits: unwound and named by a confined child, and numbered from 1 on. What the child
 * answers is untrusted.
 */
#ifndef SS_TRACE_STACKS_H
#define SS_TRACE_STACKS_H

#include "base/idtable.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/capture.h"
#include "process/target.h"
#include "trace/code_map.h"
#include "trace/stack_cache.h"
#include "trace/stacks_child.h"
#include "stacksnap/trace.h"

struct ss_trace_stacks {
	struct ss_stack_server *server;
	struct ss_worker *worker;
	const struct ss_capture *capture; /* with the code of the worker */
	struct ss_code_map code;	  /* likewise */
	unsigned failures;
	struct ss_intern *strings;
	struct ss_stack_cache cache;
	struct ss_idtable ids;
	struct ss_buffer request;
	struct ss_buffer key;
	SS_VECTOR(struct ss_trace_stack) items;	    /* by id - 1 */
	SS_VECTOR(struct ss_module_impl *) modules; /* of frames; one reference each */
};

void ss_trace_stacks_deinit(struct ss_trace_stacks *stacks);

/* Starts a child for an address space, in place of the one before, unless their code is the same.
   Errors: SYSTEM, NO_MEMORY. */
struct ss_error *ss_trace_stacks_begin(struct ss_trace_stacks *stacks,
				       struct ss_capture *capture,
				       const struct ss_target *target,
				       const struct ss_trace_options *options);

/* The number of the stack with these registers and bytes; 0: the child failed, or no memory. */
uint32_t ss_trace_stacks_find(struct ss_trace_stacks *stacks, const struct ss_regs *regs,
			      const void *bytes, size_t size, bool truncated);

#endif
