/*
 * Objects of V8's heap: strings, scripts, functions. From untrusted memory that may change
 * while it is read: the garbage collector moves objects. A function counts only if what
 * identifies it is the same after its names were read; a pointer to an object that was moved
 * would have changed.
 */
#ifndef SS_RUNTIME_V8_HEAP_H
#define SS_RUNTIME_V8_HEAP_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vector.h"
#include "runtime/v8/layout.h"

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
	struct ss_hash function_table;
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

#endif
