/*
 * Where V8 has the fields of its objects. Programs that export V8 (node does) have most of it in
 * variables for debuggers, whose names begin with "v8dbg_"; the rest is in tables for each
 * version. It does not change within a minor version. What is in both must agree.
 */
#ifndef SS_RUNTIME_V8_LAYOUT_H
#define SS_RUNTIME_V8_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/memory.h"

enum {
	SS_V8_BYTECODES_MAX = 256,
	SS_V8_SCALES = 3,	/* of operands: 1, 2 and 4 bytes */
	SS_V8_FRAME_BYTES = 40, /* of a frame, below the frame pointer */
};

/* Offsets are from the start of an object; a pointer to one is its address + 1. */
struct ss_v8_layout {
	uint32_t major;
	uint32_t minor;
	uint32_t build;
	uint32_t patch;
	/* From the variables: */
	int32_t frame_context; /* from the frame pointer: -SS_V8_FRAME_BYTES to -8 */
	int32_t frame_function;
	int32_t frame_bytecode;
	int32_t frame_offset;
	uint32_t function_shared;
	uint32_t script_source;
	uint32_t script_name;
	uint32_t string_length;
	uint32_t string_one_byte;
	uint32_t string_two_byte;
	uint32_t string_actual;
	uint32_t string_first;
	uint32_t string_second;
	uint32_t string_parent;
	uint32_t string_offset;
	uint32_t bytecode_data;
	uint32_t type_first_nonstring;
	uint32_t type_context;
	uint32_t type_context_last;
	uint32_t type_function;
	uint32_t type_shared;
	uint32_t type_scope;
	uint32_t type_script;
	uint32_t type_bytecode;
	uint32_t type_code;
	uint32_t kind_baseline;
	uint32_t frame_wasm; /* kinds of frames */
	uint32_t frame_wasm_to_js;
	uint32_t scope_first; /* element of a scope with the first name */
	/* From the tables: */
	uint32_t map_type;
	uint32_t shared_data;
	uint32_t shared_name;
	uint32_t shared_script;
	uint32_t script_line_offset;
	uint32_t script_eval_from;
	uint32_t string_external;
	uint32_t bytecode_length;
	uint32_t bytecode_positions;
	uint32_t code_data; /* what code was made for: deoptimization data, bytecode */
	uint32_t code_positions; /* baseline: offsets of bytecode */
	uint32_t code_flags;
	uint32_t
		code_start; /* of the instructions, a pointer; 0: they follow the object */
	uint32_t code_size;
	uint32_t stream_header; /* bytes before the instructions */
	uint32_t stream_code;
	uint32_t scope_names_max; /* from so many names on they are in a table */
	uint32_t
		position_flags; /* bits of a distance in a table of positions; 0: its sign */
	bool scope_flags_raw; /* no small integer */
	/* Elements of DeoptimizationData */
	uint32_t deopt_literals;
	uint32_t deopt_function;
	uint32_t deopt_inlining; /* followed by: start, counts of exits, exits */
	uint32_t
		type_wrapper; /* the function is in an object of this type; 0: it is not */
	/* Where the program does not export them: two digits for each bytecode, how many
	   operands have the size of the scale, and how many bytes the others have */
	const char *operands;
	/* Translations of frames, in code of Maglev: a digit for each opcode, how many operands it
	   has; the first one with which a translation begins. NULL: it does not exist */
	const char *translation_operands;
	uint32_t translation_begin;
	uint32_t safepoints_count; /* where Maglev's table has the number of entries */
	/* The sizes of bytecodes, for each scale of their operands */
	uint8_t sizes[SS_V8_SCALES][SS_V8_BYTECODES_MAX];
	uint32_t bytecodes; /* 0: not known */
};

/* The variables. */
enum {
	SS_V8_MAJOR, /* the first one: a program without it does not export V8 */
	SS_V8_MINOR,
	SS_V8_BUILD,
	SS_V8_PATCH,
	SS_V8_SIZES,
	SS_V8_TAGGED_SIZE,
	SS_V8_SMI_SHIFT,
	SS_V8_FIELDS, /* the first one of the fields above */
	/* Fields of the tables: each version has some of these, which must agree. */
	SS_V8_CHECKED = SS_V8_FIELDS + 29,
	SS_V8_SYMBOLS = SS_V8_CHECKED + 16,
};

extern const char *const ss_v8_symbols[SS_V8_SYMBOLS];

struct ss_v8_symbol {
	uint64_t address; /* in the process; 0: it does not have it */
	uint64_t size;
};

/* Reads the version; false if it cannot be read. */
bool ss_v8_version_read(const struct ss_memory *memory,
			const struct ss_v8_symbol *symbols, struct ss_v8_layout *ret);

/* Fills the rest. False: *ret_why is the reason, a constant. */
bool ss_v8_layout_read(const struct ss_memory *memory, const struct ss_v8_symbol *symbols,
		       struct ss_v8_layout *ret, const char **ret_why);

#endif
