#include "trace/resolve.h"

#include <stdlib.h>

enum { BEGINS = 1, JUMPED_TO = 2 };

enum { CALL_SIZE = 5 };

static bool decode(const struct ss_code *code, size_t at, struct ss_instruction *ret)
{
	return ss_arch_host.decode(code->bytes + at, code->size - at, code->start + at,
				   ret);
}

static bool is_within(const struct ss_code *code, uint64_t address)
{
	return address >= code->start && address - code->start < code->size;
}

static bool add_exit(struct ss_code *code, uint64_t address, uint64_t target)
{
	struct ss_code_exit *exit = ss_vector_push(&code->exits);

	if (exit)
		*exit = (struct ss_code_exit){ .address = address, .target = target };
	return exit;
}

/* False: no memory. */
static bool take(struct ss_code *code, size_t at,
		 const struct ss_instruction *instruction)
{
	uint64_t target = instruction->target;

	code->boundaries[at] |= BEGINS;
	switch (instruction->flow) {
	case SS_FLOW_RETURN:
		return add_exit(code, code->start + at, 0);
	case SS_FLOW_JUMP:
		if (!is_within(code, target))
			return add_exit(code, code->start + at, target);
		/* fall through */
	case SS_FLOW_BRANCH:
		if (is_within(code, target))
			code->boundaries[target - code->start] |= JUMPED_TO;
		return true;
	default:
		return true;
	}
}

bool ss_code_init(struct ss_code *code, uint64_t start, uint8_t *bytes, size_t size)
{
	struct ss_instruction instruction;
	size_t at = 0;

	*code = (struct ss_code){ .start = start, .bytes = bytes, .size = size };
	code->boundaries = calloc(size + 1, 1);
	if (!code->boundaries) {
		ss_code_deinit(code);
		return false;
	}
	while (at < size && decode(code, at, &instruction)) {
		if (!take(code, at, &instruction)) {
			ss_code_deinit(code);
			return false;
		}
		at += instruction.size;
	}
	code->valid = at == size;
	for (size_t i = 0; i < size; i++)
		code->valid &= code->boundaries[i] != JUMPED_TO;
	return true;
}

void ss_code_deinit(struct ss_code *code)
{
	free(code->bytes);
	free(code->boundaries);
	ss_vector_free(&code->exits);
	*code = (struct ss_code){};
}

bool ss_code_is_boundary(const struct ss_code *code, uint64_t address)
{
	return code->valid && is_within(code, address) &&
	       (code->boundaries[address - code->start] & BEGINS);
}

uint64_t ss_code_choose(const struct ss_code *code, uint64_t address)
{
	struct ss_instruction instruction;
	uint64_t last = 0;

	while (is_within(code, address) &&
	       decode(code, address - code->start, &instruction)) {
		bool five = instruction.marker && instruction.size == CALL_SIZE;
		if (!five)
			last = address;
		uint64_t next = address + instruction.size;
		/* A nop of one byte is executed as fast as any. */
		if (!instruction.marker || instruction.size == 1 ||
		    !is_within(code, next) || !code->valid ||
		    (code->boundaries[next - code->start] & JUMPED_TO))
			break;
		address = next;
	}
	return last;
}
