#include "runtime/v8/v8.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

static bool take_number(const struct reader *reader, size_t *at, uint32_t *ret)
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

	if (!take_number(reader, reader->rest > 0 ? &reader->earlier : &reader->at,
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
			if (!take_number(reader, &reader->earlier, &value))
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
	if (*ret + 1u == reader->opcodes && !take_number(reader, &reader->at, &count))
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
	    !take_number(reader, &reader->at, &distance) || distance > index)
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

enum {
	CODE_ALIGNMENT = 64,	 /* kCodeAlignment on x86-64 */
	CODE_SIZE_MAX = 1 << 20, /* how far before the pc code is searched */
	KIND_MASK = 15,
	INTERPRETER_DATA_BYTECODE = 8, /* of InterpreterData */
	DATA_STEPS_MAX = 3,	       /* code, InterpreterData, bytecode */
	ARRAY_LENGTH = 8,
	ARRAY_DATA = 16,
	DEOPT_TRANSLATIONS = 0, /* element of DeoptimizationData */
	/* Those after the one with the inlined calls */
	DEOPT_EAGER_COUNT = 2,
	DEOPT_LAZY_COUNT = 3,
	DEOPT_EXITS = 4, /* of each: offset of bytecode, translation, return address */
	DEOPT_EXIT_ELEMENTS = 3,
	DEOPT_EXITS_MAX = 1 << 16,
	WRAPPER_FUNCTION = 8, /* of SharedFunctionInfoWrapper */
	/* struct InliningPosition */
	INLINING_SIZE = 16,
	INLINING_FUNCTION = 8,
	/* Safepoints of Maglev: src/codegen/maglev-safepoint-table.h */
	SAFEPOINTS_HEADER = 16,
	SAFEPOINTS_SIZES = 4, /* after the number of entries */
	SAFEPOINTS_MAX = 1 << 16,
	SAFEPOINT_MAX = 4 * 7 + 1, /* bytes */
	/* The first bytecodes are prefixes: Wide, ExtraWide, and both for the debugger */
	PREFIXES = 4,
};

static bool read_u32(const struct ss_memory *memory, uint64_t object, uint32_t offset,
		     uint32_t *ret)
{
	return ss_memory_read_u32(memory, object - 1 + offset, ret);
}

static enum ss_v8_kind kind_of(const struct ss_v8_layout *layout, uint32_t flags)
{
	const uint32_t kind = flags & KIND_MASK;

	if (kind == layout->kind_baseline)
		return SS_V8_BASELINE;
	/* enum CodeKind: BASELINE is followed by MAGLEV and TURBOFAN */
	if (kind == layout->kind_baseline + 1)
		return SS_V8_MAGLEV;
	return kind == layout->kind_baseline + 2 ? SS_V8_TURBOFAN : SS_V8_OTHER;
}

/* Reads the code whose instructions begin at start. */
static bool read_code(const struct ss_v8_heap *heap, const struct ss_memory *memory,
		      uint64_t start, struct ss_v8_code *ret)
{
	const struct ss_v8_layout *layout = heap->layout;
	uint64_t object = start - layout->stream_header + 1;
	uint64_t begin = start;
	uint32_t flags;
	uint32_t size;
	uint64_t map;

	/* Most places are not the start of an object. */
	if (!ss_v8_word(memory, object, 0, &map) || !ss_v8_is_object(map) ||
	    (layout->stream_code &&
	     !ss_v8_word(memory, object, layout->stream_code, &object)) ||
	    ss_v8_type(heap, memory, object) != layout->type_code ||
	    (layout->code_start &&
	     !ss_v8_word(memory, object, layout->code_start, &begin)) ||
	    begin != start || !read_u32(memory, object, layout->code_size, &size) ||
	    size == 0 || size > CODE_SIZE_MAX ||
	    !read_u32(memory, object, layout->code_flags, &flags))
		return false;
	*ret = (struct ss_v8_code){ .object = object,
				    .start = start,
				    .end = start + size,
				    .kind = kind_of(layout, flags) };
	return ss_v8_word(memory, object, layout->code_data, &ret->data) &&
	       ss_v8_word(memory, object, layout->code_positions, &ret->positions);
}

bool ss_v8_code_find(const struct ss_v8_heap *heap, uint64_t pc, struct ss_v8_code *ret)
{
	uint64_t start = pc & ~(uint64_t)(CODE_ALIGNMENT - 1);
	uint64_t map;

	for (; start > CODE_ALIGNMENT && pc - start < CODE_SIZE_MAX;
	     start -= CODE_ALIGNMENT) {
		if (!ss_v8_take(heap, CODE_ALIGNMENT) ||
		    !ss_memory_read_u64(heap->memory, start - heap->layout->stream_header,
					&map))
			return false;
		if (ss_v8_is_object(map) && read_code(heap, heap->memory, start, ret))
			return pc <= ret->end;
	}
	return false;
}

bool ss_v8_code_is_unchanged(const struct ss_v8_heap *heap, const struct ss_v8_code *code)
{
	struct ss_v8_code now;

	return read_code(heap, heap->after, code->start, &now) &&
	       now.object == code->object && now.end == code->end &&
	       now.data == code->data && now.positions == code->positions;
}

static bool read_element(const struct ss_v8_heap *heap, uint64_t array, uint32_t index,
			 uint64_t *ret)
{
	uint64_t length;

	return ss_v8_word(heap->memory, array, ARRAY_LENGTH, &length) &&
	       ss_v8_is_smi(length) && ss_v8_smi(length) >= 0 &&
	       index < (uint32_t)ss_v8_smi(length) && index < SS_V8_TABLE_MAX / 8 &&
	       ss_v8_word(heap->memory, array, ARRAY_DATA + 8 * index, ret);
}

/* The function that optimised code was made for, as far as it is one. */
static bool read_subject(const struct ss_v8_heap *heap, uint64_t data, uint64_t *ret)
{
	const struct ss_v8_layout *layout = heap->layout;

	return read_element(heap, data, layout->deopt_function, ret) &&
	       (layout->type_wrapper == 0 ||
		(ss_v8_type(heap, heap->memory, *ret) == layout->type_wrapper &&
		 ss_v8_word(heap->memory, *ret, WRAPPER_FUNCTION, ret)));
}

uint64_t ss_v8_bytecode_of(const struct ss_v8_heap *heap, uint64_t data)
{
	const struct ss_v8_layout *layout = heap->layout;

	for (int i = 0; i < DATA_STEPS_MAX && ss_v8_is_object(data); i++) {
		uint16_t type = ss_v8_type(heap, heap->memory, data);
		if (type == layout->type_bytecode)
			return data;
		if (!ss_v8_word(heap->memory, data,
				type == layout->type_code ? layout->code_data :
							    INTERPRETER_DATA_BYTECODE,
				&data))
			return 0;
	}
	return 0;
}

uint64_t ss_v8_code_subject(const struct ss_v8_heap *heap, const struct ss_v8_code *code)
{
	uint64_t object;

	if (code->kind == SS_V8_OTHER)
		return 0;
	if (code->kind == SS_V8_BASELINE)
		return ss_v8_bytecode_of(heap, code->data);
	return read_subject(heap, code->data, &object) &&
			       ss_v8_type(heap, heap->memory, object) ==
				       heap->layout->type_shared ?
		       object :
		       0;
}

/* A pointer may be marked as weak. */
static bool read_function(const struct ss_v8_heap *heap, uint64_t literals, int32_t index,
			  uint64_t *ret)
{
	if (index < 0 || !read_element(heap, literals, (uint32_t)index, ret))
		return false;
	*ret &= ~(uint64_t)2;
	return ss_v8_type(heap, heap->memory, *ret) == heap->layout->type_shared;
}

/* From the position of an instruction outwards. Calls that were inlined have higher numbers
   than the calls that they are inlined in. */
static bool expand(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
		   const uint8_t *inlining, size_t size, uint64_t position,
		   struct ss_v8_call ret[SS_V8_INLINED_MAX], size_t *count)
{
	uint32_t last = UINT32_MAX;
	uint64_t literals;

	if (!read_element(heap, code->data, heap->layout->deopt_literals, &literals))
		return false;
	*count = 0;
	while (*count < SS_V8_INLINED_MAX) {
		struct ss_v8_call *call = &ret[*count];
		uint32_t number = ss_v8_position_inlined(position);
		uint32_t at = (number - 1) * INLINING_SIZE;
		int32_t index;
		call->position = ss_v8_position_script(position);
		(*count)++;
		if (number == 0)
			return read_subject(heap, code->data, &call->function);
		if (number >= last || at + INLINING_SIZE > size)
			return false;
		last = number;
		memcpy(&position, inlining + at, sizeof(position));
		memcpy(&index, inlining + at + INLINING_FUNCTION, sizeof(index));
		if (!read_function(heap, literals, index, &call->function))
			return false;
	}
	return false;
}

static bool read_count(const struct ss_v8_heap *heap, uint64_t array, uint32_t index,
		       uint32_t *ret)
{
	uint64_t word;

	if (!read_element(heap, array, index, &word) || !ss_v8_is_smi(word) ||
	    ss_v8_smi(word) < 0 || ss_v8_smi(word) > DEOPT_EXITS_MAX)
		return false;
	*ret = (uint32_t)ss_v8_smi(word);
	return true;
}

/* An exit of code to the interpreter. */
struct exit {
	int32_t bytecode;
	int32_t translation;
	int32_t pc; /* Turbofan: the return address; Maglev: the place of the exit itself */
};

static bool read_exit(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
		      uint32_t index, struct exit *ret)
{
	uint32_t at =
		heap->layout->deopt_inlining + DEOPT_EXITS + DEOPT_EXIT_ELEMENTS * index;
	uint64_t words[DEOPT_EXIT_ELEMENTS];

	for (uint32_t i = 0; i < DEOPT_EXIT_ELEMENTS; i++) {
		if (!read_element(heap, code->data, at + i, &words[i]) ||
		    !ss_v8_is_smi(words[i]))
			return false;
	}
	*ret = (struct exit){ ss_v8_smi(words[0]), ss_v8_smi(words[1]),
			      ss_v8_smi(words[2]) };
	return true;
}

static uint32_t take_bytes(const uint8_t **at, uint32_t size)
{
	uint32_t value = 0;

	for (uint32_t i = 0; i < size; i++)
		value |= (uint32_t) * (*at)++ << 8 * i;
	return value;
}

/*
 * Maglev: the table of safepoints, which follows the instructions, says to which exit a return
 * address belongs, and where that is.
 */
static bool find_safepoint(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
			   uint64_t offset, uint32_t *ret, uint32_t *ret_place)
{
	const uint64_t table = code->end + heap->layout->safepoints_count;
	uint32_t count;
	uint32_t sizes;

	if (!ss_memory_read_u32(heap->memory, table, &count) ||
	    !ss_memory_read_u32(heap->memory, table + SAFEPOINTS_SIZES, &sizes))
		return false;
	uint32_t pc_size = sizes >> 4 & 7;
	uint32_t index_size = sizes >> 7 & 7;
	uint32_t size = 2 * pc_size + index_size + 1 + (sizes >> 1 & 7);
	if (!(sizes & 1) || count > SAFEPOINTS_MAX || pc_size == 0 || pc_size > 4 ||
	    index_size > 4 || !ss_v8_take(heap, (uint64_t)count * size))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t bytes[SAFEPOINT_MAX];
		const uint8_t *at = bytes;
		if (!ss_memory_read(heap->memory,
				    code->end + SAFEPOINTS_HEADER + (uint64_t)i * size,
				    bytes, size))
			return false;
		if (take_bytes(&at, pc_size) != offset)
			continue;
		/* Both are stored as + 1; 0: it has none. */
		*ret = take_bytes(&at, index_size);
		*ret_place = take_bytes(&at, pc_size);
		return (*ret)-- > 0 && (*ret_place)-- > 0;
	}
	return false;
}

/*
 * A call after which the code may be left for the interpreter has an exit: it says at which
 * bytecode of the innermost function that would be. Other calls (to allocate memory) may be
 * anywhere, and have no position of their own.
 */
static bool find_exit(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
		      uint64_t offset, struct exit *ret)
{
	const uint32_t first = heap->layout->deopt_inlining;
	uint32_t eager;
	uint32_t lazy;

	if (!read_count(heap, code->data, first + DEOPT_EAGER_COUNT, &eager) ||
	    !read_count(heap, code->data, first + DEOPT_LAZY_COUNT, &lazy) ||
	    !ss_v8_take(heap, 8 * (uint64_t)DEOPT_EXIT_ELEMENTS * (eager + lazy)))
		return false;
	if (code->kind == SS_V8_MAGLEV) {
		uint32_t index;
		uint32_t place;
		return find_safepoint(heap, code, offset, &index, &place) &&
		       index < eager + lazy && read_exit(heap, code, index, ret) &&
		       ret->pc == (int64_t)place;
	}
	for (uint32_t i = 0; i < eager + lazy; i++) {
		if (!read_exit(heap, code, i, ret))
			return false;
		if ((uint64_t)(int64_t)ret->pc == offset)
			return true;
	}
	return false;
}

/* The bytecode of a function; 0: it has none. */
static uint64_t find_bytecode(const struct ss_v8_heap *heap, uint64_t function)
{
	uint64_t data;

	return ss_v8_word(heap->memory, function, heap->layout->shared_data, &data) ?
		       ss_v8_bytecode_of(heap, data) :
		       0;
}

/* Whether the bytecode of the innermost call is at its position. That of a builtin which calls
   functions (Array.prototype.map) is negative. */
static bool check_call(const struct ss_v8_heap *heap, const struct ss_v8_call *call,
		       int32_t offset, bool *ret)
{
	uint64_t bytecode = offset >= 0 ? find_bytecode(heap, call->function) : 0;
	uint32_t position = 0;

	*ret = offset < 0;
	if (bytecode == 0)
		return true;
	if (!ss_v8_bytecode_position(heap, bytecode, offset, &position))
		return false;
	*ret = position != 0 && position == call->position;
	return true;
}

/* By the frames that the deoptimizer would make. Code of Maglev need not have a table of
   positions. */
static bool translate(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
		      const struct exit *exit, struct ss_v8_call ret[SS_V8_INLINED_MAX],
		      size_t *count)
{
	struct ss_v8_translated frames[SS_V8_INLINED_MAX];
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0;
	size_t frame_count = 0;
	uint64_t object;
	uint64_t literals;

	if (exit->translation < 0 ||
	    !read_element(heap, code->data, DEOPT_TRANSLATIONS, &object) ||
	    !read_element(heap, code->data, heap->layout->deopt_literals, &literals))
		return true;
	if (!ss_v8_bytes(heap, object, &bytes, &size))
		return false;
	if (!bytes || !ss_v8_translation_read(heap->layout, bytes, size,
					      (uint32_t)exit->translation, frames,
					      SS_V8_INLINED_MAX, &frame_count))
		return true;
	for (size_t i = 0; i < frame_count; i++) {
		struct ss_v8_call *call = &ret[frame_count - 1 - i];
		call->position = 0;
		if (!read_function(heap, literals, frames[i].function, &call->function))
			return true;
		uint64_t bytecode = find_bytecode(heap, call->function);
		if (bytecode != 0 && frames[i].bytecode >= 0 &&
		    !ss_v8_bytecode_position(heap, bytecode, frames[i].bytecode,
					     &call->position))
			return false;
	}
	*count = frame_count;
	return true;
}

bool ss_v8_code_calls(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
		      uint64_t pc, struct ss_v8_call ret[SS_V8_INLINED_MAX],
		      size_t *count)
{
	_cleanup_free_ uint8_t *positions = NULL;
	_cleanup_free_ uint8_t *inlining = NULL;
	size_t size = 0;
	size_t inlining_size = 0;
	uint64_t position = 0;
	uint64_t object;
	struct exit exit;
	bool valid;

	*count = 0;
	if (!find_exit(heap, code, pc - code->start, &exit))
		return true;
	if (code->kind == SS_V8_MAGLEV)
		return translate(heap, code, &exit, ret, count);
	if (!ss_v8_bytes(heap, code->positions, &positions, &size))
		return false;
	if (!positions ||
	    !ss_v8_position_find(heap->layout, positions, size,
				 (int64_t)(pc - 1 - code->start), &position) ||
	    !read_element(heap, code->data, heap->layout->deopt_inlining, &object))
		return true;
	if (!ss_v8_bytes(heap, object, &inlining, &inlining_size))
		return false;
	if (!inlining ||
	    !expand(heap, code, inlining, inlining_size, position, ret, count)) {
		*count = 0;
		return true;
	}
	if (!check_call(heap, &ret[0], exit.bytecode, &valid))
		return false;
	if (!valid)
		*count = 0;
	return true;
}

/* Bytecode ----------------------------------------------------------------- */

bool ss_v8_bytecode_position(const struct ss_v8_heap *heap, uint64_t bytecode,
			     int64_t offset, uint32_t *ret)
{
	_cleanup_free_ uint8_t *positions = NULL;
	uint64_t position = 0;
	size_t size = 0;
	uint64_t object;
	uint64_t now;

	*ret = 0;
	if (!ss_v8_word(heap->memory, bytecode, heap->layout->bytecode_positions,
			&object) ||
	    !ss_v8_is_object(object))
		return true;
	if (!ss_v8_bytes(heap, object, &positions, &size))
		return false;
	if (!positions ||
	    !ss_v8_position_find(heap->layout, positions, size, offset, &position) ||
	    !ss_v8_word(heap->after, bytecode, heap->layout->bytecode_positions, &now) ||
	    now != object ||
	    ss_v8_type(heap, heap->after, bytecode) != heap->layout->type_bytecode)
		return true;
	*ret = ss_v8_position_script(position);
	return true;
}

/* Groups of 7 bits, the lowest first. */
static bool take_unsigned(const uint8_t **at, const uint8_t *end, uint32_t *ret)
{
	unsigned shift = 0;
	uint8_t byte;

	*ret = 0;
	do {
		if (*at == end || shift > 28)
			return false;
		byte = *(*at)++;
		*ret |= (uint32_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return true;
}

/* The size of the bytecode at an offset, with its prefix. 0: it is not valid. */
static size_t size_of_bytecode(const struct ss_v8_layout *layout, const uint8_t *code,
			       size_t size)
{
	size_t prefix = 0;
	unsigned scale = 0;

	if (size == 0)
		return 0;
	if (code[0] < PREFIXES) {
		prefix = 1;
		scale = code[0] % 2 == 0 ? 1 : 2;
		if (size == 1)
			return 0;
	}
	uint8_t bytecode = code[prefix];
	size_t length = bytecode < layout->bytecodes ? layout->sizes[scale][bytecode] : 0;
	return length > 0 && prefix + length <= size ? prefix + length : 0;
}

/* The table has the size of the machine code of the prologue and of each bytecode. */
static int64_t find_offset(const struct ss_v8_layout *layout, const uint8_t *table,
			   size_t table_size, const uint8_t *code, size_t size,
			   uint64_t pc)
{
	const uint8_t *end = table + table_size;
	int64_t offset = -1;
	size_t next = 0;
	uint64_t at = 0;
	uint32_t length;

	while (take_unsigned(&table, end, &length)) {
		at += length;
		if (at >= pc)
			return offset;
		size_t step = size_of_bytecode(layout, code + next, size - next);
		if (step == 0)
			return -1;
		offset = (int64_t)next;
		next += step;
	}
	return -1;
}

static bool read_bytecode(const struct ss_v8_heap *heap, uint64_t bytecode, uint8_t **ret,
			  size_t *ret_size)
{
	uint64_t length;

	*ret = NULL;
	if (!ss_v8_word(heap->memory, bytecode, heap->layout->bytecode_length, &length) ||
	    !ss_v8_is_smi(length) || ss_v8_smi(length) < 0 ||
	    ss_v8_smi(length) > SS_V8_TABLE_MAX)
		return true;
	*ret_size = (size_t)ss_v8_smi(length);
	if (!ss_v8_take(heap, *ret_size))
		return true;
	uint8_t *bytes = malloc(*ret_size + 1);
	if (!bytes)
		return false;
	if (!ss_memory_read(heap->memory, bytecode - 1 + heap->layout->bytecode_data,
			    bytes, *ret_size)) {
		free(bytes);
		return true;
	}
	*ret = bytes;
	return true;
}

bool ss_v8_baseline_offset(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
			   uint64_t bytecode, uint64_t pc, bool call, int64_t *ret)
{
	_cleanup_free_ uint8_t *table = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t table_size = 0;
	size_t size = 0;

	*ret = -1;
	if (!ss_v8_bytes(heap, code->positions, &table, &table_size) ||
	    !read_bytecode(heap, bytecode, &bytes, &size))
		return false;
	/* A return address is at the end of its call, or after it. */
	if (table && bytes)
		*ret = find_offset(heap->layout, table, table_size, bytes, size,
				   pc - code->start + !call);
	return true;
}
