/*
 * Objects of CPython that are no code: attributes, dictionaries, sets, lists and integers, from
 * untrusted memory. Every list is bounded, and every type is checked by name.
 */
#ifndef SS_RUNTIME_PYTHON_OBJECT_H
#define SS_RUNTIME_PYTHON_OBJECT_H

#include "base/vector.h"
#include "runtime/python/layout.h"

enum { SS_PYTHON_TYPE_NAME_MAX = 128 };

/* Addresses of objects. */
struct ss_python_objects {
	SS_VECTOR(uint64_t) list;
};

/* The type of an object. False: it cannot be read. */
bool ss_python_type_of(const struct ss_memory *memory, uint64_t address, uint64_t *ret);

/* The name in a type, "_asyncio.Task": at least SS_PYTHON_TYPE_NAME_MAX bytes. */
bool ss_python_type_name(const struct ss_memory *memory, uint64_t type, char *ret);

/* Whether a type or one of its bases has this name and this size of its objects. */
bool ss_python_is_a(const struct ss_memory *memory, uint64_t type, const char *name,
		    uint64_t size);

/* The value of a string key in a dictionary. False: it has none. */
bool ss_python_dict_find(const struct ss_python_layout *layout,
			 const struct ss_memory *memory, uint64_t dict, const char *key,
			 uint64_t *ret);

/* The value of an attribute that is stored in an object itself, not in its type. */
bool ss_python_attribute(const struct ss_python_layout *layout,
			 const struct ss_memory *memory, uint64_t object,
			 const char *name, uint64_t *ret);

/* An int that is not negative and has at most 64 bits. */
bool ss_python_integer(const struct ss_python_layout *layout,
		       const struct ss_memory *memory, uint64_t address, uint64_t *ret);

/* Appends the elements of a list or set, at most max. False without memory; an object of
   another type has none. */
bool ss_python_elements(const struct ss_memory *memory, uint64_t address, size_t max,
			struct ss_python_objects *ret);

#endif
