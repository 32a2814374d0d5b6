/*
 * A snapshot: threads that refer to stacks, unique stacks, modules. Filled by unwind/,
 * names added by symbolize/, read through the public accessors.
 */
#ifndef SS_DATA_SNAPSHOT_H
#define SS_DATA_SNAPSHOT_H

#include "arch/arch.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/facts.h"
#include "data/gather.h"
#include "data/module.h"
#include "data/pipeline.h"
#include "stacksnap.h"

/* Whether nothing is missing further out. */
static inline bool ss_end_is_outermost(enum ss_end end)
{
	return end == SS_END_ROOT || end == SS_END_GUESSED;
}

/* Whether the function belongs to the library of its language (Python's threading, Java's
   java.util, node's internal scripts), judged by its file or class, and not to the program.
   False for native frames. */
bool ss_frame_is_of_library(const struct ss_frame *frame);

/* What the fields of a frame do not say, and recordings rely on. For frames of a confined child. */
bool ss_frame_is_valid(const struct ss_frame *frame);

/* The part of a path of Python from the directory on that it imports from, with all packages; NULL: it
   is no such path. */
const char *ss_path_import(const char *path);
/* Whether native code executes the program of another language, or was called to do so: an
   interpreter, a virtual machine, and the C library below them. Extensions of the program are
   not. */
struct ss_languages {
	unsigned kinds; /* 1 << SS_FRAME_PYTHON and so on: those of the frames */
	bool go;	/* the process has goroutines */
};
struct ss_languages ss_task_languages(const struct ss_snapshot *snapshot,
				      const struct ss_task *task); /* of one stack */
struct ss_languages ss_snapshot_languages(const struct ss_snapshot *snapshot);
bool ss_frame_is_of_runtime(const struct ss_frame *frame,
			    const struct ss_languages *languages);
bool ss_symbol_is_of_go_runtime(const char *symbol);
/* The frame of the function that waits for a lock of the application: what it is built on tells
   nothing. Without one 0. */
size_t ss_task_find_lock(const struct ss_snapshot *snapshot, const struct ss_task *task);
/* Whose native code it is: the program's are its executable, libraries outside of the directories
   of the system, and generated code. */
enum ss_code { SS_CODE_PROGRAM, SS_CODE_LIBRARY, SS_CODE_C_LIBRARY };
enum ss_code ss_frame_code(const struct ss_process *process,
			   const struct ss_frame *frame);
/* Whether it is a function of a package of Go's library with which goroutines wait: sync, net, os and so
   on, by its name. */
bool ss_frame_is_of_go_library(const struct ss_frame *frame);
/* Whether a native function is of the C, C++ or Rust library, by its file or by its name: parts of these
   libraries are compiled into programs. */
bool ss_frame_is_of_c_library(const struct ss_frame *frame);
/* The same by the name alone. */
bool ss_symbol_is_of_c_library(const char *symbol);
/* Whether a task has no frame of the program, and is one that each program of its language has: a
   collector of garbage, a thread that compiles. languages: those of the snapshot. */
bool ss_task_is_of_runtime(const struct ss_snapshot *snapshot, const struct ss_task *task,
			   const struct ss_languages *languages);

struct ss_stack {
	struct ss_frame *frames; /* owned */
	size_t count;
	enum ss_end end;
};

/* The names of code that a JIT compiler generated in a process. */
struct ss_perf_map_file {
	struct ss_module_impl *file; /* a text file, not ELF; one reference */
	/* size of the text before any JIT frame was recorded: of these lines, the last
	   one for an address counts; later lines must agree with it. UINT64_MAX: the
	   whole text is that old */
	uint64_t stable_size;
};

/* The address of a futex that a thread waits on, and the program's object there. */
struct ss_lock_place {
	uint64_t address;
	int32_t module_index;	 /* -1: in no module's data */
	uint64_t offset;	 /* ELF virtual address in that module */
	const char *symbol;	 /* in strings; NULL: unknown */
	uint64_t symbol_address; /* its start in the process */
};

/* The last of enum ss_lock_type: what is read from outside may not be larger. */
enum { SS_LOCK_TYPE_LAST = SS_LOCK_JAVA_CLASS };

/* A lock of a runtime, of which its memory names the owner. */
struct ss_runtime_lock {
	enum ss_frame_kind kind; /* of its runtime */
	enum ss_lock_type type;
	uint64_t address;
	uint64_t start; /* its futexes are from here */
	uint64_t end;	/* to here */
	pid_t owner;	/* tid; 0: none, or not known */
	/* A lock of the application: the thread that waits for it, and the process that holds it; else 0 */
	pid_t waiter;
	pid_t process;
	/* The wait is one of a cycle that was there when the memory was read, after the
	   capture: the waiting thread may have looked since whether it can go on */
	bool cyclic;
};

/* A frame that refers to a lock that a thread waits for and that the frame's own thread
   may hold. */
struct ss_lock_reference {
	uint64_t futex;
	uint32_t thread; /* index; ascending */
	uint32_t frame; /* not counting inlined native calls; ascending for each thread */
	/* Here its function passed the lock's address to another one; call_offset is an
	   offset in the module, like lookup_offset of struct ss_frame. */
	bool in_code;
	/* The frame has the address of the futex itself, */
	bool exact;
	uint8_t calls; /* and has so often called a function with it, at most 2 */
	int32_t module_index;
	uint64_t call_offset;
	const char *call_file; /* NULL: unknown */
	uint32_t call_line;
};

struct ss_snapshot {
	const struct ss_arch *arch;
	struct ss_process process;
	/* all strings that pub structs point to, except those of modules */
	struct ss_intern *strings;
	SS_VECTOR(struct ss_task) tasks[SS_TASK_KINDS]; /* stack_id indexes stacks */
	size_t not_shown; /* threads behind the others: see ss_snapshot_select() */
	struct ss_task_coverage coverage[SS_TASK_KINDS]; /* problem in strings */
	struct ss_regs crash_regs; /* of the thread process.crash.tid */
	SS_VECTOR(struct ss_stack) stacks;
	struct ss_hash stack_ids;		    /* indexes into stacks */
	SS_VECTOR(struct ss_module_impl *) modules; /* one reference each */
	SS_VECTOR(struct ss_perf_map_file) perf_maps;
	/* by stack: index of its process's perf map; out of range: none. NULL: the
	   first one for all stacks. Borrowed. */
	const uint32_t *perf_map_of;
	struct ss_facts *facts; /* for diagnose/; one reference; or NULL */
	SS_VECTOR(struct ss_lock_reference) references;
	SS_VECTOR(struct ss_lock_place) places; /* ascending by address, each once */
	struct ss_wait *waits;		   /* owned; what the waits of threads point to */
	struct ss_descriptor *descriptors; /* owned; one for each of facts->fds */
	size_t descriptor_count;
	SS_VECTOR(void *) blocks;		    /* of ss_snapshot_alloc() */
	SS_VECTOR(struct ss_runtime_info) runtimes; /* strings in strings */
	SS_VECTOR(struct ss_runtime_lock) runtime_locks;
	/* See ss_snapshot_plan_runtimes(); step_count 0: none. */
	struct ss_gather_plan runtime_plan;
	bool runtime_plan_many; /* it is for later captures, too */
	SS_VECTOR(struct ss_deadlock) deadlocks;
	SS_VECTOR(struct ss_blocker) blockers;
	SS_VECTOR(struct ss_application_lock) application_locks;
	/* Of related processes; owned, and known after ss_snapshot_add_related(). Each
	   has this one as its first. */
	SS_VECTOR(struct ss_snapshot *) others;
	const struct ss_snapshot *first; /* NULL unless this is a related process */
	SS_VECTOR(struct ss_cycle) cycles;
	char *problem; /* what failed in its interpretation, a line; or NULL */
};

/* A new task of that kind, which does nothing that is known; its id and tid are not set. NULL without
   memory. */
struct ss_task *ss_snapshot_add_task(struct ss_snapshot *snapshot,
				     enum ss_task_kind kind);

/* An empty snapshot, or NULL without memory. Freed by ss_snapshot_free(). */
struct ss_snapshot *ss_snapshot_new(void);

/*
 * Finds the stack with these frames (the same pc, module, signal_frame and source; of a
 * runtime the same function, file and line) and this end, or adds a copy of it. Compares frames, not only hashes. False without memory.
 */
bool ss_snapshot_add_stack(struct ss_snapshot *snapshot, const struct ss_frame *frames,
			   size_t count, enum ss_end end, uint32_t *ret);

/* The snapshots of the requested process (index 0) and its related processes, given any
   of them. NULL: index is too large. */
const struct ss_snapshot *ss_snapshot_related(const struct ss_snapshot *snapshot,
					      size_t index);

/* Memory for count elements, zeroed, that lives as long as the snapshot. NULL without
   memory. */
void *ss_snapshot_alloc(struct ss_snapshot *snapshot, size_t count, size_t size);

/*
 * Keeps the threads that pass the filter, by their name or that of the kernel, and puts the others
 * behind them, where only deadlocks, blockers, suspects and chains refer to them. For a snapshot that
 * is diagnosed. False without memory, with nothing changed.
 */
bool ss_snapshot_select(struct ss_snapshot *snapshot, ss_thread_filter *filter,
			void *data);

/* Tasks that are in a cycle, as far as cycle_next leads back to them; others are in none. False
   without memory. */
bool ss_snapshot_check_task_cycles(struct ss_snapshot *snapshot);

/* Sorts places and removes duplicates. */
void ss_snapshot_sort_places(struct ss_snapshot *snapshot);

/* The place at that address, or NULL. */
const struct ss_lock_place *ss_snapshot_find_place(const struct ss_snapshot *snapshot,
						   uint64_t address);

/* Updates frame_count of every thread after stacks[].frames and count were replaced by
   malloc'd arrays (and the old ones freed). */
void ss_snapshot_recount(struct ss_snapshot *snapshot);

SS_DEFINE_CLEANUP(struct ss_snapshot, ss_snapshot, ss_snapshot_free)

/*
 * Places in files of builds, as a snapshot that can be named.
 */

/* A place in the file of a build: an ELF virtual address within an instruction. */
struct ss_place {
	const char *build_id; /* lower-case hexadecimal */
	const char *path;     /* where its file may be found; or NULL */
	uint64_t offset;
};

/*
 * Makes a snapshot of places, to be named by ss_snapshot_symbolize(): its thread with index i
 * has the frame of place i, and then the calls inlined there. Errors: INVALID (a build-id; too
 * many), NO_MEMORY.
 */
struct ss_error *ss_snapshot_new_places(const struct ss_place *places, size_t count,
					struct ss_snapshot **ret);

#endif
