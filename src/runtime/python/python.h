/*
 * What CPython keeps in memory, from untrusted memory: where its structures have their fields,
 * objects, code, names of threads, locks, and tasks of asyncio. Every list is bounded, and every type
 * is checked by name.
 */
#ifndef SS_RUNTIME_PYTHON_PYTHON_H
#define SS_RUNTIME_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
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

/*
 * Code objects of CPython: the name, the file and the line table of a function, from untrusted
 * memory.
 */

/*
 * Code objects of CPython that were read for earlier captures of a session. A recording meets the
 * same ones in each tick: what they were read from is compared, all of it with one request, instead
 * of being read and decoded piece by piece.
 *
 * A code object counts if it has the same identity as when it was read, and if its strings and its
 * line table have the same bytes at the same addresses. Its identity is read last: one that was
 * executed at the moment of the capture, and has the same identity afterwards, was there in
 * between, and so were its strings.
 */

struct ss_python_kept;

/* Compares those whose addresses are in what the plan of the capture has copied. The result is
   valid until the next call. NULL: no memory; nothing is kept. */
struct ss_python_kept *ss_python_kept_begin(const struct ss_runtime_process *process,
					    const struct ss_python_layout *layout);

/* The code object at an address if it is the same as it was; or NULL. */
const struct ss_python_code *ss_python_kept_find(const struct ss_python_kept *kept,
						 uint64_t address);

enum {
	SS_PYTHON_NAME_MAX = 4096, /* characters of a name or path */
	SS_PYTHON_LINES_MAX = 4 << 20,
	SS_PYTHON_HEADER_MAX = 1024, /* bytes of a structure that are read */
};

/* What identifies a code object: if it is the same at two times, it was not replaced. */
struct ss_python_identity {
	uint64_t type;
	uint64_t filename;
	uint64_t name;
	uint64_t qualname;
	uint64_t lines;
	uint32_t first_line;
};

struct ss_python_code {
	uint64_t address;
	struct ss_python_identity identity;
	const char *name; /* qualified, if the version has that; in strings */
	const char *file;
	uint8_t *table; /* owned, unless it is kept */
	size_t table_size;
	bool valid;
	bool kept; /* its table belongs to struct ss_python_kept */
};

struct ss_python_kept;

struct ss_python_codes {
	const struct ss_python_layout *layout;
	const struct ss_memory *memory;
	/* Memory as it is now: a code object that is the same after its strings were read was
	   not replaced meanwhile. */
	const struct ss_memory *fresh;
	struct ss_intern *strings;
	struct ss_python_kept *kept; /* NULL: nothing is kept for later captures */
	SS_VECTOR(struct ss_python_code) items;
	struct ss_idtable ids; /* their addresses */
};

void ss_python_codes_deinit(struct ss_python_codes *codes);

/* Reads the identity of what is at an address. False: it is no code object. */
bool ss_python_identity_read(const struct ss_python_layout *layout,
			     const struct ss_memory *memory, uint64_t address,
			     struct ss_python_identity *ret);

bool ss_python_identity_equal(const struct ss_python_identity *a,
			      const struct ss_python_identity *b);

/* Whether the type of the object at an address has this name. */
bool ss_python_has_type(const struct ss_memory *memory, uint64_t address,
			const char *name);

/* The code object at an address, read once. *ret is NULL if there is none; valid until the
   next call. False without memory. */
bool ss_python_codes_find(struct ss_python_codes *codes, uint64_t address,
			  const struct ss_python_code **ret);

/* The address of the code object of a frame. */
uint64_t ss_python_frame_code(const struct ss_python_layout *layout,
			      const uint8_t *frame);

/* The offset of the current instruction of a frame in the bytecode, in bytes; negative: none
   yet. False: it is not in that code. */
bool ss_python_offset(const struct ss_python_layout *layout, const uint8_t *frame,
		      uint64_t code, int64_t *ret);

/*
 * A line of a line table. offset: in the bytecode, in bytes, of the instruction; negative: of
 * none. 0: no line. False: the table is not valid.
 */
bool ss_python_line(enum ss_python_lines encoding, const uint8_t *table, size_t size,
		    uint32_t first_line, int64_t offset, uint32_t *ret);

/* Decodes a string object to UTF-8; with its NUL at most 4 * SS_PYTHON_NAME_MAX + 1 bytes.
   False: it is none, or too long. */
bool ss_python_string(const struct ss_python_layout *layout,
		      const struct ss_memory *memory, uint64_t address, char *ret);

/* The same of the first max characters, at most SS_PYTHON_NAME_MAX. */
bool ss_python_string_start(const struct ss_python_layout *layout,
			    const struct ss_memory *memory, uint64_t address, size_t max,
			    char *ret);

/*
 * Locks of CPython, 3.8 to 3.14: threading.Lock (_thread.lock) and threading.RLock
 * (_thread.RLock). Each object has a semaphore, on which threads wait; from 3.14 on each thread
 * that waits has one. An RLock records its owner. A Lock does not: its owner is known only if that is in a "with" statement of
 * this lock. The frame has the lock's __exit__ on its stack then, and its code says that the current
 * instruction is between the two.
 *
 * threading.Thread.join() waits for a Lock that a thread releases as it ends, from 3.13 on for an
 * event that is no object.
 *
 * It reads memory of the time since the capture: what it finds of a thread counts if the thread
 * has not run since.
 */

struct ss_python_lock {
	uint64_t address;
	uint64_t
		shown; /* identifies it to users: its semaphore, or from 3.14 on its mutex */
	uint64_t semaphore;
	bool recursive; /* RLock */
	bool certain; /* what the thread at the semaphore waits for, with or without an owner */
	/* RLock: the owner's id in its thread state; 0: none */
	uint64_t owner_id;
	/* Lock: the thread in whose with statement it provably is; or NULL */
	const struct ss_capture_thread *owner;
	const struct ss_capture_thread *waiter; /* one of those that wait for it */
	/* To 3.12: the thread whose end releases this Lock; or NULL */
	const struct ss_capture_thread *joined;
	/* From 3.13 on: it is no lock, but the end of the thread with that id; or 0 */
	uint64_t joined_id;
	bool several; /* threads are, or not all were searched: none of them counts */
};

/* Locks that threads wait for and that are locked; at most max. copied: memory of the moment of
   the capture. Returns how many. */
size_t ss_python_locks_find(const struct ss_runtime_process *process,
			    const struct ss_python_layout *layout,
			    const struct ss_memory *copied, struct ss_python_lock *ret,
			    size_t max);

/* Whether an RLock has the same owner now. */
bool ss_python_lock_has_same_owner(const struct ss_memory *fresh,
				   const struct ss_python_lock *lock);

/* Sets joined of the locks that the end of a thread releases. */
void ss_python_joins_find(const struct ss_memory *memory,
			  const struct ss_python_layout *layout, uint64_t state,
			  const struct ss_capture_thread *thread,
			  struct ss_python_lock *locks, size_t count);

/* Of the threads of a process, in bytes of tables: a fraction of a second. Hostile tables are
   large, and all of a thread's functions may have one. */
enum { SS_PYTHON_LOCKS_WORK = 1 << 26 };

/* Searches the frames of a thread state for with statements of these locks, and sets their
   owners. work_left: for all threads, SS_PYTHON_LOCKS_WORK at first; with none left no Lock has an
   owner. */
void ss_python_locks_search(const struct ss_memory *memory,
			    const struct ss_python_layout *layout, uint64_t state,
			    const struct ss_capture_thread *thread,
			    struct ss_python_lock *locks, size_t count,
			    uint64_t *work_left);

/*
 * Tasks of asyncio: which there are, what their coroutines await, and what that waits for. They
 * are objects of CPython's module _asyncio; those that are written in Python are only counted.
 * A task is returned only if a second reading of all its objects, after all tasks were read,
 * gives the same.
 */

enum {
	SS_PYTHON_TASK_READS = 1
			       << 26, /* of a process: seconds; some 200 for each task */
};

/* How much may still be read to find greenlets, in all interpreters of a process. */
struct ss_python_greenlets_left {
	size_t objects; /* of the garbage collector */
	size_t greenlets;
	size_t calls; /* of greenlets */
	size_t calls_again;
};

enum {
	SS_PYTHON_OBJECTS = 1 << 18,
	SS_PYTHON_GREENLETS = 1 << 14,
	SS_PYTHON_GREENLET_CALLS = 1 << 18,
};

struct ss_python_tasks_source {
	const struct ss_runtime_process *process;
	const struct ss_python_layout *layout;
	struct ss_python_codes *codes;
	uint64_t interpreter;
	const uint64_t *threads; /* its thread states */
	size_t thread_count;
	uint64_t *reads_left; /* for all interpreters: SS_PYTHON_TASK_READS at first */
	struct ss_python_greenlets_left *left; /* for ss_python_greenlets_read() */
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
