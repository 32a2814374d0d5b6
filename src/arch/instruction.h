/*
 * What a probe must know about an instruction: how long it is, and where it goes. Operands and
 * results are not decoded.
 */
#ifndef SS_ARCH_INSTRUCTION_H
#define SS_ARCH_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ss_flow {
	SS_FLOW_NEXT = 0, /* the next instruction follows, also after a call */
	SS_FLOW_RETURN,	  /* returns to the caller */
	SS_FLOW_BRANCH,	  /* may continue at target instead */
	SS_FLOW_JUMP,	  /* continues at target */
	SS_FLOW_INDIRECT, /* continues at an address that is computed */
};

struct ss_instruction {
	size_t size;
	enum ss_flow flow;
	uint64_t target; /* BRANCH, JUMP */
	bool marker; /* marks the target of an indirect call (endbr64), or does nothing */
};

/* Decodes the instruction at an address, of which size bytes are known. False: it is not a
   valid one, or is cut off. */
bool ss_x86_64_decode(const uint8_t *code, size_t size, uint64_t address,
		      struct ss_instruction *ret);

#endif
