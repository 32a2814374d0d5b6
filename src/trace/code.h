/*
 * The machine code of one function, decoded to see where probes may go: a breakpoint inside
 * an instruction would crash the target.
 */
#ifndef SS_TRACE_CODE_H
#define SS_TRACE_CODE_H

#include "arch/arch.h"
#include "base/vector.h"

enum { SS_CODE_SIZE_MAX = 4 << 20 };

struct ss_code {
	uint64_t start; /* address of the first byte */
	size_t size;
	uint8_t *bytes; /* owned */
	uint8_t *
		boundaries; /* owned; by offset: an instruction begins here (1), and is the
				target of a jump from within (2) */
	/* All instructions were decoded, and all jumps within lead to the beginning of one. */
	bool valid;
	SS_VECTOR(struct ss_code_exit)
	exits;
};

struct ss_code_exit {
	uint64_t address;
	uint64_t target; /* of a jump out of the function; 0: it returns */
};

/* Decodes size bytes, which the object then owns. False: no memory; they are freed. */
bool ss_code_init(struct ss_code *code, uint64_t start, uint8_t *bytes, size_t size);
void ss_code_deinit(struct ss_code *code);

/* Whether an instruction begins at an address. */
bool ss_code_is_boundary(const struct ss_code *code, uint64_t address);

/*
 * The best address for a probe that is to be hit when the instruction at an address is
 * executed: behind instructions that do nothing, unless a jump from within the function leads
 * there. 0: there is none, because of a nop of five bytes (see resolve.h).
 */
uint64_t ss_code_choose(const struct ss_code *code, uint64_t address);

#endif
