/*
 * Tasks of asyncio: which there are, what their coroutines await, and what that waits for. They
 * are objects of CPython's module _asyncio; those that are written in Python are only counted.
 * A task is returned only if a second reading of all its objects, after all tasks were read,
 * gives the same.
 */
#ifndef SS_RUNTIME_PYTHON_TASKS_H
#define SS_RUNTIME_PYTHON_TASKS_H

#include "runtime/python/code.h"
#include "runtime/python/object.h"
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

/* A call of a task: offset is that of its instruction, INT64_MIN if it runs. False: its code is not
   valid, or there is no memory. */
bool ss_python_task_call(const struct ss_python_tasks_source *source, uint64_t address,
			 int64_t offset, struct ss_runtime_call *ret,
			 bool *ret_no_memory);

/* Whether a code object is still what it was when its name was read. */
bool ss_python_task_has_code(const struct ss_python_tasks_source *source,
			     const struct ss_memory *memory, uint64_t address,
			     bool *ret_no_memory);

/*
 * Greenlets: stacks of calls that take turns on a thread. Adds those that are suspended. They are found
 * among the objects that the garbage collector knows, and count only if a second reading gives the same. The
 * one that runs has its calls on the thread. False without memory.
 */
bool ss_python_greenlets_read(const struct ss_python_tasks_source *source,
			      struct ss_runtime_tasks *ret);

/* Whether a file is the extension module of greenlets (gevent, eventlet, SQLAlchemy). */
bool ss_python_is_greenlet(const char *path);

/*
 * Objects through which tasks of asyncio wait: which task holds a lock, and whether any other task or
 * code refers to an object, so that it could end the wait. From untrusted memory: all that is read of a
 * task is of a task that waits, and counts only if the task is the same when it is read again.
 */

/* A coroutine of a task. */
struct ss_python_link {
	uint64_t code;
	int64_t offset; /* of the instruction; of one that runs: INT64_MIN */
	/* Of one that waits: its local variables, and what is on its stack */
	uint64_t words;
	uint32_t word_count;
	/* Of a method of asyncio's locks and queues: its object. 0: it is none */
	uint64_t self;
	bool enters; /* it is __aenter__ */
};

struct ss_python_links {
	SS_VECTOR(struct ss_python_link) list; /* outermost first */
};

struct ss_python_waiter {
	const struct ss_python_links *links;
	const uint64_t *awaited; /* addresses of tasks */
	size_t awaited_count;
	uint64_t address; /* of the task */
	uint64_t future;  /* that it waits for; 0: it does not wait */
	/* The lock, queue or future; 0: it waits for tasks, or that is not known */
	uint64_t object;
	/* What was found */
	const struct ss_python_waiter *owner; /* who holds the lock; NULL: not known */
	bool timed; /* something may end the wait at some time */
	/* Only tasks that wait for such objects refer to it */
	bool endless;
};

/* The object through which a task waits that awaits no task. */
uint64_t ss_python_awaited_object(const struct ss_memory *memory,
				  const struct ss_python_links *links, uint64_t future);

/* Whether a task waits for it on purpose, until the program ends: an event or a future. */
bool ss_python_is_usual(const struct ss_memory *memory, uint64_t object);

/* Sets what was found of tasks, ascending by address. False without memory. */
bool ss_python_owners_find(const struct ss_python_layout *layout,
			   const struct ss_memory *memory,
			   struct ss_python_waiter *waiters, size_t count);

/* Whether an event loop waits for nothing but calls from other threads: it has no timers, no signals,
   and no descriptors but its own. False: it has, or its type is not known. */
bool ss_python_loop_is_empty(const struct ss_python_layout *layout,
			     const struct ss_memory *memory, uint64_t loop);

/*
 * The lists of tasks of CPython 3.14: each thread has one, and an interpreter has one of tasks
 * whose thread has ended. Where they are is in a table that the module _asyncio has for debuggers
 * (struct _Py_AsyncioModuleDebugOffsets of Modules/_asynciomodule.c).
 */

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
