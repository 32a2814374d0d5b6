/*
 * Tasks of asyncio: which there are, what their coroutines await, and what that waits for. They
 * are objects of CPython's module _asyncio; those that are written in Python are only counted.
 * A task is returned only if a second reading of all its objects, after all tasks were read,
 * gives the same.
 */
#ifndef SS_RUNTIME_PYTHON_TASKS_H
#define SS_RUNTIME_PYTHON_TASKS_H

#include "runtime/python_code.h"
#include "runtime/runtime.h"

struct ss_python_tasks_source {
	const struct ss_runtime_process *process;
	const struct ss_python_layout *layout;
	struct ss_python_codes *codes;
	uint64_t interpreter;
};

/* Adds the pending tasks of an interpreter. loop_thread of each is the value of
   threading.get_ident(). False without memory. */
bool ss_python_tasks_read(const struct ss_python_tasks_source *source,
			  struct ss_runtime_tasks *ret);

#endif
