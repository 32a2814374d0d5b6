/*
 * Methods of HotSpot: the class, the name, the file and the line table, from untrusted memory.
 * Metadata of classes does not move.
 */
#ifndef SS_RUNTIME_HOTSPOT_METHOD_H
#define SS_RUNTIME_HOTSPOT_METHOD_H

#include "base/cursor.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vector.h"
#include "runtime/hotspot/layout.h"

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

#endif
