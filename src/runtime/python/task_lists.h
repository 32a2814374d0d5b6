/*
 * The lists of tasks of CPython 3.14: each thread has one, and an interpreter has one of tasks
 * whose thread has ended. Where they are is in a table that the module _asyncio has for debuggers
 * (struct _Py_AsyncioModuleDebugOffsets of Modules/_asynciomodule.c).
 */
#ifndef SS_RUNTIME_PYTHON_TASK_LISTS_H
#define SS_RUNTIME_PYTHON_TASK_LISTS_H

#include "runtime/python/object.h"
#include "runtime/runtime.h"

/* That table, checked. */
struct ss_python_task_table {
	/* TaskObj */
	uint32_t task_size;
	uint32_t task_name;
	uint32_t task_is_task;
	uint32_t task_coroutine;
	uint32_t task_node;
	/* Heads of lists */
	uint32_t interpreter_tasks;
	uint32_t thread_tasks;
};

/* Finds the table. NULL: *ret has it; or why there is none, a constant. */
const char *ss_python_task_table_find(const struct ss_runtime_process *process,
				      struct ss_python_task_table *ret);

/* The same from the memory of the table. */
const char *ss_python_task_table_read(const struct ss_memory *memory, uint64_t address,
				      struct ss_python_task_table *ret);

/*
 * Appends the tasks of a list, at most max, some of them perhaps twice. memory may be of different
 * moments; fresh is as it is now. Tasks that are in the list from before until after are found,
 * unless *ret_whole is false then. False without memory.
 */
bool ss_python_task_list_read(const struct ss_memory *memory,
			      const struct ss_memory *fresh, uint64_t head, uint32_t node,
			      size_t max, struct ss_python_objects *ret, bool *ret_whole);

#endif
