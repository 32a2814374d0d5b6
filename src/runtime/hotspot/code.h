/*
 * The code cache of HotSpot: which piece of code (CodeBlob) an address is in, and which
 * methods a compiled method executes there. Interprets untrusted memory.
 */
#ifndef SS_RUNTIME_HOTSPOT_CODE_H
#define SS_RUNTIME_HOTSPOT_CODE_H

#include "base/cursor.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vector.h"
#include "runtime/hotspot/layout.h"

/*
 * Methods of HotSpot: the class, the name, the file and the line table, from untrusted memory.
 * Metadata of classes does not move.
 */

struct ss_hotspot_method {
	uint64_t address;
	const char *name; /* "java.lang.Thread.run"; in strings */
	const char *file; /* without directory, or NULL */
	uint64_t code;	  /* address of the bytecode */
	uint32_t code_size;
	uint8_t *lines; /* owned; NULL: no line table */
	size_t lines_size;
	bool valid;
};

struct ss_hotspot_methods {
	const struct ss_hotspot_layout *layout;
	const struct ss_memory *memory;
	const struct ss_memory *after; /* read after what was read of memory */
	struct ss_intern *strings;
	SS_VECTOR(struct ss_hotspot_method) items;
	struct ss_hash table;
};

void ss_hotspot_methods_deinit(struct ss_hotspot_methods *methods);

/* The Method at an address, read once. *ret is NULL if there is none; valid until the next
   call. False without memory. */
bool ss_hotspot_methods_find(struct ss_hotspot_methods *methods, uint64_t address,
			     const struct ss_hotspot_method **ret);

/* The line of a bytecode; 0: none is known. */
uint32_t ss_hotspot_line(const struct ss_hotspot_layout *layout,
			 const struct ss_hotspot_method *method, int32_t wanted);

/* A compressed number (UNSIGNED5 of src/hotspot/share/code/compressedStream.cpp). */
uint32_t ss_hotspot_number(const struct ss_hotspot_layout *layout,
			   struct ss_cursor *cursor);

enum { SS_HOTSPOT_SCOPES_MAX = 256 };

enum ss_hotspot_blob_kind {
	SS_HOTSPOT_STUB, /* stubs, adapters, and whatever else there is */
	SS_HOTSPOT_INTERPRETER,
	SS_HOTSPOT_NMETHOD, /* a compiled method, or the wrapper of a native one */
};

struct ss_hotspot_range {
	uint64_t start;
	uint64_t end;
};

struct ss_hotspot_blob {
	uint64_t address;
	enum ss_hotspot_blob_kind kind;
	const char *name; /* in strings */
	struct ss_hotspot_range code;
	uint32_t frame_size;	 /* in bytes; 0: its code manages its frames itself */
	uint64_t frame_complete; /* before this address the frame is being made */
	/* Of a compiled method */
	uint64_t method;
	uint64_t deopt;	      /* return address of a frame to be deoptimised */
	uint32_t original_pc; /* where its stack frame has the real one then */
	struct ss_hotspot_range pcs;
	struct ss_hotspot_range scopes;
	struct ss_hotspot_range metadata;
	bool valid;
};

struct ss_hotspot_heap {
	struct ss_hotspot_range range;
	uint64_t segments; /* address of the map, one byte for each segment */
	unsigned shift;
};

struct ss_hotspot_codes {
	const struct ss_hotspot_layout *layout;
	const struct ss_memory *memory;
	struct ss_intern *strings;
	SS_VECTOR(struct ss_hotspot_heap) heaps;
	SS_VECTOR(struct ss_hotspot_blob) blobs;
	struct ss_hash table;
};

/* Finds the heaps. False without memory. */
bool ss_hotspot_codes_init(struct ss_hotspot_codes *codes);
void ss_hotspot_codes_deinit(struct ss_hotspot_codes *codes);

/* Whether an address is in the code cache. */
bool ss_hotspot_is_code(const struct ss_hotspot_codes *codes, uint64_t pc);

/* The blob at an address. *ret is NULL if there is none; valid until the next call. False
   without memory. */
bool ss_hotspot_codes_find(struct ss_hotspot_codes *codes, uint64_t pc,
			   const struct ss_hotspot_blob **ret);

/* A method that is executed, and where in its bytecode; -1: not known, or before it. */
struct ss_hotspot_scope {
	uint64_t method;
	int32_t bci;
};

/*
 * Returns the methods that a compiled method executes at pc, innermost first, or 0 if they are
 * not valid. The debug information is about certain addresses only, such as those of calls.
 * Between two of them, methods and bytecodes count that both have, from the outermost on.
 */
size_t ss_hotspot_scopes(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t pc,
			 struct ss_hotspot_scope ret[SS_HOTSPOT_SCOPES_MAX]);

/* Whether the debug information of a compiled method is about exactly this address. */
bool ss_hotspot_is_exact(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t pc);

static inline bool ss_hotspot_contains(const struct ss_hotspot_range *range,
				       uint64_t address)
{
	return address >= range->start && address < range->end;
}

#endif
