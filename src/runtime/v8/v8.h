/*
 * What of V8 is read: where its objects have their fields, objects of the heap, compiled code.
 */
#ifndef SS_RUNTIME_V8_V8_H
#define SS_RUNTIME_V8_V8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/vector.h"
#include "data/memory.h"

/*
 * Where V8 has the fields of its objects. Programs that export V8 (node does) have most of it in
 * variables for debuggers, whose names begin with "v8dbg_"; the rest is in tables for each
 * version. It does not change within a minor version. What is in both must agree.
 */

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

/*
 * Objects of V8's heap: strings, scripts, functions. From untrusted memory that may change
 * while it is read: the garbage collector moves objects. A function counts only if what
 * identifies it is the same after its names were read; a pointer to an object that was moved
 * would have changed.
 */

enum {
	SS_V8_NAME_MAX = 1024,	       /* characters of a name or path; it is cut there */
	SS_V8_TABLE_MAX = 4 << 20,     /* bytes of a table */
	SS_V8_SOURCE_MAX = 64 << 20,   /* bytes of a script that are read */
	SS_V8_TABLES_MAX = 1 << 30,    /* of all tables that are read */
	SS_V8_SHARED_SIZE = 48,	       /* what is read of a SharedFunctionInfo */
	SS_V8_OBJECT_NONE = UINT16_MAX /* no type */
};

/* The characters of a string that are in one place. */
struct ss_v8_characters {
	uint64_t address;
	uint32_t length;
	bool one_byte;
};

struct ss_v8_script {
	uint64_t address;
	uint64_t source_pointer;
	uint64_t name_pointer;
	const char *file; /* in strings; NULL: it has no name */
	int32_t line_offset;
	struct ss_v8_characters source;
	SS_VECTOR(uint32_t) ends; /* where lines end, up to scanned */
	uint32_t scanned;
	bool after_return; /* the character before scanned is a carriage return */
	bool is_eval;	   /* eval(), new Function() */
	bool valid;
};

/* What identifies a function. */
struct ss_v8_identity {
	uint64_t map;
	uint64_t name;
	uint64_t script;
};

/* A SharedFunctionInfo: a function as it is in the source. */
struct ss_v8_function {
	uint64_t address;
	struct ss_v8_identity identity;
	uint64_t data; /* bytecode, or code that has it, or the number of a builtin */
	const char *name;
	uint32_t script; /* index + 1; 0: none */
	bool valid;
};

struct ss_v8_heap {
	const struct ss_v8_layout *layout;
	const struct ss_memory *memory;
	const struct ss_memory *after; /* read after what was read of memory */
	struct ss_intern *strings;
	SS_VECTOR(struct ss_v8_function) functions;
	struct ss_idtable function_ids; /* their addresses */
	SS_VECTOR(struct ss_v8_script) scripts;
	uint64_t source_read; /* bytes */
	/* Bytes of tables that may still be read, of all frames: deep stacks of large functions
	   end at it, without lines. */
	uint64_t *tables_left;
};

void ss_v8_heap_deinit(struct ss_v8_heap *heap);

/* Whether a word is a pointer to an object, and not a small integer. */
static inline bool ss_v8_is_object(uint64_t word)
{
	return (word & 3) == 1 && word < UINT64_C(1) << 47;
}

/* Small integers are in the upper half. */
static inline bool ss_v8_is_smi(uint64_t word)
{
	return (word & UINT32_MAX) == 0;
}

static inline int32_t ss_v8_smi(uint64_t word)
{
	return (int32_t)(word >> 32);
}

bool ss_v8_word(const struct ss_memory *memory, uint64_t object, uint32_t offset,
		uint64_t *ret);

/* The instance type of an object, whose map is read from memory. SS_V8_OBJECT_NONE: none. */
uint16_t ss_v8_type(const struct ss_v8_heap *heap, const struct ss_memory *memory,
		    uint64_t object);

/* Reads a string as UTF-8; with its NUL at most 3 * SS_V8_NAME_MAX + 1 bytes. */
bool ss_v8_string(const struct ss_v8_heap *heap, uint64_t object, char *ret);

/* The identity of the function in the copy of a SharedFunctionInfo. */
struct ss_v8_identity ss_v8_identity_of(const struct ss_v8_layout *layout,
					const uint8_t bytes[SS_V8_SHARED_SIZE]);
bool ss_v8_identity_equal(const struct ss_v8_identity *a, const struct ss_v8_identity *b);

/* The function at an address, read once. *ret is NULL if there is none; valid until the next
   call. False without memory. */
bool ss_v8_function_find(struct ss_v8_heap *heap, uint64_t address,
			 const struct ss_v8_function **ret);

/* The file of a function, or NULL. */
const char *ss_v8_function_file(const struct ss_v8_heap *heap,
				const struct ss_v8_function *function);

/* The line of a position in the source of a function's script. 0: not known. False without
   memory. */
bool ss_v8_function_line(struct ss_v8_heap *heap, const struct ss_v8_function *function,
			 uint32_t position, uint32_t *ret);

/* Counts bytes of tables that are about to be read. False: too many. */
bool ss_v8_take(const struct ss_v8_heap *heap, uint64_t size);

/* Reads an array of bytes, to be freed; *ret is NULL if there is none. False without
   memory. */
bool ss_v8_bytes(const struct ss_v8_heap *heap, uint64_t object, uint8_t **ret,
		 size_t *ret_size);

/*
 * Finds a place in a table of source positions: the last one at or before an offset in the code.
 * *ret: the position as V8 encodes it. False: there is none, or the table is not valid.
 */
bool ss_v8_position_find(const struct ss_v8_layout *layout, const uint8_t *table,
			 size_t size, int64_t offset, uint64_t *ret);

/* Offset + 1 in the script, 0: none; and the number of the inlined call + 1, 0: none. */
static inline uint32_t ss_v8_position_script(uint64_t position)
{
	return position & 1 ? 0 : (uint32_t)(position >> 1) & 0x3fffffff;
}

static inline uint32_t ss_v8_position_inlined(uint64_t position)
{
	return (uint32_t)(position >> 31) & 0xffff;
}

/*
 * Code that V8's compilers have made: which function it was made for, which calls are inlined
 * at an instruction, and where they are in the source.
 */

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
