/*
 * Code that V8's compilers have made: which function it was made for, which calls are inlined
 * at an instruction, and where they are in the source.
 */
#ifndef SS_RUNTIME_V8_CODE_H
#define SS_RUNTIME_V8_CODE_H

#include "runtime/v8/heap.h"
#include "runtime/v8/layout.h"

/*
 * What V8's deoptimizer makes of a frame of optimised code: the frames of the interpreter that
 * it stands for. Such a translation is a sequence of bytes (src/objects/deoptimization-data.cc,
 * src/deoptimizer/translation-opcode.h).
 */

struct ss_v8_translated {
	int32_t function; /* index of a literal */
	int32_t bytecode; /* offset */
};

/*
 * Reads the functions of the translation at an index, outermost first. Builtins that continue
 * a call are left out. *count: at most max. False: it is not valid.
 */
bool ss_v8_translation_read(const struct ss_v8_layout *layout, const uint8_t *bytes,
			    size_t size, uint32_t index, struct ss_v8_translated *ret,
			    size_t max, size_t *count);

enum { SS_V8_INLINED_MAX = 64 };

enum ss_v8_kind {
	SS_V8_OTHER, /* regular expressions, stubs */
	SS_V8_BASELINE,
	SS_V8_MAGLEV,
	SS_V8_TURBOFAN,
};

struct ss_v8_code {
	uint64_t object;
	uint64_t start; /* of its instructions */
	uint64_t end;
	uint64_t data;
	uint64_t positions;
	enum ss_v8_kind kind;
};

/* The code that has an instruction. False: none was found. */
bool ss_v8_code_find(const struct ss_v8_heap *heap, uint64_t pc, struct ss_v8_code *ret);

/* Whether the code is still there. */
bool ss_v8_code_is_unchanged(const struct ss_v8_heap *heap,
			     const struct ss_v8_code *code);

/* The bytecode that the data of a function, or of baseline code, is or leads to. With
   --interpreted-frames-native-stack there is an InterpreterData between, with the function's own copy
   of the interpreter's entry. 0: there is none. */
uint64_t ss_v8_bytecode_of(const struct ss_v8_heap *heap, uint64_t data);

/* The bytecode that baseline code was made for, or the function that optimised code was made
   for. 0: it is not valid. */
uint64_t ss_v8_code_subject(const struct ss_v8_heap *heap, const struct ss_v8_code *code);

/* A call. */
struct ss_v8_call {
	uint64_t function; /* a SharedFunctionInfo */
	uint32_t position; /* in the script, + 1; 0: not known */
};

/* The calls at a return address in optimised code, innermost first. count: at least 1 if it is
   valid. False without memory. */
bool ss_v8_code_calls(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
		      uint64_t pc, struct ss_v8_call ret[SS_V8_INLINED_MAX],
		      size_t *count);

/* The position, + 1, in the script of an offset in bytecode; 0: not known. False without
   memory. */
bool ss_v8_bytecode_position(const struct ss_v8_heap *heap, uint64_t bytecode,
			     int64_t offset, uint32_t *ret);

/* The offset in bytecode of an instruction of baseline code; negative: not known. call: pc is
   a return address. False without memory. */
bool ss_v8_baseline_offset(const struct ss_v8_heap *heap, const struct ss_v8_code *code,
			   uint64_t bytecode, uint64_t pc, bool call, int64_t *ret);

#endif
