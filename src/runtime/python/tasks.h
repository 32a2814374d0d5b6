/*
 * Tasks of asyncio: which there are, what their coroutines await, and what that waits for. They
 * are objects of CPython's module _asyncio; those that are written in Python are only counted.
 * A task is returned only if a second reading of all its objects, after all tasks were read,
 * gives the same.
 */
#ifndef SS_RUNTIME_PYTHON_TASKS_H
#define SS_RUNTIME_PYTHON_TASKS_H

#include "runtime/python/code.h"
#include "runtime/runtime.h"

enum {
	SS_PYTHON_TASK_READS = 1
			       << 26, /* of a process: seconds; some 200 for each task */
};

struct ss_python_tasks_source {
	const struct ss_runtime_process *process;
	const struct ss_python_layout *layout;
	struct ss_python_codes *codes;
	uint64_t interpreter;
	const uint64_t *threads; /* its thread states */
	size_t thread_count;
	uint64_t *reads_left; /* for all interpreters: SS_PYTHON_TASK_READS at first */
};

/* Adds the pending tasks of an interpreter, or sets ret->problem. loop_thread of each is the value
   of threading.get_ident(). Those beyond a limit count as unread. False without memory. */
bool ss_python_tasks_read(const struct ss_python_tasks_source *source,
			  struct ss_runtime_tasks *ret);

#endif
