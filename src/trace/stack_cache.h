/*
 * Stacks that were unwound before. Unwinding depends on registers and on the words of the stack
 * that it reads, so a stack in which they are the same has the same frames: return addresses must
 * be equal, and pointers into the stack must have the same distance from the stack pointer. Other
 * values are data that functions keep in registers, which may differ, unless they point into the
 * stack now. Where a stack ended since a value was no return address, another one may be one, so only
 * stacks that reached their root or a limit are kept. Zero as a return address is a root: above the
 * outermost return address, zero is no data. Programs come by at the same place again and again.
 */
#ifndef SS_TRACE_STACK_CACHE_H
#define SS_TRACE_STACK_CACHE_H

#include "base/idtable.h"
#include "base/vector.h"
#include "trace/stacks_child.h"
#include "stacksnap/trace.h"

/* A word of the stack or a register, for comparison. */
struct ss_stack_word {
	uint64_t
		value; /* CODE (or 0): itself; STACK: its distance from the stack pointer */
	uint32_t at;   /* in the stack, or the register */
	enum ss_stack_word_kind { SS_WORD_DATA, SS_WORD_CODE, SS_WORD_STACK } kind;
};

struct ss_known_stack {
	uint32_t next; /* index + 1 of one that may be this one as well; 0: none */
	uint32_t number;
	uint64_t valid; /* registers */
	size_t first;	/* in words: registers, */
	size_t count;	/* and words of the stack */
};

/* Zeroed, it is empty. */
struct ss_stack_cache {
	struct ss_idtable places;  /* struct place */
	SS_VECTOR(uint32_t) heads; /* of each place: index + 1; 0: none */
	SS_VECTOR(struct ss_known_stack) items;
	SS_VECTOR(struct ss_stack_word) words;
};

void ss_stack_cache_deinit(struct ss_stack_cache *cache);

/* The number that was added for a stack like this one, or 0. */
uint32_t ss_stack_cache_find(const struct ss_stack_cache *cache,
			     const struct ss_stack_question *question,
			     const uint8_t *bytes);

/* stack: the frames. offsets: of the words that unwinding has read, each within the bytes. Without
   memory, nothing is added. */
void ss_stack_cache_add(struct ss_stack_cache *cache, const struct ss_trace_stack *stack,
			const struct ss_stack_question *question, const uint8_t *bytes,
			const uint32_t *offsets, size_t count, uint32_t number);

#endif
