/*
 * Objects of CPython that are no code: attributes, dictionaries, sets, lists and integers, from
 * untrusted memory. Every list is bounded, and every type is checked by name.
 */
#ifndef SS_RUNTIME_PYTHON_OBJECT_H
#define SS_RUNTIME_PYTHON_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "data/memory.h"
#include "runtime/runtime.h"

/*
 * Where CPython's structures have their fields: tables for each minor version (they do not
 * change within one), and from 3.13 on the table that the runtime itself has in memory.
 */

/* How the calls of a thread are linked to its native frames. */
enum ss_python_frames {
	SS_PYTHON_COUNT,  /* to 3.10: each call has an evaluation loop of its own */
	SS_PYTHON_CFRAME, /* 3.11: a struct _PyCFrame on the native stack for each loop */
	SS_PYTHON_SHIM,	  /* from 3.12 on: a frame on the native stack for each loop */
};

/* How a line table is encoded. */
enum ss_python_lines {
	SS_PYTHON_LNOTAB,     /* to 3.9 */
	SS_PYTHON_LINE_PAIRS, /* 3.10 */
	SS_PYTHON_LOCATIONS,  /* from 3.11 on */
};

struct ss_python_layout {
	unsigned minor; /* of version 3 */
	enum ss_python_frames frames;
	enum ss_python_lines lines;
	/* _PyRuntime */
	uint32_t interpreters;
	/* PyInterpreterState */
	uint32_t interp_next;
	uint32_t interp_threads;
	uint32_t interp_modules; /* sys.modules */
	/* PyThreadState */
	uint32_t thread_next;
	uint32_t thread_interp;
	uint32_t thread_frame;	/* of the innermost frame; CFRAME: of the cframe */
	uint32_t thread_id;	/* pthread_self() */
	uint32_t thread_native; /* thread id in its own pid namespace; 0: none */
	uint32_t thread_size;	/* what is read */
	/* thread_frame leads to a struct that has the frame here; has_cframe */
	bool has_cframe;
	uint32_t cframe_frame;
	uint32_t cframe_previous;
	/* _PyInterpreterFrame, PyFrameObject */
	uint32_t frame_previous;
	uint32_t frame_code;
	uint64_t frame_code_mask;   /* from 3.14 on the pointer has tags; 0: none */
	uint32_t frame_instruction; /* COUNT: an index; else a pointer */
	uint32_t frame_entry;	    /* CFRAME: is_entry; SHIM: owner */
	uint32_t frame_size;	    /* what is read */
	/* From 3.14 on: localsplus; a pointer to the first free word of the stack there */
	uint32_t frame_locals;
	uint32_t frame_stack;
	/* PyGenObject, from 3.14 on */
	uint32_t generator_frame;
	uint32_t generator_state;
	/* PyCodeObject */
	uint32_t code_first_line;
	uint32_t code_filename;
	uint32_t code_name;
	uint32_t code_qualname; /* 0: none */
	uint32_t code_lines;
	uint32_t code_bytes; /* the bytecode begins here; 0: elsewhere */
	uint32_t code_size;  /* what is read */
	/* Strings: where the characters begin */
	uint32_t ascii;
	uint32_t compact;
	/* The GIL: COUNT and CFRAME: in _PyRuntime; else a pointer in the interpreter */
	uint32_t gil;
	bool gil_in_interpreter;
};

/* From 3.13 on: the version that the table in memory has, 0x030d00f0 for 3.13.0. 0: there is no table.
   runtime is the address of _PyRuntime. */
uint32_t ss_python_layout_version(const struct ss_memory *memory, uint64_t runtime);

/* The layout of a version, 0x030b07f0 for 3.11.7, on a machine ("x86_64"). runtime is the address of _PyRuntime. False: it
   is not known; *ret_why says why, a constant. */
bool ss_python_layout_find(uint32_t version, const char *machine,
			   const struct ss_memory *memory, uint64_t runtime,
			   struct ss_python_layout *ret, const char **ret_why);

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

struct ss_python_item {
	uint64_t key;
	uint64_t value;
};

struct ss_python_items {
	SS_VECTOR(struct ss_python_item) list;
};

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

/*
 * The names of threads: what the module threading keeps of each, in its dictionary _active. Threads
 * begin, end and are renamed meanwhile, so a name counts only if it is the same when it is read again.
 */

struct ss_python_name {
	uint64_t id;	  /* threading.get_ident() */
	uint64_t native;  /* the kernel's id in its pid namespace; 0: not known */
	const char *name; /* interned */
};

struct ss_python_names {
	SS_VECTOR(struct ss_python_name) list; /* ascending by id */
};

/* Appends the names of the threads of an interpreter. False without memory. */
bool ss_python_names_read(const struct ss_runtime_process *process,
			  const struct ss_python_layout *layout, uint64_t interpreter,
			  struct ss_python_names *ret);

/* The name of a thread with these ids; native 0: not known. NULL: none. */
const struct ss_python_name *ss_python_names_find(const struct ss_python_names *names,
						  uint64_t id, uint64_t native);

#endif
