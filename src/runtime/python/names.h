/*
 * The names of threads: what the module threading keeps of each, in its dictionary _active. From
 * untrusted memory. Threads begin, end and are renamed meanwhile, so a name counts only if it is the
 * same when it is read again.
 */
#ifndef SS_RUNTIME_PYTHON_NAMES_H
#define SS_RUNTIME_PYTHON_NAMES_H

#include "runtime/python/object.h"
#include "runtime/runtime.h"

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
