#include "runtime/v8/translation.h"

#include <string.h>

enum {
	/* The first opcodes: functions that are interpreted, and builtins that continue a call */
	INTERPRETED = 2,
	CONTINUED = 4,
	/* A translation begins with one of two opcodes. */
	BEGINS = 2,
	INSTRUCTIONS_MAX = 1 << 16,
};

/*
 * Instructions may be those of an earlier translation: begin says how far before it that is, and
 * the last opcode how many to take from there. Those that have been written instead are passed over.
 */
struct reader {
	const char *operands; /* of each opcode, a digit */
	uint32_t opcodes;
	uint32_t begin;
	const uint8_t *bytes;
	size_t size;
	size_t at;
	size_t earlier;
	uint32_t passed; /* instructions since earlier was advanced */
	uint32_t rest;	 /* of the earlier translation, with the one that is being read */
};

static bool take_byte(const struct reader *reader, size_t *at, uint8_t *ret)
{
	if (*at >= reader->size)
		return false;
	*ret = reader->bytes[(*at)++];
	return true;
}

static bool take_unsigned(const struct reader *reader, size_t *at, uint32_t *ret)
{
	unsigned shift = 0;
	uint8_t byte;

	*ret = 0;
	do {
		if (shift > 28 || !take_byte(reader, at, &byte))
			return false;
		*ret |= (uint32_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return true;
}

/* The sign is the lowest bit. */
static bool take_operand(struct reader *reader, int32_t *ret)
{
	uint32_t value;

	if (!take_unsigned(reader, reader->rest > 0 ? &reader->earlier : &reader->at,
			   &value))
		return false;
	*ret = value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
	return true;
}

static int count_operands(const struct reader *reader, uint8_t opcode)
{
	return reader->operands[opcode] - '0';
}

static bool is_begin(const struct reader *reader, uint8_t opcode)
{
	return opcode >= reader->begin && opcode < reader->begin + BEGINS;
}

static bool take_earlier(struct reader *reader, uint8_t *ret)
{
	return take_byte(reader, &reader->earlier, ret) && *ret + 1u < reader->opcodes;
}

static bool pass_earlier(struct reader *reader)
{
	uint8_t opcode;
	uint32_t value;

	for (; reader->passed > 0; reader->passed--) {
		if (!take_earlier(reader, &opcode))
			return false;
		for (int i = count_operands(reader, opcode); i > 0; i--) {
			if (!take_unsigned(reader, &reader->earlier, &value))
				return false;
		}
	}
	return true;
}

static bool take_opcode(struct reader *reader, uint8_t *ret)
{
	uint32_t count;

	if (reader->rest > 1) {
		reader->rest--;
		return take_earlier(reader, ret);
	}
	reader->rest = 0;
	if (!take_byte(reader, &reader->at, ret))
		return false;
	if (*ret + 1u < reader->opcodes) {
		reader->passed++;
		return true;
	}
	/* The last opcode; what is above has its operand in the same byte. */
	count = *ret - reader->opcodes;
	if (*ret + 1u == reader->opcodes && !take_unsigned(reader, &reader->at, &count))
		return false;
	if (count == 0 || !pass_earlier(reader))
		return false;
	reader->rest = count;
	return take_earlier(reader, ret);
}

/* *ret: how many frames of functions and of builtins. */
static bool enter(struct reader *reader, uint32_t index, int32_t *ret)
{
	uint8_t opcode;
	uint32_t distance;
	int32_t frames;

	if (!take_byte(reader, &reader->at, &opcode) || !is_begin(reader, opcode) ||
	    !take_unsigned(reader, &reader->at, &distance) || distance > index)
		return false;
	reader->earlier = distance > 0 ? index - distance : reader->size;
	reader->passed = 1;
	return take_operand(reader, &frames) && take_operand(reader, ret);
}

static bool skip_operands(struct reader *reader, int count)
{
	int32_t value;

	for (; count > 0; count--) {
		if (!take_operand(reader, &value))
			return false;
	}
	return true;
}

bool ss_v8_translation_read(const struct ss_v8_layout *layout, const uint8_t *bytes,
			    size_t size, uint32_t index, struct ss_v8_translated *ret,
			    size_t max, size_t *count)
{
	struct reader reader = { .operands = layout->translation_operands,
				 .begin = layout->translation_begin,
				 .bytes = bytes,
				 .size = size,
				 .at = index };
	struct ss_v8_translated frame;
	int32_t frames;
	uint8_t opcode;

	*count = 0;
	if (!reader.operands)
		return false;
	reader.opcodes = (uint32_t)strlen(reader.operands);
	if (!enter(&reader, index, &frames))
		return false;
	for (uint32_t i = 0; frames > 0; i++) {
		if (i == INSTRUCTIONS_MAX || !take_opcode(&reader, &opcode) ||
		    is_begin(&reader, opcode))
			return false;
		if (opcode >= CONTINUED) {
			if (!skip_operands(&reader, count_operands(&reader, opcode)))
				return false;
			continue;
		}
		frames--;
		if (!take_operand(&reader, &frame.bytecode) ||
		    !take_operand(&reader, &frame.function) ||
		    !skip_operands(&reader, count_operands(&reader, opcode) - 2))
			return false;
		if (opcode >= INTERPRETED)
			continue;
		if (*count == max)
			return false;
		ret[(*count)++] = frame;
	}
	return true;
}
