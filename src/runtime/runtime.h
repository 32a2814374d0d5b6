/*
 * Runtimes of languages, whose calls are records in memory and not (or not only) frames of
 * the native stack: CPython, HotSpot, V8. Each is one constant struct. It recognises itself in a process,
 * finds the calls of a thread, and says which native frames they stand for. It interprets
 * untrusted memory and never reads a live process.
 *
 * The first rule is never to be wrong: what does not validate, or may belong to another
 * moment than the thread's native stack, ends in native frames and a reason.
 *
 * To add one (Ruby, PHP, .NET, BEAM):
 *  1. a value of enum ss_frame_kind in stacksnap.h, its name in data/snapshot.c and in
 *     stacksnap-json(5), its colour in report/html.c
 *  2. a folder NAME here, with its struct ss_runtime in NAME/NAME.c, and a line in the table of
 *     runtimes.c. It uses no other runtime's folder
 *  3. open(): recognise it by module, symbols and version. An unknown version sets
 *     problem, and nothing is decoded. Offsets of a version belong in a table, with the
 *     source that they were taken from
 *  4. walk(): read through thread->memory only, check each pointer, cap each length, bound
 *     each list, and detect cycles
 *     In recordings, too, frames of runtimes come from walk(): they travel as kind,
 *     function, file and line, and the native frame for which they stand is marked
 *     (data/recording_writer.c); nothing is to be done for that but the kind's number in
 *     stacksnap-recording(5) and in tests/e2e/recording.py
 *  5. step(): if it has code without unwind tables that does not keep frame pointers
 *  6. plan(): what must be copied together with the stacks of threads that run
 *  7. tests: a fuzz program for its decoder, a test that compares it with a dump of the
 *     runtime itself on the same paused moment, and a program nobody here wrote
 */
#ifndef SS_RUNTIME_RUNTIME_H
#define SS_RUNTIME_RUNTIME_H

#include "base/intern.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/gather.h"
#include "data/memory.h"
#include "data/session.h"
#include "elf/tables.h"
#include "stacksnap.h"

/* What a runtime knows of the process. */
struct ss_runtime_process {
	const struct ss_capture *capture;
	const struct ss_session *session;
	/* What one runtime keeps for the next capture of the session */
	struct ss_session_slot *kept;
	struct ss_session_slot *symbols; /* see ss_module_symbols_find() */
	struct ss_intern *strings;	 /* for everything that it returns */
	/* All memory that can be had, at any moment since the capture. */
	const struct ss_memory *memory;
	const struct ss_memory *fresh; /* the same as it is now, read again each time */
	/* The same, read after all that was read of memory so far: for a proof that it has not
	   changed */
	const struct ss_memory *after;
	/* Has after read anew from now on; NULL: all memory is of one moment */
	void (*forget)(const struct ss_memory *after);
	/* Has pages of memory or after read together, which visit would have read one by one: see
	   ss_late_memory_read_together() */
	void (*read_together)(const struct ss_memory *memory, void (*visit)(void *data),
			      void *data);
	const bool *
		limited; /* whether a limit of reading was reached; NULL: there is none */
	bool recording;	 /* one of many captures: no owners of locks are needed */
	struct ss_session_slot *python_codes; /* of runtime/python/python.h */
	/* Reads many pieces as they are now; NULL: nothing is kept for later captures */
	ss_memory_read_ranges_function *read_ranges;
	void *read_data;
};

/* A native frame. */
struct ss_native_frame {
	uint64_t pc;
	uint64_t sp; /* its locals are from here up to sp of the next one */
	uint64_t fp; /* the frame pointer register; 0: not known */
	bool call;   /* pc is a return address */
	bool guess;  /* found by a plausible return address */
};

/* A frame to be unwound. */
struct ss_runtime_frame {
	const struct ss_capture_thread *thread;
	const struct ss_memory *stack; /* memory of the moment of the registers */
	bool call;		       /* pc is a return address */
	struct ss_regs *regs;	       /* after a step: those of the caller */
};

enum ss_runtime_step {
	SS_RUNTIME_STEP_NONE, /* pc is not in its code, or it does not know how */
	SS_RUNTIME_STEP_OK,   /* the registers are the caller's now */
	SS_RUNTIME_STEP_ROOT, /* this is the outermost frame */
};

/* A call of a function of the runtime's language. Strings in strings. */
struct ss_runtime_call {
	const char *function;
	const char *file; /* or NULL */
	uint32_t line;	  /* 0: not known */
	uint32_t native;  /* index of the native frame that executes it */
	bool inlined;	  /* into the next call, which has the same native frame */
	/* It is the name of the native frame itself, which stays: a stub, a builtin. There is
	   one, and start is where its code begins. */
	bool stub;
	uint64_t start;
	enum ss_frame_kind kind; /* of its runtime; set by runtimes.c */
};

/* A thread to be walked. */
struct ss_runtime_thread {
	const struct ss_capture_thread *thread;
	const struct ss_native_frame *frames; /* innermost first */
	size_t count;
	bool complete; /* the last frame is the outermost */
	/* Memory of the moment to which the native frames belong */
	const struct ss_memory *memory;
	/* What the walk returns: the calls, innermost first, ascending by native */
	SS_VECTOR(struct ss_runtime_call) calls;
	/* Native frames from this index on are not the callers of the ones before: they are
	   of other stacks, which take turns in the same memory. 0: there are none. */
	size_t end;
	/* Why native frames are shown instead, a constant; or NULL. Then calls are ignored. */
	const char *problem;
	bool missing; /* memory was not copied: a plan may help */
};

/* A lock of the runtime itself. */
struct ss_runtime_found_lock {
	enum ss_lock_type type; /* THREAD: the owner ends */
	uint64_t address;
	uint64_t start;			       /* its futexes are from here */
	uint64_t end;			       /* to here */
	const struct ss_capture_thread *owner; /* NULL: none, or not known */
	/* The only thread that can wait here, as the runtime records; NULL: any thread can */
	const struct ss_capture_thread *waiter;
	bool late;	 /* its memory was read after the capture */
	bool lasting;	 /* its owner cannot change as long as the waiter waits */
	bool only_owned; /* without a proven owner nothing is known of it */
	/* The waiter waits in a cycle, which was read twice; so it did in the capture. It need not
	   have slept all the time. */
	bool cyclic;
	bool waited; /* the waiter waited here in the capture, too, even if it has run since */
};

enum { SS_RUNTIME_LOCKS_MAX = 1024 };

/* A task that the runtime itself schedules on threads. Strings in strings. */
struct ss_runtime_task {
	uint64_t address;
	const char *name;
	enum ss_task_status status;
	const char *wait_reason; /* or NULL */
	/* In calls and awaited of struct ss_runtime_tasks */
	size_t first_call; /* innermost first */
	size_t call_count;
	size_t first_awaited;
	size_t awaited_count;
	bool awaits_all; /* it continues after all of awaited */
	/* See struct ss_task */
	const char *object;
	bool endless;
	bool greenlet;	      /* of Python: no event loop runs it */
	bool loop_empty;      /* its event loop waits for calls from other threads only */
	uint64_t loop_thread; /* id of the thread of its event loop; 0: not known */
	const struct ss_capture_thread *thread; /* the same thread, or NULL */
};

struct ss_runtime_tasks {
	SS_VECTOR(struct ss_runtime_task) items;
	SS_VECTOR(struct ss_runtime_call) calls;
	SS_VECTOR(uint64_t) awaited; /* addresses of tasks */
	size_t changed;		     /* while they were read; they are not in items */
	size_t unread;	     /* that are not valid, or of a kind that is not known */
	const char *problem; /* why they are not read, a constant; or NULL */
	const char *greenlets_problem; /* why some may be missing */
};

enum { SS_RUNTIME_NAME_MAX = 255 }; /* characters; the others are left out */

/* What the program calls a thread. */
struct ss_runtime_name {
	const struct ss_capture_thread *thread;
	const char *name; /* in strings; NULL: only the kernel's is known */
	uint64_t id;	  /* what the runtime prints; 0: not known */
	uint8_t priority; /* as in struct ss_task */
	bool daemon;
};

struct ss_runtime_names {
	SS_VECTOR(struct ss_runtime_name) items;
};

/* Threads to be copied together with their stacks. */
struct ss_runtime_wanted {
	const struct ss_capture_thread *const *threads;
	size_t count;
	bool all; /* for many captures: the roots of all threads that there are */
	/* Also those that are not known yet, as far as they can be found */
	bool others;
};

struct ss_runtime {
	enum ss_frame_kind kind;
	/* What it reads late is close together: several pages are read at once, as each reading waits
	   for the parent process. */
	bool ahead;
	/* Returns its state in *ret, or NULL if the process does not have this runtime. Sets
	   info->version and info->problem. False without memory. */
	bool (*open)(const struct ss_runtime_process *process,
		     struct ss_runtime_info *info, void **ret);
	void (*close)(void *state);
	/* Steps from a frame in code that the runtime has made (interpreter, JIT, stubs) to
	   its caller. Tried where no tables of ELF files or registered ones cover the pc, and
	   before frame pointers. Registers of the caller that are not known must be forgotten.
	   All frames of a thread are stepped before it is walked; the registers that walk()
	   needs again are in struct ss_native_frame. NULL: the others suffice. */
	enum ss_runtime_step (*step)(void *state, struct ss_runtime_frame *frame);
	/* Finds the calls of a thread; it has none if it is not one of the runtime's. False
	   without memory. */
	bool (*walk)(void *state, struct ss_runtime_thread *thread);
	/* Whether the code at pc is of the runtime, and of nothing else. Native frames there that
	   are between two of its calls lead from one to the other, and are left out as those
	   that execute calls. NULL: none are. */
	bool (*is_own_code)(void *state, uint64_t pc);
	/* Of a thread whose calls are known from the previous capture of a series, since when it has not
	   run: what a walk would set for locks(). False: it is to be walked. NULL: nothing. */
	bool (*skip)(void *state, const struct ss_capture_thread *thread);
	/* Finds the locks of the runtime that have an owner: at most SS_RUNTIME_LOCKS_MAX.
	   copied: memory of the moment of the capture. Returns how many. NULL: none. */
	size_t (*locks)(void *state, const struct ss_memory *copied,
			struct ss_runtime_found_lock *ret);
	/* Finds its tasks. False without memory. NULL: it has none. */
	bool (*tasks)(void *state, struct ss_runtime_tasks *ret);
	/* Finds the names of threads. What it reads is read twice: threads get others and end
	   meanwhile. False without memory. NULL: it has none but the kernel's. */
	bool (*names)(void *state, struct ss_runtime_names *ret);
	/* Whether a signal can only end the process: it executes no code of the program. NULL: not
	   known. Asked once, after all else. */
	bool (*no_signal_code)(void *state);
	/* Plans to copy the calls of these threads in the freeze. False: it cannot. NULL: it
	   needs no other memory of the moment than stacks. */
	bool (*plan)(void *state, const struct ss_runtime_wanted *wanted,
		     struct ss_gather_plan *ret);
};

/* Why nothing of a runtime is decoded, with its version, as another one may be known. NULL without
   memory. */
const char *ss_runtime_describe_problem(const struct ss_runtime_process *process,
					const char *version, const char *why);

extern const struct ss_runtime ss_runtime_python;  /* CPython */
extern const struct ss_runtime ss_runtime_v8;	   /* V8, in node */
extern const struct ss_runtime ss_runtime_hotspot; /* Java: HotSpot */
/* Those of which nothing is decoded: it only names them */
extern const struct ss_runtime ss_runtime_unsupported;

/*
 * Symbols of a module by which a runtime is recognised. A session keeps what it found, also that
 * there are none: a recording asks for the same ones at each tick.
 */

/*
 * Finds symbols of a module of the capture, by index. names: a constant, of which the module must
 * have the first one, exported or, unless section is NULL, in a section of its own with that name.
 * Fills ret, whose addresses are those in the file, and *ret_bias. False: it is not there, or its
 * file must not be read.
 */
bool ss_module_symbols_find(const struct ss_runtime_process *process, int32_t index,
			    const char *const *names, size_t count, const char *section,
			    struct ss_elf_symbol *ret, uint64_t *ret_bias);

/* Finds a section by name: its address in the process, and its size. False: the same. */
bool ss_module_section_find(const struct ss_runtime_process *process, int32_t index,
			    const char *name, struct ss_elf_symbol *ret);

#endif
