/*
 * stacksnap - the stacks of all threads of a running process
 *
 * The steps: open a target; capture it (threads are stopped for microseconds, their
 * registers and stacks copied); unwind the capture into a snapshot; symbolize the
 * snapshot; diagnose what its threads wait for; read it; free everything.
 *
 * Conventions. A function that can fail returns a struct ss_error *: NULL is success,
 * and on failure *ret is unchanged. The caller owns what it receives through a "ret"
 * parameter, until the matching free or close function; these accept NULL. options may be
 * NULL for the defaults; otherwise set its member size. Target addresses are uint64_t.
 * Times are in nanoseconds, sizes in bytes, unless the name says otherwise.
 *
 * A thread that vanished, a stack that ends early, and an unknown name are not errors:
 * they are data, each with its reason.
 *
 * Strings are NUL-terminated. Names of processes, threads, files and functions come from
 * the target and may contain any other byte: escape them before you print them.
 *
 * Threads: one OS thread at a time uses a target, a session or a cache; many may read captures
 * and snapshots. The library never prints, never exits, installs no signal handler and
 * has no mutable global state. A capture stops threads in a short-lived thread of its own,
 * so that the kernel releases the target however that thread ends.
 *
 * Structs that the library returns grow only at their end. Reach them through the pointers
 * that the accessors return; never copy arrays of them.
 */
#ifndef STACKSNAP_H
#define STACKSNAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SS_API __attribute__((visibility("default")))

struct ss_error;
struct ss_target;
struct ss_capture;
struct ss_session;
struct ss_cache;
struct ss_snapshot;

/* Errors ---------------------------------------------------------------- */

enum ss_error_code {
	SS_ERROR_INVALID = 1, /* an argument is invalid */
	SS_ERROR_NO_MEMORY,
	SS_ERROR_SYSTEM,	/* another failure of a system call */
	SS_ERROR_NO_PROCESS,	/* there is no such process, or it has ended */
	SS_ERROR_KERNEL_THREAD, /* a kernel thread has no user-space stack */
	SS_ERROR_SELF,		/* a process cannot stop itself */
	SS_ERROR_ZOMBIE,	/* it has ended and not been reaped */
	SS_ERROR_TRACED,	/* it has another tracer */
	SS_ERROR_DENIED,	/* Yama, another user, not dumpable, no capability */
	SS_ERROR_UNSUPPORTED,	/* for example a 32-bit process */
	SS_ERROR_CHANGED,	/* it called execve() during each attempt */
	SS_ERROR_INTERRUPTED,	/* the stop function of the caller ended it */
};

/* The kind of error. error must not be NULL, here and below. */
SS_API enum ss_error_code ss_error_code(const struct ss_error *error);

/* One line without a newline that names the cause. Valid as long as error. */
SS_API const char *ss_error_message(const struct ss_error *error);

/* One line that says what to do, or NULL. Valid as long as error. */
SS_API const char *ss_error_remedy(const struct ss_error *error);

SS_API void ss_error_free(struct ss_error *error);

/* "MAJOR.MINOR.PATCH" of the running library. A constant. */
SS_API const char *ss_version(void);

/* Target ---------------------------------------------------------------- */

/*
 * Opens the process with this pid; the id of a thread selects its process. Checks that it
 * may be read, and stops nothing. Stores its start time, so that a reused pid is detected.
 * Errors: INVALID, NO_PROCESS, KERNEL_THREAD, SELF, ZOMBIE, DENIED, UNSUPPORTED,
 * NO_MEMORY, SYSTEM (for example: /proc is not mounted).
 */
SS_API struct ss_error *ss_target_open(pid_t pid, struct ss_target **ret);

/* Captures of the target stay valid. */
SS_API void ss_target_close(struct ss_target *target);

/*
 * The effective user and group id of the process, in the user namespace of the caller.
 * A program that interprets a capture needs no other privileges than theirs. Errors:
 * NO_PROCESS.
 */
SS_API struct ss_error *ss_target_owner(const struct ss_target *target, uid_t *ret_uid,
					gid_t *ret_gid);

/*
 * A variable of the environment with which the process was started, to be freed; NULL: it has
 * none of that name, with fewer than 4096 bytes, or its memory does not answer within half a
 * second. A child process reads it.
 */
SS_API char *ss_target_read_variable(const struct ss_target *target, const char *name);

/* Processes --------------------------------------------------------------- */

struct ss_process_list;

struct ss_listed_process {
	pid_t pid;
	pid_t parent;		  /* 0: none in our pid namespace */
	const char *name;	  /* comm of the main thread */
	const char *executable;	  /* path as the process sees it; NULL: may not be read */
	const char *command_line; /* see ss_process_list_read_commands(), or NULL */
};

/* Returns whether to list a process, whose command_line is NULL. */
typedef bool ss_process_filter(void *data, const struct ss_listed_process *process);

/*
 * Lists the processes that filter selects, by ascending pid, without kernel threads,
 * zombies and the caller. Errors: NO_MEMORY, SYSTEM (/proc is not mounted).
 */
SS_API struct ss_error *ss_process_list_new(ss_process_filter *filter, void *data,
					    struct ss_process_list **ret);
SS_API void ss_process_list_free(struct ss_process_list *list);
SS_API size_t ss_process_list_count(const struct ss_process_list *list);
/* Valid as long as the list. index must be below the count. */
SS_API const struct ss_listed_process *
ss_process_list_at(const struct ss_process_list *list, size_t index);

/*
 * Whether a process is in the cgroup with that path, or below it. The path is that of
 * cgroups(7), relative to the root of a hierarchy: "/system.slice/cron.service". Of version 1
 * any hierarchy counts. False if that may not be read.
 */
SS_API bool ss_process_is_in_cgroup(pid_t pid, const char *path);

/*
 * Sets command_line: the arguments, separated by spaces, at most 4 KiB. It stays NULL if the
 * process has none, or if its memory does not answer within half a second; after three such
 * processes the rest is skipped. A child process reads them.
 */
SS_API void ss_process_list_read_commands(struct ss_process_list *list);

/* Capture --------------------------------------------------------------- */

enum ss_mode {
	SS_MODE_DEFAULT = 0, /* AUTO */
	SS_MODE_STOP,	     /* stop all threads, copy, release */
	SS_MODE_LIVE,	     /* unwind with libunwind while stopped: slow */
	SS_MODE_NO_STOP,     /* stop nothing; running threads have no stack */
	SS_MODE_AUTO,	     /* stop running threads only; see ss_capture_complete() */
	SS_MODE_CORE, /* from a core file: see ss_capture_read_core(); cannot be requested */
};

/*
 * Returns whether to capture a thread. The capturing thread calls it before it stops
 * anything. name is the thread's comm, state the letter of /proc/TID/stat. Other threads
 * are neither stopped nor listed.
 */
typedef bool ss_thread_filter(void *data, pid_t tid, const char *name, char state);

/*
 * A gather plan says which memory to copy while the threads stand still, in addition to
 * their stacks. It is plain data without pointers, so a process without privileges can
 * make it. Steps are executed in order. Each copies nodes of `size` bytes, at
 *
 *	address = (value & mask) + offset
 *
 * base says what value is. If value & mask is 0, there is no node. With max_nodes above 1
 * the node is the first of a linked list: the next value is read at `next` in the node,
 * and the same mask and offset apply. A list ends after max_nodes nodes, at 0, at
 * unreadable memory, and at a cycle.
 */
enum ss_gather_base {
	SS_GATHER_ADDRESS = 0, /* address */
	SS_GATHER_REGISTER,    /* of each thread: the register with DWARF number parent */
	SS_GATHER_THREAD_POINTER, /* of each thread: pthread_self() of most C libraries */
	SS_GATHER_NODE,	   /* of each node of step parent: the address of that node */
	SS_GATHER_POINTER, /* of each node of step parent: the pointer at field in it */
	SS_GATHER_ROOT,	   /* each root of the plan: its address */
};

enum {
	SS_GATHER_STEPS_MAX = 32,
	SS_GATHER_ROOTS_MAX = 512,
	SS_GATHER_COPY_MAX = 4 << 20,  /* bytes of a node */
	SS_GATHER_CHECK_MAX = 512,     /* bytes of a node that are read again */
	SS_GATHER_NODES_MAX = 1 << 20, /* of a whole plan, as the next two */
	SS_GATHER_BYTES_MAX = 128 << 20,
	SS_GATHER_READS_MAX = 1 << 15,
};

/* Fields that a base does not use must be 0. field, count_field and next are offsets into
   the copy of a node, and must lie within it. */
struct ss_gather_step {
	uint32_t base;	 /* enum ss_gather_base */
	uint32_t parent; /* an earlier step, or a register */
	uint64_t address;
	uint64_t mask; /* bits of value to keep; tags of a pointer are cleared with it */
	int64_t offset;
	uint32_t size; /* bytes to copy, at least 1 */
	uint32_t field;
	uint32_t stride; /* POINTER: more pointers follow, one every stride bytes, up to
			    the end of what was copied of the parent; 0: only one */
	uint32_t
		count_size; /* 4 or 8: the parent has a count of that size at count_field,
				and at most count * element bytes are copied; 0: no */
	uint32_t count_field;
	uint32_t element;
	uint32_t max_nodes; /* of one list; 1: not a list */
	uint32_t next;
	uint32_t end_size; /* 8: the parent has an address at end_field, at which the copy
			      ends at the latest; 0: no */
	uint32_t end_field;
	uint32_t check_size; /* so many first bytes of each node are read again after the
				last step, to tell nodes that changed meanwhile; 0: none */
	uint32_t reserved;
};

/* Memory of a thread that was known before: many addresses for one step. A recording copies
   those of the threads that have run. */
struct ss_gather_root {
	uint64_t address;
	uint64_t thread_pointer; /* of its thread */
	int32_t tid;		 /* likewise; 0: not known */
	uint32_t reserved;
};

/* If a limit is reached, the plan ends early; what was copied until then is kept. */
struct ss_gather_plan {
	uint32_t size; /* sizeof(struct ss_gather_plan) */
	uint32_t step_count;
	uint32_t max_nodes; /* of all steps */
	uint32_t max_bytes;
	uint32_t max_reads; /* system calls; each reads up to 1,024 nodes */
	uint32_t root_count;
	struct ss_gather_step steps[SS_GATHER_STEPS_MAX];
	struct ss_gather_root roots[SS_GATHER_ROOTS_MAX];
};

struct ss_capture_options {
	size_t size; /* sizeof(struct ss_capture_options) */
	enum ss_mode mode;
	unsigned timeout_ms;	  /* limit for the whole freeze; 0: 1000 */
	size_t max_stack;	  /* bytes to copy from one stack; 0: 256 KiB */
	size_t max_total;	  /* bytes to copy from all stacks; 0: 256 MiB */
	unsigned max_frames;	  /* LIVE only: frames per thread; 0: no limit */
	ss_thread_filter *filter; /* NULL: all threads */
	void *filter_data;
	bool no_waits; /* skip what only ss_snapshot_diagnose() needs: locks and file
			  descriptors */
	const struct ss_gather_plan *plan; /* more memory to copy; NULL: none */
	/* Bytes to copy from one stack whose end is known, because it has a mapping of its
	   own, or was needed, see ss_capture_extend(); 0: 8 MiB, or max_stack if that is
	   given. */
	size_t max_deep;
	/* An earlier capture of this target, or NULL: the files of modules that are mapped
	   as they were then are not opened again. The captures share these modules: take
	   the later one before the earlier one is shared between threads. Unless mode is
	   STOP or LIVE, threads that have not run since the earlier one keep its registers;
	   from the second capture on, files of the threads stay open until the target is
	   closed, at most half of RLIMIT_NOFILE. */
	const struct ss_capture *previous;
	/* AUTO: threads to stop although they are blocked, in ascending order: those that
	   needed ss_capture_complete() in an earlier capture. */
	const pid_t *stop;
	size_t stop_count;
	/* Without previous: an earlier capture of this target, or NULL, of which nothing but the
	   modules is shared, as with previous. It is for a capture that replaces that one. */
	const struct ss_capture *modules;
};

/*
 * Captures the threads of the target, their registers and stacks, and its modules. The
 * capture keeps the files of modules open, but no other resource of the process.
 * Errors: INVALID, NO_PROCESS, DENIED, TRACED, CHANGED, UNSUPPORTED, NO_MEMORY, SYSTEM.
 */
SS_API struct ss_error *ss_capture_take(struct ss_target *target,
					const struct ss_capture_options *options,
					struct ss_capture **ret);

/*
 * Completes a capture that was taken in mode AUTO: stops these threads briefly, and
 * adds the registers that were unknown. If a thread has run since the capture, its
 * stack is replaced too, and the capture is no longer atomic. Ids that are not in the
 * capture are ignored; a thread that cannot be stopped is left unchanged. Pass the
 * options of the capture. Call it before the capture is shared, and unwind the capture
 * (again) afterwards; earlier snapshots do not change. Errors: those of
 * ss_capture_take(); the capture is then unchanged.
 */
SS_API struct ss_error *ss_capture_complete(struct ss_capture *capture,
					    struct ss_target *target,
					    const struct ss_capture_options *options,
					    const pid_t *tids, size_t count);

/* Where a stack continues beyond its copy: the thread's tid and missing. */
struct ss_stack_request {
	pid_t tid;
	uint64_t address;
};

/*
 * Reads memory of the target after the capture, without stopping a thread: what unwinding
 * needs for the frames of runtimes. Its functions have the types that struct ss_unwind_options
 * wants, with the reader as data. Memory that is not present is not read, and the total is
 * limited. Capture and target must outlive the reader. Errors: NO_PROCESS, NO_MEMORY.
 */
struct ss_late_reader;
SS_API struct ss_error *ss_late_reader_new(const struct ss_capture *capture,
					   struct ss_target *target,
					   struct ss_late_reader **ret);
SS_API void ss_late_reader_free(struct ss_late_reader *reader);
SS_API size_t ss_late_reader_read(void *reader, uint64_t address, void *bytes,
				  size_t size);
SS_API bool ss_late_reader_check(void *reader, pid_t tid);
/* Replaces the limits of what is read in all: bytes, and time from now. no_swap: pages in swap
   are not read, which would bring them back into memory. */
SS_API void ss_late_reader_set_limits(struct ss_late_reader *reader, uint64_t max_bytes,
				      unsigned timeout_ms, bool no_swap);

/*
 * Reads copied memory: stacks, and what a gather plan copied. Returns how many of the size
 * bytes at address are in the capture, as a prefix; 0: none.
 */
SS_API size_t ss_capture_read(const struct ss_capture *capture, uint64_t address,
			      void *bytes, size_t size);

/* Makes a plan of what else to copy, given what the capture has so far. False: nothing. */
typedef bool ss_core_planner(void *data, const struct ss_capture *capture,
			     struct ss_gather_plan *ret);

struct ss_core_options {
	size_t size; /* sizeof(struct ss_core_options) */
	const char
		*program; /* path of the program, used if it has the build-id of the one
				in the core file; NULL: where it was */
	size_t max_stack; /* bytes to copy from one stack; 0: 16 MiB */
	size_t max_total; /* bytes to copy from all stacks; 0: 256 MiB */
	bool no_waits;	  /* skip what only ss_snapshot_diagnose() needs */
	ss_thread_filter *filter; /* NULL: all threads; only the main thread has a name */
	void *filter_data;
	ss_core_planner *planner; /* NULL: none */
	void *planner_data;
	/* Reads memory that the file lacks, for the plan; NULL: there is none. Returns the length
	   of the prefix that was read. */
	size_t (*read)(void *data, uint64_t address, void *bytes, size_t size);
	void *read_data;
};

/*
 * Makes a capture from a core file, in mode SS_MODE_CORE, and searches the files of its
 * modules as the options of the session say. The file and everything in it is untrusted
 * input: call it in ss_sandbox_run(). It may be truncated. fd must allow pread(2); the
 * library owns it, also after an error. Errors: INVALID (no core file), UNSUPPORTED (its
 * processor), NO_MEMORY.
 */
SS_API struct ss_error *ss_capture_read_core(int fd, struct ss_session *session,
					     const struct ss_core_options *options,
					     struct ss_capture **ret);

/* Snapshots of the capture stay valid. */
SS_API void ss_capture_free(struct ss_capture *capture);

/* Session --------------------------------------------------------------- */

/*
 * Called for a file that is not on this machine: the debug file of a build (debug), or the
 * module itself. build_id is in lower-case hexadecimal. Returns a file descriptor open for
 * reading, which the library then owns, or -1. A file of another build is not used.
 */
typedef int ss_file_finder(void *data, const char *build_id, bool debug);

/*
 * Called for a file that this process may not open: errno is EACCES, or EPERM in a sandbox that
 * may open none. in_sysroot: path is below the sysroot. Returns a file descriptor open for
 * reading, which the library then owns, or -1. A process with more rights should ask another
 * sandboxed child, which has read nothing else, whether ss_file_matches(): then it gives away
 * no file that was not known before.
 */
typedef int ss_file_opener(void *data, const char *path, bool in_sysroot,
			   const char *proof);

/* Whether the file is what proof of a ss_file_opener says, by its build-id or its checksum.
   The file and proof are untrusted input. fd stays open. */
SS_API bool ss_file_matches(int fd, const char *proof);

struct ss_session_options {
	size_t size;	       /* sizeof(struct ss_session_options) */
	const char *debug_dir; /* of separate debug files; NULL: /usr/lib/debug */
	const char *sysroot;   /* search files below here first; or NULL */
	/* For a caller that interprets in a child process: the session stores here the
	   index of the module (for ss_snapshot_module()) that it is about to read. In
	   shared memory it tells the parent which module was fatal. Large debug sections
	   are then mapped, not read: if their file is truncated meanwhile, SIGBUS kills the
	   child. Or NULL. */
	volatile int32_t *module_at;
	const int32_t *skip_modules; /* indexes of modules that are not read */
	size_t skip_count;
	ss_file_finder *find_file; /* or NULL */
	void *find_data;
	ss_file_opener *open_file; /* NULL: such files are not read */
	void *open_data;
};

/*
 * A cache that lasts from one capture to the next: files of modules, unwind tables,
 * symbol indexes. The strings of options are copied, the arrays are not. The sysroot is
 * opened at once. Errors: NO_MEMORY, SYSTEM, DENIED (the sysroot).
 */
SS_API struct ss_error *ss_session_new(const struct ss_session_options *options,
				       struct ss_session **ret);

/* Snapshots stay valid. */
SS_API void ss_session_free(struct ss_session *session);

/* Cache of names --------------------------------------------------------- */

struct ss_cache_options {
	size_t size;	       /* sizeof(struct ss_cache_options) */
	const char *directory; /* NULL: stacksnap in $XDG_CACHE_HOME, or in ~/.cache */
	uint64_t max_bytes;    /* of all files; 0: 256 MiB. Then the oldest are removed */
};

/*
 * Opens a directory that keeps what ss_snapshot_symbolize() finds, for later processes:
 * for each file of a module, names, source lines and inlined calls of the addresses that
 * were looked up. A missing directory is created. Nothing is cached without this call.
 * Errors: DENIED (the directory, or the one that contains it, belongs to another user, or
 * others may write to it), SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_cache_open(const struct ss_cache_options *options,
				      struct ss_cache **ret);
SS_API void ss_cache_close(struct ss_cache *cache);

/* Unwinding and symbolizing --------------------------------------------- */

/*
 * Copies a prefix of the size bytes at an address of the process and returns its length; 0:
 * nothing is readable there.
 */
typedef size_t ss_memory_read_function(void *data, uint64_t address, void *bytes,
				       size_t size);

/* A piece of memory: done is the length of the prefix that was copied to bytes. */
struct ss_memory_range {
	uint64_t address;
	void *bytes;
	size_t size;
	size_t done;
};

/* Copies pieces of memory in their order, each as ss_memory_read_function does; at most
   SS_MEMORY_RANGES_MAX, and SS_MEMORY_RANGES_BYTES in all. */
typedef void ss_memory_read_ranges_function(void *data, struct ss_memory_range *ranges,
					    size_t count);
enum { SS_MEMORY_RANGES_MAX = 1024, SS_MEMORY_RANGES_BYTES = 1 << 20 };

/* Returns whether the thread has provably not run since the capture. */
typedef bool ss_thread_check_function(void *data, pid_t tid);

/* How many functions that began a recursion follow one that max_frames cuts. */
enum { SS_RECURSION_CALLERS_MAX = 16 };

struct ss_unwind_options {
	size_t size;	     /* sizeof(struct ss_unwind_options) */
	unsigned max_frames; /* per thread; 0: no limit */
	/* The reason given for stacks that max_frames truncates, or NULL. With a
	   reason and max_frames 1, no unwind information is read at all. */
	const char *frames_reason;
	/* Memory that the capture did not copy, for the frames of runtimes; check says
	   whether it belongs to the moment of the capture. See struct ss_late_reader. NULL:
	   only what was copied is used. */
	ss_memory_read_function *read;
	ss_thread_check_function *check;
	void *read_data;
	/* Keep the native frames of interpreters besides the functions that they execute. */
	bool native;
	bool no_runtimes; /* native frames only */
	/* As read, but the bytes may have been read at any time since the capture; or NULL. With
	   it, read is for proofs that what was read before has not changed. */
	ss_memory_read_function *read_early;
	bool tasks; /* read the tasks of asyncio, too */
	/* A plan for runtimes (ss_snapshot_plan_runtimes()) is for later captures of the process,
	   too: it copies the frames of all threads that run then. */
	bool many;
	/* As read, for many pieces at once; or NULL. With it, what was read for captures of
	   the session before is only compared. */
	ss_memory_read_ranges_function *read_ranges;
};

/*
 * Unwinds every thread of a capture. The capture and the session may be freed before the
 * snapshot. Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_capture_unwind(const struct ss_capture *capture,
					  struct ss_session *session,
					  const struct ss_unwind_options *options,
					  struct ss_snapshot **ret);

enum ss_symbolize_flags {
	SS_NO_INLINES = 1 << 0,	 /* no frames for inlined functions */
	SS_NO_SOURCE = 1 << 1,	 /* no file, line, column of native code */
	SS_NO_DEMANGLE = 1 << 2, /* mangled names */
};

/*
 * Sets symbol, file, line and column of the frames, and inserts frames for inlined
 * functions, innermost first; that invalidates pointers to frames. An unknown name stays
 * NULL. flags: enum ss_symbolize_flags. Call it at most once for a snapshot, before the
 * snapshot is shared between threads. Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_snapshot_symbolize(struct ss_snapshot *snapshot,
					      struct ss_session *session, unsigned flags);

/*
 * Texts about modules that the cache keeps with their names, for instance the package that a
 * module belongs to. key: what the text depends on; a text that was added with another key is
 * not found. Call both after ss_snapshot_symbolize(), with its session. find: false: there is
 * none. *ret may be NULL, if that was added, and is valid as long as the session.
 */
SS_API bool ss_session_find_note(struct ss_session *session,
				 const struct ss_snapshot *snapshot, size_t module,
				 uint64_t key, const char **ret);
SS_API void ss_session_add_note(struct ss_session *session,
				const struct ss_snapshot *snapshot, size_t module,
				uint64_t key, const char *text);

/* A table of functions that are known to wait, and what they wait for. */
struct ss_wait_table;

/* Creates a table with the functions that are built in. Errors: NO_MEMORY. */
SS_API struct ss_error *ss_wait_table_new(struct ss_wait_table **ret);

/*
 * Adds the functions that a text in the format of stacksnap-waits(5) lists. They take
 * precedence over those that the table has. file is the name of the text in errors.
 * Errors: INVALID (the table may have functions of the lines before), NO_MEMORY.
 */
SS_API struct ss_error *ss_wait_table_add(struct ss_wait_table *table, const char *file,
					  const char *text, size_t size);
SS_API void ss_wait_table_free(struct ss_wait_table *table);

/* The functions that were added, as a text that ss_wait_table_add() reads; *ret is NULL if
   there are none. The caller frees it with free(3). Errors: NO_MEMORY. */
SS_API struct ss_error *ss_wait_table_added(const struct ss_wait_table *table,
					    char **ret);

struct ss_diagnose_options {
	size_t size;			   /* sizeof(struct ss_diagnose_options) */
	const struct ss_wait_table *waits; /* NULL: the functions that are built in */
};

/*
 * Finds out what each thread waits for, from the copied data: sets wait of the threads,
 * and finds deadlocks. Call it at most once for a snapshot, before the snapshot is
 * shared between threads, and after ss_snapshot_symbolize() if that is called at all:
 * function names help to recognise locks. Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_snapshot_diagnose(struct ss_snapshot *snapshot,
					     const struct ss_diagnose_options *options);

/* What to do about frames of JIT code (ss_snapshot_plan_jit()). */
enum ss_jit_plan {
	SS_JIT_NONE,	/* nothing */
	SS_JIT_LOOK,	/* ss_capture_gather() with the plan */
	SS_JIT_CAPTURE, /* capture again with the plan, which has led to something */
};

/*
 * A plan that copies what describes the goroutines of a Go program, and their stacks. False:
 * the program is not one of Go, or its goroutines cannot be found; after unwinding,
 * ss_snapshot_task_coverage() says why. Execute the plan with ss_capture_gather(), then
 * unwind the capture.
 */
SS_API bool ss_capture_plan_goroutines(const struct ss_capture *capture,
				       struct ss_session *session,
				       struct ss_gather_plan *ret);

SS_API void ss_snapshot_free(struct ss_snapshot *snapshot);

/* Reading the result ----------------------------------------------------- */

/* Why a stack ends. */
enum ss_end {
	SS_END_ROOT = 0,	/* complete: the outermost frame was reached */
	SS_END_FRAMES,		/* max_frames reached */
	SS_END_LIMIT,		/* the copy ends here (max_stack, max_total) */
	SS_END_NO_UNWIND_INFO,	/* neither CFI nor a frame pointer */
	SS_END_BAD_UNWIND_INFO, /* there is CFI that cannot be interpreted */
	SS_END_UNREADABLE,	/* memory could not be read */
	SS_END_LOOP,		/* the next frame would not be further out: corrupted */
	SS_END_REGISTER,    /* a register is unknown; often, the thread was not stopped */
	SS_END_GONE,	    /* the thread ended before it could be read */
	SS_END_RUNNING,	    /* it runs and must not be stopped (NO_STOP) */
	SS_END_NOT_STOPPED, /* it did not stop in time: no stack */
	SS_END_TRACED,	    /* it has another tracer */
	SS_END_DENIED,	    /* access is denied: only name and state are known */
	SS_END_RUNNABLE,    /* not stopped: waits for a CPU, or busy in the kernel */
};

/* "root", "frames", "limit", ... as in JSON. Never NULL. */
SS_API const char *ss_end_name(enum ss_end end);

/* The signal that ended a process. */
struct ss_crash {
	int signal;	  /* 0: none, for example in a core file of gcore(1) */
	int code;	  /* si_code, see sigaction(2); if has_info */
	bool has_info;	  /* the members code, address and sender are known */
	uint64_t address; /* si_addr, if the kernel sent the signal (code > 0) */
	pid_t sender;	  /* otherwise: the process that sent it */
	pid_t tid;	  /* the thread that received it */
	/* of a snapshot: the kernel sent it because of an address near the stack pointer
	   at which nothing may be written */
	bool stack_overflow;
};

struct ss_process {
	pid_t pid;
	const char *name;	/* comm of the main thread */
	const char *executable; /* path as the target sees it, or NULL */
	const char *host;	/* the name of its machine; NULL: not known */
	uint64_t time_ns;	/* CLOCK_REALTIME at the freeze */
	enum ss_mode mode;	/* never DEFAULT */
	/* From the first attachment to the last release. ss_capture_complete() stops each
	   thread for itself, and adds the longest of these stops. */
	uint64_t stopped_ns;
	unsigned threads_stopped;
	bool consistent;	     /* atomic: all threads stood still at one moment */
	uint64_t copied_bytes;	     /* of stacks */
	uint64_t running_stopped_ns; /* longest stop of a thread that was running */
	unsigned threads_unseen;     /* known to exist, but not captured */
	/* The pid in the process's own pid namespace; differs from pid if that is below
	   the namespace of this /proc. 0: not known */
	pid_t inner_pid;
	/* Path of the cgroup (version 2) that kept the process frozen when the capture
	   began; NULL: none, or not known */
	const char *frozen;
	struct ss_crash crash;	  /* CORE, and of supervised processes */
	bool core_truncated;	  /* CORE: the file ends early, memory is missing */
	uint64_t handled_signals; /* it has handlers for them: bit n-1 is signal n */
	uint64_t start_time;	  /* clock ticks after boot; 0: not known */
};

/* What identifies the file of a module without a build-id. */
struct ss_file_identity {
	uint64_t size;
	uint64_t modified_ns; /* since 1970 */
	uint64_t inode;
	/* Of its headers and symbol tables, in lower-case hexadecimal; see
	   stacksnap-recording(5). NULL: the file was not identified. */
	const char *hash;
};

struct ss_module {
	const char *path;     /* as in the target's maps, without " (deleted)" */
	const char *build_id; /* lower-case hexadecimal, or NULL */
	uint64_t base;	      /* lowest mapped address */
	uint64_t size;	      /* from base to the end of the last mapping */
	bool deleted;	      /* the file was deleted */
	const char *problem;  /* why its file could not be used, or NULL */
	/* Of modules of recordings, and after ss_snapshot_identify_files(). */
	struct ss_file_identity file;
	bool by_file; /* its names are of a file that was found by that identity */
};

/* How a frame was found. */
enum ss_frame_source {
	SS_FROM_REGISTERS = 0, /* the innermost frame */
	SS_FROM_CFI,
	SS_FROM_FRAME_POINTER,
	SS_FROM_RETURN_ADDRESS, /* heuristic: a plausible return address */
	SS_FROM_INLINE,		/* inlined into the next frame */
	SS_FROM_RUNTIME,	/* a runtime's own record of its calls */
};

/* Whose function a frame is. */
enum ss_frame_kind {
	SS_FRAME_NATIVE = 0,
	SS_FRAME_PYTHON,
	SS_FRAME_JAVASCRIPT,
	SS_FRAME_JAVA,
	SS_FRAME_JIT, /* of recordings: a runtime's generated code, named by it; a stub */
};

/* "native", "python", ... as in JSON. Never NULL. */
SS_API const char *ss_frame_kind_name(enum ss_frame_kind kind);

struct ss_frame {
	uint64_t pc; /* next instruction (innermost frame), or return address */
	const struct ss_module *module; /* or NULL: not in any file */
	int32_t module_index;		/* for ss_snapshot_module(), or -1 */
	uint64_t offset;	/* pc as ELF virtual address of module; 0 without */
	const char *symbol;	/* NULL: not known */
	uint64_t symbol_offset; /* pc minus the symbol's start */
	const char *file;	/* source file, or NULL */
	uint32_t line;		/* 0: not known */
	uint32_t column;	/* 0: not known */
	bool inlined;
	bool signal_frame; /* the kernel's signal trampoline */
	enum ss_frame_source source;
	/* The ELF virtual address with which names and lines are looked up: that of pc, or
	   of pc - 1 for a return address, because a call may be the last instruction of
	   its function. Without a module it is relative to area. */
	uint64_t lookup_offset;
	/* The memory area of pc, if it is in no module: "[heap]"; "[jit]" for code and
	   "//anon" for data in anonymous memory. NULL: nothing is mapped there. */
	const char *area;
	uint64_t area_offset; /* pc relative to area; 0 without area */
	/* Of a recording, without a symbol: where the function starts according to its
	   unwind information, as an ELF virtual address of module. 0: not known */
	uint64_t function;
	/* Other kinds than NATIVE have no pc, no module and no area; symbol, file and line
	   are those of the runtime's function. */
	enum ss_frame_kind kind;
	bool replaced; /* native; the frames of a runtime before it stand for it */
	/* Frames of a recursion that are left out before this one; see
	   SS_RECURSION_CALLERS_MAX */
	uint32_t omitted;
};

/* Whether the function belongs to the library of its language (Python's threading, Java's
   java.util, node's internal scripts), judged by its file or class, and not to the program.
   False for native frames. */
SS_API bool ss_frame_is_of_library(const struct ss_frame *frame);

/* What kind of thing a thread waits for. */
enum ss_wait_kind {
	SS_WAIT_OTHER = 0, /* in another system call */
	SS_WAIT_FUTEX,	   /* a futex of unknown purpose */
	SS_WAIT_MUTEX,
	SS_WAIT_RWLOCK,
	SS_WAIT_CONDVAR,
	SS_WAIT_SEMAPHORE,
	SS_WAIT_BARRIER,
	SS_WAIT_JOIN, /* the end of another thread */
	SS_WAIT_ONCE, /* an initialisation by another thread */
	SS_WAIT_POLL,
	SS_WAIT_SELECT,
	SS_WAIT_EPOLL,
	SS_WAIT_SLEEP,
	SS_WAIT_READ,
	SS_WAIT_WRITE,
	SS_WAIT_ACCEPT,
	SS_WAIT_CONNECT,
	SS_WAIT_RECEIVE,
	SS_WAIT_SEND,
	SS_WAIT_CHILD,	   /* the end, or another change, of a child process */
	SS_WAIT_FILE_LOCK, /* flock, fcntl */
	SS_WAIT_SIGNAL,
	SS_WAIT_IPC,	    /* System V or POSIX message queues and semaphores */
	SS_WAIT_IO,	    /* a disk, or completions of asynchronous input and output */
	SS_WAIT_PTRACE,	    /* it is stopped by its tracer */
	SS_WAIT_STOPPED,    /* stopped by a signal: waits for SIGCONT */
	SS_WAIT_PAGE_FAULT, /* blocked outside any system call */
	SS_WAIT_WORK,	    /* a worker thread of the kernel, without work */
};

/* "mutex", "epoll", "file-lock", ... as in JSON. Never NULL. */
SS_API const char *ss_wait_kind_name(enum ss_wait_kind kind);

/* What a thread waits for through a futex. */
enum ss_lock_type {
	SS_LOCK_NONE = 0, /* no lock, or a futex of unknown purpose */
	SS_LOCK_MUTEX,	  /* pthread_mutex_t, mtx_t */
	SS_LOCK_RECURSIVE_MUTEX,
	SS_LOCK_ERRORCHECK_MUTEX,
	SS_LOCK_ROBUST_MUTEX,
	SS_LOCK_PI_MUTEX,
	SS_LOCK_RWLOCK,
	SS_LOCK_CONDVAR,
	SS_LOCK_SEMAPHORE,
	SS_LOCK_BARRIER,
	SS_LOCK_THREAD,	     /* a thread that is joined */
	SS_LOCK_ONCE,	     /* pthread_once_t */
	SS_LOCK_STATIC_INIT, /* the guard of a C++ variable that is being initialised */
	SS_LOCK_LIBC,	     /* inside the C library: malloc, streams */
	SS_LOCK_RUST_MUTEX,
	SS_LOCK_RUST_RWLOCK,
	SS_LOCK_RUST_CONDVAR,
	SS_LOCK_RUST_ONCE,
	SS_LOCK_RUST_PARKER,
	SS_LOCK_JAVA_MONITOR,
	SS_LOCK_PYTHON_GIL,   /* CPython's global interpreter lock */
	SS_LOCK_PYTHON_LOCK,  /* threading.Lock, which conditions and queues use, too */
	SS_LOCK_JAVA_LOCK,    /* of java.util.concurrent: ReentrantLock and others */
	SS_LOCK_PYTHON_RLOCK, /* threading.RLock */
};

/* "mutex", "robust-mutex", "rust-rwlock", ..., "none". Never NULL. */
SS_API const char *ss_lock_type_name(enum ss_lock_type type);

/* What a function on the stack says about a wait; see struct ss_wait_table. */
enum ss_wait_purpose {
	SS_PURPOSE_UNKNOWN = 0,
	SS_PURPOSE_LOCK,    /* a lock of the application */
	SS_PURPOSE_EVENT,   /* a condition, an answer or work: which one is not known */
	SS_PURPOSE_IDLE,    /* work */
	SS_PURPOSE_SERVICE, /* a thread of a runtime, not of the program */
};

/* "lock", "event", "idle", "service", "unknown". Never NULL. */
SS_API const char *ss_wait_purpose_name(enum ss_wait_purpose purpose);

/* What the functions of a stack say about a wait. */
struct ss_stack_purpose {
	enum ss_wait_purpose purpose;
	size_t symbol;	      /* index of the function that says it */
	const char *function; /* its name without result and parameters: size bytes in the
				 symbol */
	size_t size;
	const char *words; /* its description, or NULL; valid as long as the table */
};

/*
 * Searches the functions of a stack, the innermost first, in a table, as
 * ss_snapshot_diagnose() does. call is the name of the system call that the thread waits in.
 * A symbol may be NULL: it has no name. Leave out frames outside of a signal handler.
 */
SS_API struct ss_stack_purpose ss_wait_table_search(const struct ss_wait_table *table,
						    const char *call,
						    const char *const *symbols,
						    size_t count);

/* How a thread requests or holds a lock. */
enum ss_access {
	SS_ACCESS_NONE = 0,  /* no such distinction, or unknown */
	SS_ACCESS_SHARED,    /* for reading */
	SS_ACCESS_EXCLUSIVE, /* for writing */
};

/* Why the owner of a lock is not known. */
enum ss_owner_unknown {
	SS_OWNER_UNSPECIFIED = 0,   /* the owner is known, or there cannot be one */
	SS_OWNER_CHANGING,	    /* the lock was being taken or released */
	SS_OWNER_NOT_RECORDED,	    /* locks of this type do not record their owner */
	SS_OWNER_READERS,	    /* readers hold it; the lock only counts them */
	SS_OWNER_DIED,		    /* the owner ended without releasing it */
	SS_OWNER_GONE,		    /* owner_unknown_tid has ended or was not captured */
	SS_OWNER_GONE_OR_ELSEWHERE, /* as before, or of another process */
	SS_OWNER_AMBIGUOUS_TID,	    /* several pid namespaces share the lock */
	SS_OWNER_BEING_GRANTED,	    /* the kernel is making the waiter the owner */
	SS_OWNER_CORRUPTED,   /* the memory does not look like a lock of this type */
	SS_OWNER_UNREADABLE,  /* the memory of the lock could not be read */
	SS_OWNER_NO_SYMBOLS,  /* no function on the stack has a name */
	SS_OWNER_REFUSED,     /* the kernel refused a PI mutex: never ends */
	SS_OWNER_RUNTIME,     /* only the runtime (a Java VM) knows */
	SS_OWNER_NOT_VISIBLE, /* file lock of an open file description, or of an
				  invisible process */
	SS_OWNER_NOT_LISTED,  /* file lock: not found in /proc/locks */
	SS_OWNER_IN_PARENT,   /* owner_unknown_tid of the parent process took it before
				 fork() */
};

/* "changing", "not-recorded", "readers", ... Never NULL. */
SS_API const char *ss_owner_unknown_name(enum ss_owner_unknown reason);

/* Another process that takes part in a wait. */
struct ss_related_process {
	pid_t pid;
	const char *name; /* comm; NULL: not known */
	char state;	  /* as in struct ss_task; '?': not known */
	bool same;	  /* the process of the waiting thread itself */
};

/* What a file descriptor refers to. */
enum ss_fd_kind {
	SS_FD_UNKNOWN = 0, /* closed since, or unreadable */
	SS_FD_FILE,
	SS_FD_PIPE,
	SS_FD_SOCKET,
	SS_FD_EVENTFD,
	SS_FD_TIMERFD,
	SS_FD_SIGNALFD,
	SS_FD_INOTIFY,
	SS_FD_EPOLL,
	SS_FD_PIDFD,
	SS_FD_IO_URING,
	SS_FD_MEMFD,
	SS_FD_TTY,
	SS_FD_OTHER, /* name says what */
};

/* "file", "pipe", "socket", ... Never NULL. */
SS_API const char *ss_fd_kind_name(enum ss_fd_kind kind);

struct ss_socket_address {
	uint8_t bytes[16]; /* in network byte order */
	unsigned size;	   /* 4 (IPv4), 16 (IPv6), or 0: not known */
	unsigned port;	   /* 0: none */
};

struct ss_watched_fd;

/* A file descriptor of the process, as it was shortly after the capture. */
struct ss_descriptor {
	int fd;
	enum ss_fd_kind kind;
	const char *name; /* path, name of a memfd, or as in "socket:[123]" */
	int flags;	  /* O_... of open(2) */
	/* Processes at the other end of a pipe or UNIX socket; of a pidfd the process. */
	const struct ss_related_process *peers;
	size_t peer_count;
	bool peers_searched;   /* the processes were searched for peers */
	bool peers_incomplete; /* not all processes could be searched */
	/* Sockets */
	const char *protocol; /* "TCP", "UDPv6", "UNIX-STREAM"; NULL: not known */
	bool listening;
	unsigned tcp_state; /* TCP_... of <netinet/tcp.h>; 0: not TCP, or not known */
	struct ss_socket_address local;
	struct ss_socket_address remote;
	const char *path;      /* UNIX: name of this end, '@' for abstract; or NULL */
	const char *peer_path; /* UNIX: name of the other end, or NULL */
	/* The kernel's own objects */
	bool process_ended;		     /* PIDFD */
	bool timer_known;		     /* TIMERFD: the next two are known */
	uint64_t timer_left_ns;		     /* 0: not armed */
	uint64_t timer_interval_ns;	     /* 0: once */
	uint64_t signals;		     /* SIGNALFD: bit n-1 is signal n */
	unsigned inotify_watches;	     /* INOTIFY */
	const struct ss_watched_fd *watches; /* EPOLL, ascending by fd */
	size_t watch_count;
	bool watches_incomplete; /* there are more */
};

/* One of several file descriptors, any of which ends the wait. */
struct ss_watched_fd {
	int fd;
	bool input;  /* watched for input; */
	bool output; /* for room to write; neither: for errors only */
	const struct ss_descriptor *what; /* NULL: not known */
};

/* Which child processes are waited for. */
enum ss_child_scope {
	SS_CHILD_NONE = 0,
	SS_CHILD_PID, /* child_id: the pid in the target's pid namespace */
	SS_CHILD_ANY,
	SS_CHILD_GROUP,	    /* of process group child_id */
	SS_CHILD_OWN_GROUP, /* of its own process group */
	SS_CHILD_PIDFD,	    /* fd */
	SS_CHILD_VFORK,	    /* the child of vfork(2), until it execs or exits */
};

/* Which bytes of a file a lock covers. */
enum ss_file_range {
	SS_RANGE_WHOLE = 0, /* the whole file, or not known */
	SS_RANGE_PART,	    /* relative to an unknown position */
	SS_RANGE_BYTES,	    /* range_first to range_last */
};

enum ss_ipc_operation {
	SS_IPC_NONE = 0,
	SS_IPC_SEMAPHORE, /* System V; the first operation is given */
	SS_IPC_RECEIVE,	  /* of a message queue: ipc_id, or fd for a POSIX one */
	SS_IPC_SEND,
};

/* A thread in its snapshot, which may be that of another process. */
struct ss_thread_ref {
	const struct ss_snapshot *snapshot;
	const struct ss_task *thread;
};

/* A frame of a lock's owner that refers to the lock: in its memory, a register or its
   code. */
struct ss_owner_frame {
	uint32_t frame;	  /* index for ss_snapshot_frame() */
	uint32_t line;	  /* in file; 0: not known */
	const char *file; /* of its first call with the address of the lock, or NULL */
};

enum { SS_OWNER_FRAMES_MAX = 2 };

/*
 * What a thread waits for. Members that do not apply to its kind are 0, NULL, or -1 where
 * noted.
 */
struct ss_wait {
	enum ss_wait_kind kind;
	bool timed;	     /* a time limit ends the wait */
	const char *syscall; /* name of the system call; NULL: none, or not known */
	long syscall_number; /* -1: none */
	const char
		*function;  /* function on the stack that identifies the lock, or NULL */
	int64_t timeout_ns; /* as passed to the call; -1: none, or not known */
	int64_t left_ns;    /* remaining time; -1: none, or not known */

	/* Locks and other futexes */
	enum ss_lock_type lock;
	enum ss_access access;	/* requested; of rwlocks and file locks */
	uint64_t address;	/* of the lock or futex; 0: none */
	const char *symbol;	/* variable that contains it, or NULL */
	uint64_t symbol_offset; /* address minus the start of symbol */
	uint32_t readers;	/* RWLOCK: how many hold it */
	uint32_t value;		/* SEMAPHORE */
	uint32_t arrived;	/* BARRIER: threads that wait at it */
	uint32_t needed;	/* BARRIER: threads it needs; 0: not known */
	uint32_t futexes;	/* FUTEX: waits for any of this many; 0: one */

	/* The owner of a lock; the thread that is joined (JOIN); the tracer (PTRACE); the
	   process that holds a file lock; the child process (CHILD) */
	pid_t owner_tid;	     /* if proven; 0: not known, or a process */
	pid_t owner_pid;	     /* its process; 0: this one, or not known */
	const char *owner_name;	     /* comm of that thread, or NULL */
	const char *owner_process;   /* comm of process owner_pid, or NULL */
	enum ss_access owner_access; /* how the owner holds it */
	bool self_owned; /* the waiting thread (file locks: its process) owns it */
	enum ss_owner_unknown owner_unknown;
	pid_t owner_unknown_tid; /* the id that the lock names */
	pid_t owner_unknown_pid; /* IN_PARENT: that process */
	/* The innermost frames of the owner that refer to the lock. Usually the function
	   that took it is among them, if it has not returned. Often there are none. */
	struct ss_owner_frame owner_frames[SS_OWNER_FRAMES_MAX];
	size_t owner_frame_count;

	/* File descriptors */
	int fd;					/* -1: none */
	const struct ss_descriptor *descriptor; /* of fd; NULL: not known */
	const struct ss_watched_fd *fds;	/* POLL, SELECT: any of these */
	size_t fd_count;
	bool fds_incomplete; /* more could not be read */

	/* FILE_LOCK */
	enum ss_file_range range;
	uint64_t range_first;
	uint64_t range_last; /* UINT64_MAX: to the end of the file */

	/* CHILD */
	enum ss_child_scope child_scope;
	pid_t child_id;
	const struct ss_related_process *children; /* up to 16 candidates */
	size_t child_count;			   /* in the array */
	size_t children_total;
	bool children_known; /* false: there may be more */

	/* SIGNAL */
	bool signals_known;
	uint64_t signals; /* waits for any of them: bit n-1 is signal n */

	/* IPC */
	enum ss_ipc_operation ipc;
	int ipc_id; /* System V; -1: none */
	unsigned semaphore;
	int semaphore_change;	     /* negative: subtracts; 0: waits for zero */
	size_t semaphore_operations; /* in the call; 0: not known */

	/* IO, OTHER */
	uint32_t completions; /* IO: number it waits for; 0: no asynchronous call */
	int command;	      /* of fcntl(2); -1: another call */
	const char *path;     /* path that is being opened, or NULL */

	/* Of any kind: the call waits until another program permits it, fanotify(7). Known from
	   the kernel's functions, so to root only. */
	bool fanotify;

	/* Threads of other processes that the wait leads to: the thread waits for the first
	   one, that for the second, and so on. See ss_capture_add_related(). */
	const struct ss_thread_ref *chain;
	size_t chain_length;

	enum ss_wait_purpose purpose;
	const char *purpose_function; /* name without parameters, or NULL */
	const char *purpose_words;    /* its description in the table, or NULL */

	/* Only threads of the process can end it: it waits on a private futex. */
	bool within_process;
};

/* Kinds of tasks. To add one: its name in data/snapshot.c, its words in report/wording.c, and
   whoever finds the tasks of a process. */
enum ss_task_kind {
	SS_TASK_THREAD = 0, /* of the kernel */
	SS_TASK_GOROUTINE,  /* the runtime of Go runs it on threads */
	SS_TASK_ASYNCIO,    /* of Python's asyncio, not ended; an event loop runs it */
	SS_TASK_KINDS,
};

/* "thread", "goroutine" or "asyncio-task". Never NULL. */
SS_API const char *ss_task_kind_name(enum ss_task_kind kind);

/* What a task does, as its runtime records it. */
enum ss_task_status {
	SS_STATUS_UNKNOWN = 0, /* of a thread, which has a state instead */
	SS_STATUS_RUNNABLE,    /* waits for a thread, or for its event loop, to run it */
	SS_STATUS_RUNNING,
	SS_STATUS_SYSCALL, /* in a system call or in C code, on a thread */
	SS_STATUS_WAITING, /* see wait_reason */
	SS_STATUS_PREEMPTED,
	SS_STATUS_COPYSTACK, /* its stack is being moved */
};

/* "runnable", "running", "syscall", "waiting", ... Never NULL. */
SS_API const char *ss_task_status_name(enum ss_task_status status);

/* Something that executes functions one after the other and so has a stack. Members of which
   the comment names kinds are set for these only. */
struct ss_task {
	enum ss_task_kind kind;
	/* The thread's tid; what Go counts; the address of the object, which another task may
	   get after its end. Otherwise the same in all snapshots of a process. */
	uint64_t id;
	/* The thread that runs it: a THREAD itself; the one on which a goroutine was; the one of
	   the task's event loop. 0: none, or not known */
	pid_t tid;
	const char *name; /* comm of a thread; a GOROUTINE has none: "" */
	enum ss_end end;
	const char *reason; /* details about end, in words, or NULL */
	size_t frame_count;
	/* Equal for tasks with equal frames and end. The frames of an ASYNCIO task are its
	   coroutines, of which each awaits the one before; if it runs, only the outermost one:
	   the others are on its thread. */
	uint32_t stack_id;

	/* THREAD */
	char state;		 /* before the stop: R S D T t Z X I, or '?' */
	uint64_t stopped_ns;	 /* 0: never stopped */
	bool consistent;	 /* its registers and stack belong to one moment */
	uint64_t thread_pointer; /* pthread_self() of most C libraries; 0: not known */
	pid_t inner_tid;	 /* in its own pid namespace; 0: not known */
	/* LIMIT, UNREADABLE: memory of the process that was not copied, see
	   ss_capture_extend(); 0: none */
	uint64_t missing;
	/* NULL: it does not wait, or that is not known, or ss_snapshot_diagnose() was not
	   called */
	const struct ss_wait *wait;
	/* The kernel function in which it sleeps, or NULL. Read only for threads in state
	   D, and if access is denied. */
	const char *wchan;
	/* State D only: kernel functions, innermost first, separated by newlines; or NULL */
	const char *kernel_stack;
	/* Why it has native frames in place of those of a runtime, or NULL */
	const char *native_reason;

	/* GOROUTINE, ASYNCIO */
	enum ss_task_status status;
	/* WAITING: in the words of the runtime, such as "chan receive", or the type of the
	   future that it awaits, such as "Future"; NULL: not known */
	const char *wait_reason;

	/* GOROUTINE */
	/* It has waited about that long, according to Go's garbage collector, which knows it
	   after its second run. 0: not known */
	uint64_t waiting_ns;
	/* It runs, or is in a system call: its stack is that of thread tid */
	bool on_thread;
	bool changed; /* it ran while it was read: its stack is not known */
	/* After ss_snapshot_diagnose(). WAITING: the function that waits for a lock, such as
	   "sync.(*Mutex).Lock"; NULL: it waits for something else */
	const char *lock_function;
	bool blocked;	   /* see ss_snapshot_compare_goroutines() */
	uint64_t run_mark; /* differs after it has run; 0: not known */
	/* The path of the program or library whose runtime of Go runs it: a process may have
	   several, each with ids of its own. NULL: not known */
	const char *runtime;

	/* ASYNCIO */
	/* Tasks that it waits for, itself or by asyncio.gather(), a TaskGroup, asyncio.wait() or
	   asyncio.wait_for(): indexes for ss_snapshot_task() */
	const size_t *awaited;
	size_t awaited_count;
	bool awaits_all; /* it continues after all of these, and has no time limit */
	/* After ss_snapshot_diagnose(): it is in a cycle of tasks that wait for each other;
	   the index of the next one in the cycle */
	bool in_cycle;
	size_t cycle_next;
};

/* How far the tasks of a kind are known. */
struct ss_task_coverage {
	bool known;	/* they were looked for: there are no others */
	size_t changed; /* ASYNCIO: how many more there are that ran while they were read, */
	size_t unread;	     /* or that could not be read */
	const char *problem; /* one line that says why they are not known, or NULL */
};

/* A language runtime of the process, whose frames are shown in place of native ones. */
struct ss_runtime_info {
	enum ss_frame_kind kind;
	const char *version; /* "CPython 3.11.2"; NULL: not known */
	const char *problem; /* why only native frames are shown, or NULL */
};

/* Threads that wait for each other in a cycle. They stood still together while their
   locks were read, so the cycle really existed. */
struct ss_deadlock {
	/* Indexes of threads. Each waits for what the next one holds (or for
	   its end), the last for the first. */
	const size_t *threads;
	size_t count;  /* 1: the thread waits for itself */
	size_t behind; /* other threads that wait for these */
	bool timed;    /* one of the waits has a time limit */
};

/* A thread that others wait for, and that waits for no thread itself. */
struct ss_blocker {
	size_t thread;	/* index for ss_snapshot_task() */
	size_t waiting; /* threads that wait for it, directly or through others */
	size_t locks;	/* locks through which they wait; at least 1 */
};

/* A lock of the application that threads wait for: the purpose of their waits is LOCK. Who
   holds it only the application knows. */
struct ss_application_lock {
	const char *function; /* of the first waiter */
	const char *words;    /* description in the table, or NULL */
	size_t waiting;	      /* threads */
	/* Indexes of the threads that may hold it: of those that do not wait for such locks,
	   those that have the most functions in common with a waiter. Up to 16. */
	const size_t *suspects;
	size_t suspect_count; /* in the array */
	size_t suspects_total;
	/* The innermost one in common, or NULL. If a runtime executes the waiter, only functions
	   of the program in its own language count, for all of these. */
	const char *common_function;
	/* Threads that have less in common and wait for their clients. A transaction may hold
	   the lock between two requests. Likewise. */
	const size_t *client_suspects;
	size_t client_suspect_count;
	size_t client_suspects_total;
	const char *client_function;
};

/* Threads of several processes that wait for each other in a cycle, without a time limit.
   They stood still together while their waits were read. The holder of a file lock or of
   the other end of a pipe is considered only if it has one thread. */
struct ss_cycle {
	const struct ss_thread_ref *members; /* as in struct ss_deadlock */
	size_t count;
};

/* All of these are valid as long as the snapshot. index must be below the count. */
SS_API const struct ss_process *ss_snapshot_process(const struct ss_snapshot *snapshot);
/* Threads are ascending by tid. Goroutines are ascending by id and by runtime, if what describes
   them was copied: see ss_capture_plan_goroutines(). Tasks of asyncio are ascending by name, if
   ss_unwind_options.tasks was set; they are read after the capture. */
SS_API size_t ss_snapshot_task_count(const struct ss_snapshot *snapshot,
				     enum ss_task_kind kind);
SS_API const struct ss_task *ss_snapshot_task(const struct ss_snapshot *snapshot,
					      enum ss_task_kind kind, size_t index);
SS_API const struct ss_task_coverage *
ss_snapshot_task_coverage(const struct ss_snapshot *snapshot, enum ss_task_kind kind);
/* A frame of task; 0 is the innermost. index must be below frame_count. */
SS_API const struct ss_frame *ss_snapshot_frame(const struct ss_snapshot *snapshot,
						const struct ss_task *task, size_t index);
/* The thread with this id, or NULL. */
SS_API const struct ss_task *ss_snapshot_find_thread(const struct ss_snapshot *snapshot,
						     pid_t tid);
SS_API size_t ss_snapshot_module_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_module *ss_snapshot_module(const struct ss_snapshot *snapshot,
						  size_t index);

SS_API size_t ss_snapshot_runtime_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_runtime_info *
ss_snapshot_runtime(const struct ss_snapshot *snapshot, size_t index);

/* Results of ss_snapshot_diagnose(). The blocker with the most waiters comes first. */
SS_API size_t ss_snapshot_deadlock_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_deadlock *ss_snapshot_deadlock(const struct ss_snapshot *snapshot,
						      size_t index);
SS_API size_t ss_snapshot_blocker_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_blocker *ss_snapshot_blocker(const struct ss_snapshot *snapshot,
						    size_t index);
SS_API size_t ss_snapshot_application_lock_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_application_lock *
ss_snapshot_application_lock(const struct ss_snapshot *snapshot, size_t index);

/* Cycles through other processes, if ss_snapshot_add_related() was called. */
SS_API size_t ss_snapshot_cycle_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_cycle *ss_snapshot_cycle(const struct ss_snapshot *snapshot,
						size_t index);

struct ss_register {
	const char *name;
	uint64_t value;
};

/* The register with that index of the thread that received the signal of struct ss_crash.
   False: there is no such register, or it is not known. */
SS_API bool ss_snapshot_crash_register(const struct ss_snapshot *snapshot, size_t index,
				       struct ss_register *ret);

/* With the NUL. */
enum { SS_SIGNATURE_SIZE = 33 };

/*
 * The signature of a thread's stack in ret, in hexadecimal: a 128-bit hash (XXH3) over the
 * build-ids and offsets of its frames, outermost first, without inlined ones. Equal stacks
 * of the same builds have the same signature, in any process on any machine; of recursion
 * through at most eight frames the depth does not count. A module without a build-id counts
 * by its path, other code by the kind of its memory. Of the thread whose stack overflowed, only
 * the frames count that occur more than once among the inner ones, in any order: where in them
 * the stack ends is a matter of chance. Errors: NO_MEMORY.
 */
SS_API struct ss_error *ss_snapshot_signature(const struct ss_snapshot *snapshot,
					      const struct ss_task *thread,
					      char ret[SS_SIGNATURE_SIZE]);

enum {
	/* With the environment and the command line, which may contain secrets. */
	SS_MINIDUMP_ENVIRONMENT = 1,
};

/*
 * Writes a capture as a minidump to fd: threads with their registers and stacks, modules with
 * build-ids, and the signal that ended the process. The environment and the command line,
 * which are at the beginning of the main thread's stack, are left out unless flags has
 * SS_MINIDUMP_ENVIRONMENT. Registers of threads that were not stopped are mostly unknown, and
 * written as 0. Errors: INVALID (larger than 4 GiB), UNSUPPORTED (its processor), NO_MEMORY,
 * SYSTEM.
 */
SS_API struct ss_error *ss_capture_write_minidump(const struct ss_capture *capture,
						  unsigned flags, int fd);

/* A line of /proc/PID/maps. */
struct ss_mapped_range {
	uint64_t start;
	uint64_t end;
	const char *name; /* path, "[vdso]", ...; "": anonymous memory */
};

/* The mapping of the process that contains address; name is valid until the capture is freed.
   False: there is none. */
SS_API bool ss_capture_find_mapping(const struct ss_capture *capture, uint64_t address,
				    struct ss_mapped_range *ret);

/* Places ------------------------------------------------------------------ */

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
SS_API struct ss_error *ss_snapshot_new_places(const struct ss_place *places,
					       size_t count, struct ss_snapshot **ret);

/* Recordings --------------------------------------------------------------- */

/*
 * A recording is a file of samples with relative frames: module, build-id and offset,
 * from which names can be looked up later, on any machine (see stacksnap-recording(5)).
 * Processes, threads, modules, stacks and places are identified by an index into a
 * table of the open recording. Everything that these functions return stays valid until
 * the recording is closed.
 *
 * The file is untrusted input: reading stops at the first invalid chunk, and the info says
 * why. A truncated recording is read up to its last complete chunk.
 */
struct ss_recording;

/* Why a recording ended. */
enum ss_recording_end {
	SS_RECORDING_CUT = 0, /* unknown: killed, or the file is truncated or corrupted */
	SS_RECORDING_STOPPED, /* stopped on request */
	SS_RECORDING_DURATION,	 /* the duration was reached */
	SS_RECORDING_TARGET_END, /* the process ended */
	SS_RECORDING_LOST,	 /* the process became unreadable */
	SS_RECORDING_SNAPSHOT,	 /* a single snapshot */
};

/* What the samples of a recording are. */
enum ss_recording_scope {
	SS_SCOPE_THREADS, /* the threads that were selected, at each tick */
	SS_SCOPE_CPUS,	  /* what was on a CPU at each tick, by samples of the CPUs */
	/* Threads that were on a CPU or waited for one, and stopped while they ran: short
	   bursts of work are missing. */
	SS_SCOPE_RUNNING,
	SS_SCOPE_EVENTS, /* calls of the functions of a trace: each is a tick with one sample */
};

struct ss_recording_info {
	enum ss_recording_scope scope;
	const char *machine; /* "x86_64" */
	const char *host;    /* name of the machine */
	const char *version; /* of the stacksnap that wrote it */
	uint64_t begin_ns;   /* CLOCK_REALTIME */
	uint64_t begin_monotonic_ns;
	uint64_t end_ns;    /* of the last tick */
	uint64_t period_ns; /* between two ticks; 0: a single snapshot */
	uint64_t keep_ns;   /* how much was kept; 0: everything */
	enum ss_recording_end end;
	const char *problem;	 /* why it could not be read to its end, or NULL */
	uint64_t first_sequence; /* of the first sample */
	uint64_t samples;
	uint64_t ticks;
	uint64_t missed;     /* ticks that were due but not taken, while it was kept */
	uint64_t stopped_ns; /* all stops, sum */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t thread_stops;	 /* how often a thread was stopped; 0: not known */
	uint64_t lost;		 /* of the missed: ticks that could not be unwound */
	const char *loss;	 /* why, or NULL */
	/* Waiting calls without what they waited for: the recording has too many waits */
	uint64_t waits_left_out;
	uint64_t size; /* of the file, up to where it could be read */
	/* Functions that wait and that are not built in, in the format of stacksnap-waits(5);
	   or NULL. Untrusted */
	const char *wait_functions;
	const char *boot_id;	   /* of the machine; "": not known */
	const char *const *labels; /* "KEY=VALUE" */
	size_t label_count;
};

struct ss_recorded_process {
	pid_t pid;
	const char *name;	/* comm */
	const char *executable; /* path, or NULL */
	uint64_t begin_ns;	/* CLOCK_MONOTONIC, like all lifetimes */
	uint64_t end_ns;	/* 0: it lived to the end */
};

struct ss_recorded_thread {
	uint32_t process;
	pid_t tid;
	const char *name; /* comm, the last one */
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct ss_recorded_module {
	uint32_t process;
	const struct ss_module *module; /* base and size as loaded in process */
	uint64_t bias; /* load bias: address in the process minus offset */
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct ss_recorded_stack {
	const uint32_t *places; /* innermost first */
	size_t count;
	enum ss_end end;
	/* Details about end; if it is SS_END_ROOT, why the stack has native frames instead of functions
	   of a runtime; or NULL */
	const char *reason;
};

/* What a thread of a snapshot waits for: of the last one, if the recording has several.
   Without owner_frames and chain. */
struct ss_recorded_wait {
	uint32_t thread;
	uint32_t owner; /* the thread that it waits for; UINT32_MAX: none */
	bool in_cycle;	/* it is part of a deadlock */
	struct ss_wait wait;
};

/* A task of a runtime in a snapshot. */
struct ss_recorded_task {
	uint64_t tick; /* of the snapshot, as in its samples */
	uint32_t process;
	uint32_t
		thread; /* the one of tid in struct ss_task; UINT32_MAX: none, or not known */
	uint32_t stack;
	enum ss_task_kind
		kind; /* as in struct ss_task, like all that follow; not THREAD */
	uint64_t id;
	const char *name;
	enum ss_task_status status;
	const char *wait_reason;
	uint64_t waiting_ns;
	const char *runtime;
	bool on_thread;
	bool changed;
	bool awaits_all;
};

/* What an event of a trace is. */
enum ss_trace_kind {
	SS_TRACE_HIT = 0,
	SS_TRACE_ENTER, /* a scope begins */
	SS_TRACE_EXIT,	/* it returns */
	SS_TRACE_LEFT, /* it ended in another way: an exception, longjmp(), execve(), the end of
			   its thread, a jump whose target is computed */
	SS_TRACE_OPEN, /* it had not ended when the trace ended */
};

/* "hit", "enter", "exit", "left", "open". Never NULL. */
SS_API const char *ss_trace_kind_name(enum ss_trace_kind kind);

enum { SS_TRACE_ARGS = 6 };

/* Totals of a trace. */
struct ss_trace_summary {
	uint64_t hits; /* as the kernel counted them, returns included; after the end */
	uint64_t read; /* of these: that were read */
	uint64_t lost; /* for which there was no room */
	uint64_t skipped;  /* not reported, because of every and max_rate */
	uint64_t unpaired; /* returns of calls that had begun before */
	uint64_t events;   /* reported */
	bool ended;	   /* the process has ended */
};

/* A function, line or USDT probe of a recorded trace. */
struct ss_recorded_probe {
	const char *name; /* demangled */
	uint32_t module;  /* index, or UINT32_MAX */
	uint64_t offset;  /* ELF virtual address */
	bool usdt;
	bool line;  /* FILE:LINE, or MODULE+OFFSET */
	bool scope; /* its returns were traced, too */
};

/* A hit, or a scope from its entry to its end. */
struct ss_recorded_event {
	/* HIT; how the scope ended: EXIT, LEFT, OPEN; or ENTER: the recording ends before */
	enum ss_trace_kind kind;
	uint32_t probe;
	unsigned depth;	      /* see struct ss_trace_event */
	uint64_t duration_ns; /* EXIT, LEFT, OPEN */
	uint64_t args[SS_TRACE_ARGS];
	unsigned arg_count;
};

/* One thread at one tick. */
struct ss_sample {
	uint64_t sequence; /* counts all samples, without gaps */
	uint64_t tick;	   /* counts the ticks in the file, from 0 */
	uint64_t time_ns;  /* CLOCK_REALTIME */
	uint64_t monotonic_ns;
	uint32_t process;
	uint32_t thread;
	uint32_t stack;
	pid_t pid;
	pid_t tid;
	char state;	    /* R S D T t Z X I, or '?' */
	bool repeated;	    /* it had not run since its last sample */
	uint64_t on_cpu_ns; /* on a CPU since its last sample */
	uint64_t ready_ns;  /* runnable, but waiting for a CPU, likewise */
	long call;	    /* number of its system call, or -1 */
	uint64_t argument;  /* first argument of call */
	/* What it waits for in that call, valid as long as the recording; NULL: not known */
	const struct ss_wait *wait;
	uint64_t missed;     /* ticks missed since the tick of the sample before */
	uint64_t stopped_ns; /* stops for this tick, sum */
};

/* Whether a file begins like a recording, of any version. Reads at offset 0. */
SS_API bool ss_recording_is(int fd);

/* Where a recording lies in a file: recordings may follow one another. */
struct ss_recording_part {
	uint64_t offset;
	uint64_t size;
	uint64_t begin_ns; /* CLOCK_REALTIME; 0: not known */
};

/*
 * Finds the end of the recording that begins at an offset: the beginning of the next one, also
 * if it is incomplete, or else the end of the file. What is no recording is one part as well:
 * ss_recording_open_part() tells why. Errors: NO_MEMORY.
 */
SS_API struct ss_error *ss_recording_find_part(int fd, uint64_t offset,
					       struct ss_recording_part *ret);

/* Opens one of several recordings in a file, as ss_recording_open_fd(). */
SS_API struct ss_error *ss_recording_open_part(int fd,
					       const struct ss_recording_part *part,
					       struct ss_recording **ret);

/*
 * Opens a recording for reading. The file must be seekable and must not change.
 * Errors: INVALID (no recording, unsupported version, empty), SYSTEM, DENIED, NO_MEMORY.
 */
SS_API struct ss_error *ss_recording_open(const char *path, struct ss_recording **ret);
/* The same for an open file. The library owns fd, even after a failure. */
SS_API struct ss_error *ss_recording_open_fd(int fd, struct ss_recording **ret);
SS_API void ss_recording_close(struct ss_recording *recording);

SS_API const struct ss_recording_info *
ss_recording_info(const struct ss_recording *recording);

SS_API size_t ss_recording_process_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_process *
ss_recording_process(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_thread_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_thread *
ss_recording_thread(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_wait_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_wait *
ss_recording_wait(const struct ss_recording *recording, size_t index);
/* In order of their snapshots and kinds; within these, as in the snapshot. */
SS_API size_t ss_recording_task_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_task *
ss_recording_task(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_module_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_module *
ss_recording_module(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_stack_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_stack *
ss_recording_stack(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_place_count(const struct ss_recording *recording);

/*
 * The frames of a place: inlined functions, innermost first, and last the function itself.
 * Before ss_recording_symbolize() it is one frame without a name. module_index of a frame
 * is an index for ss_recording_module(), or -1. *count is set to the number of frames.
 */
SS_API const struct ss_frame *ss_recording_place(const struct ss_recording *recording,
						 size_t index, size_t *count);

/*
 * Names all places. Finds modules by build-id: below the session's sysroot, at the
 * recorded path, and in debug_dir. Without a file of the right build the frames of a
 * module have no names, and module->problem says why. Call it at most once.
 * Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_recording_symbolize(struct ss_recording *recording,
					       struct ss_session *session,
					       unsigned flags);

/* Of a trace: its probes, and its totals; NULL: it was cut, or is no trace. */
SS_API size_t ss_recording_probe_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_probe *
ss_recording_probe(const struct ss_recording *recording, size_t index);
SS_API const struct ss_trace_summary *
ss_recording_trace_summary(const struct ss_recording *recording);
/* The event that a sample stands for. False: none is known. */
SS_API bool ss_recording_event(const struct ss_recording *recording,
			       const struct ss_sample *sample,
			       struct ss_recorded_event *ret);

/* Reads the next sample. False at the end, and at data that cannot be read: problem of the
   info says why. */
SS_API bool ss_recording_next(struct ss_recording *recording, struct ss_sample *ret);
/* Starts again with the first sample. */
SS_API void ss_recording_rewind(struct ss_recording *recording);

/*
 * Makes a snapshot of the threads of a process at a tick, with names if the recording was
 * symbolized. Does not change what ss_recording_next() returns next.
 * Errors: INVALID (no such tick or process), NO_MEMORY.
 */
SS_API struct ss_error *ss_recording_snapshot(struct ss_recording *recording,
					      uint64_t tick, size_t process,
					      struct ss_snapshot **ret);

/* What a recording says besides samples. A zeroed struct says nothing. */
struct ss_recording_about {
	const char *wait_functions; /* see ss_wait_table_added(); or NULL */
	const char *boot_id;	    /* of the machine, or NULL */
	const char *const *labels;  /* "KEY=VALUE" */
	size_t label_count;
};

/*
 * Writes a snapshot, without names, as a recording to the empty file fd, and closes it.
 * Errors: SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_snapshot_record(const struct ss_snapshot *snapshot,
					   const struct ss_recording_about *about,
					   int fd);

/*
 * The same for snapshots of one process, in order of time, taken every period_ns. Each is
 * a tick of the recording. Waits are those of the last one. Errors: INVALID (no snapshot),
 * SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_snapshots_record(const struct ss_snapshot *const *snapshots,
					    size_t count, uint64_t period_ns,
					    const struct ss_recording_about *about,
					    int fd);

/* Heap -------------------------------------------------------------------- */

/* Memory that malloc(3) has taken from the kernel in one piece or in several. */
struct ss_heap_arena {
	uint64_t address; /* of its description (struct malloc_state) */
	bool main;
	uint64_t size; /* bytes that it has from the kernel, as malloc counts them */
	/* Chunks, each with 8 bytes of its own: allocations; free ones that are kept for
	   quick use (in per-thread caches and fastbins); other free ones. */
	uint64_t used_count, used_bytes;
	uint64_t cached_count, cached_bytes;
	uint64_t free_count, free_bytes;
	uint64_t top_bytes;    /* never used, or given back, at its end */
	uint64_t unread_bytes; /* could not be read; problem says why */
	const char *problem;   /* a constant, or NULL */
};

/* Allocations whose usable sizes are from min to max. */
struct ss_heap_size {
	uint64_t min, max;
	uint64_t count, bytes; /* of chunks */
};

/* Allocations that begin with a pointer to the same place of a module: objects of a C++ class
   with virtual functions. */
struct ss_heap_class {
	uint64_t address;   /* of its table of virtual functions */
	const char *module; /* path */
	const char *name; /* set by ss_heap_symbolize(); NULL: it is none, or not known */
	uint64_t count, bytes; /* of chunks */
};

/*
 * A census of the heap of glibc's malloc(3). The process runs while it is taken: what
 * changed meanwhile may be counted as it was, as it is, or not at all. Take two and compare
 * them to learn how much that is.
 */
struct ss_heap {
	const struct ss_process *process;
	const char *allocator; /* path of the module that has malloc's data */
	const char *other;     /* of a module with another allocator, or NULL */
	const struct ss_heap_arena *arenas;
	size_t arena_count;
	const struct ss_heap_size *sizes; /* ascending, only those with allocations */
	size_t size_count;
	const struct ss_heap_class *classes; /* by bytes, descending */
	size_t class_count;
	bool classes_truncated; /* there were too many to count */
	/* Allocations with a mapping of their own: those found, and, if malloc's counters were
	   found (counted), as malloc counts them. */
	uint64_t mapped_count, mapped_bytes;
	bool counted;
	uint64_t counted_maps, counted_map_bytes;
	uint64_t used_count, used_bytes; /* of all arenas, and mapped ones */
};

/*
 * Reads the heap of a process with read and data, as a reader of ss_late_reader_new(). All
 * that is read is untrusted input: call it in ss_sandbox_run(). capture says where
 * modules and memory areas are, and must outlive the result. Errors: UNSUPPORTED (no
 * glibc, or malloc was not used), NO_MEMORY.
 */
SS_API struct ss_error *ss_heap_read(const struct ss_capture *capture,
				     struct ss_session *session,
				     ss_memory_read_function *read, void *data,
				     struct ss_heap **ret);
SS_API void ss_heap_free(struct ss_heap *heap);

/* Names the classes, by symbols or by their run-time type information. Errors: NO_MEMORY. */
SS_API struct ss_error *ss_heap_symbolize(struct ss_heap *heap,
					  struct ss_session *session);

/* Sandbox ----------------------------------------------------------------- */

/*
 * Interpreting a capture or a recording means parsing untrusted input: ELF, DWARF, perf
 * maps. ss_sandbox_run() does it in a child process without capabilities, which can
 * open files for reading only, has no access to other processes and the network, and
 * has limits for memory, time and output. If the child dies, a new child does less: see
 * the levels.
 */

enum ss_sandbox_level {
	SS_SANDBOX_NAMES = 0, /* everything, except modules that were fatal */
	SS_SANDBOX_RAW,	      /* no symbols */
	/* No module is read: call ss_capture_unwind() with max_frames 1 and a
	   frames_reason. The work runs in the calling process. */
	SS_SANDBOX_PLACES,
};

/* What the work is doing. */
enum ss_sandbox_step {
	SS_SANDBOX_UNWIND = 0,
	SS_SANDBOX_SYMBOLIZE,
	SS_SANDBOX_DIAGNOSE,
	SS_SANDBOX_OUTPUT,
};

/* "unwinding", "symbolization", ... Never NULL. */
SS_API const char *ss_sandbox_step_name(enum ss_sandbox_step step);

enum ss_sandbox_cause {
	SS_SANDBOX_SIGNAL = 0,
	SS_SANDBOX_EXIT,
	SS_SANDBOX_TIMEOUT,
	SS_SANDBOX_MEMORY,
	SS_SANDBOX_INVALID,  /* its answer is corrupted */
	SS_SANDBOX_NO_CHILD, /* no child process could be created */
	SS_SANDBOX_REFUSED, /* nothing would keep it from memory of others: it did nothing */
};

/* A child that failed. */
struct ss_sandbox_failure {
	enum ss_sandbox_cause cause;
	int code; /* SIGNAL: number; EXIT: exit status; else 0 */
	enum ss_sandbox_step step;
	int32_t module; /* the module that was being read, skipped from now on; or -1 */
};

/* Writes words such as "crashed (SIGSEGV) during symbolization" to text, at most size bytes
   with the NUL. */
SS_API void ss_sandbox_failure_describe(const struct ss_sandbox_failure *failure,
					char *text, size_t size);

/* One attempt: a call of the work function. Valid during the call. */
struct ss_sandbox_attempt {
	enum ss_sandbox_level level;
	bool no_waits;		    /* skip ss_snapshot_diagnose(): it was fatal */
	bool may_request;	    /* ss_sandbox_request() may be called */
	struct ss_session *session; /* skips the modules that were fatal */
	int output;		    /* file for the result */
	const struct ss_sandbox_failure *failures; /* of the attempts before */
	size_t failure_count;
};

/* Call this when a step begins. */
SS_API void ss_sandbox_enter(const struct ss_sandbox_attempt *attempt,
			     enum ss_sandbox_step step);

/* Sets value of struct ss_sandbox_result. */
SS_API void ss_sandbox_set_value(const struct ss_sandbox_attempt *attempt,
				 uint64_t value);

/*
 * Requests something from the calling process that the child cannot get: registers of more
 * threads, files that it may not open. When the work has returned, the answer function
 * gets the bytes of all requests; then a new child, which sees what the answer function
 * changed, calls the work again. An attempt that makes a request must not write to output.
 * Errors: INVALID (may_request is false), SYSTEM.
 */
SS_API struct ss_error *ss_sandbox_request(const struct ss_sandbox_attempt *attempt,
					   const void *bytes, size_t size);

/*
 * Functions for struct ss_unwind_options, with the attempt as data: the calling process reads
 * memory of the target for the child, by the functions of struct ss_sandbox_options. Without
 * them, nothing is read.
 */
SS_API size_t ss_sandbox_read(void *attempt, uint64_t address, void *bytes, size_t size);

/*
 * Requests something from the calling process, as ss_sandbox_request() does, but waits for the
 * answer: at most max bytes from the ask function of struct ss_sandbox_options. Returns their
 * number. 0: there is no answer, since no request may be made, or the bytes are more than
 * SS_SANDBOX_ASK_MAX; ss_sandbox_request() may be possible. An attempt may ask several times.
 */
enum { SS_SANDBOX_ASK_MAX = 128 << 10 };

/* Interprets. Runs in the child, which has a copy of the caller's memory. Its standard
   error is a file. ss_sandbox_run() returns its error, except NO_MEMORY, which is a
   failure of the child. */
typedef struct ss_error *ss_sandbox_work(void *data,
					 const struct ss_sandbox_attempt *attempt);

struct ss_sandbox_options {
	size_t size; /* sizeof(struct ss_sandbox_options) */
	/* For the session of each attempt, without module_at and skip_modules; or NULL.
	   The calling process opens it, so the sysroot may need privileges. */
	const struct ss_session_options *session;
	bool change_ids; /* change to uid and gid, if the caller may */
	uid_t uid;
	gid_t gid;
	unsigned timeout_ms; /* of all attempts together, without answers; 0: 60000 */
	/* Bytes that the child may allocate in addition to 256 MiB and a quarter of the
	   machine's memory (at most 2 GiB): the size of the captures, for example */
	uint64_t more_memory;
	/* Bytes; ss_sandbox_run() fails if the result has more. 0: 1 GiB, and a larger result
	   is tried again with less effort. */
	uint64_t max_output;
	enum ss_sandbox_level first_level; /* NAMES or RAW */
	/* ss_sandbox_run() fails if this level fails. RAW; 0: PLACES */
	enum ss_sandbox_level last_level;
	bool keep_modules;     /* do not skip single modules */
	unsigned max_requests; /* that are answered, in all attempts together */
	/* Runs in the calling process; bytes are untrusted. NULL: no requests */
	void (*answer)(void *data, const void *bytes, size_t size);
	/* Called once if an attempt takes longer than a second; or NULL */
	void (*slow)(void *data, enum ss_sandbox_step step);
	/* Called in the calling process for ss_sandbox_read() and ss_sandbox_check(): what the
	   child may read while it works. Or NULL. */
	ss_memory_read_function *read;
	ss_thread_check_function *check;
	/* Likewise for ss_sandbox_ask(): writes the answer, at most max bytes, and returns its
	   size. The bytes of the request are untrusted. Or NULL. */
	size_t (*ask)(void *data, const void *bytes, size_t size, void *ret, size_t max);
	/* Gets what the session of the last attempt found; or NULL. The calling process
	   writes it; the child has no access to the directory. */
	struct ss_cache *cache;
	/* Called in the calling process several times a second while a child works: true kills
	   it, and ss_sandbox_run() fails with INTERRUPTED. Or NULL. */
	bool (*stop)(void *data);
};

struct ss_sandbox_result {
	enum ss_sandbox_level level; /* of the attempt that succeeded */
	bool no_waits;
	int output;	/* file that the work wrote; untrusted */
	int messages;	/* file of its standard error; untrusted */
	uint64_t value; /* see ss_sandbox_set_value(); 0: not set. Untrusted */
	const struct ss_sandbox_failure *failures;
	size_t failure_count;
	bool partial; /* the kernel refused a part of the sandbox */
};

/*
 * Runs work in a child process and waits for it. After a failure it tries again:
 * without the module that was being read (up to three modules); without wait analysis,
 * if the child failed in it; then with the next level. The caller must be
 * single-threaded, or the work must call only functions that are safe after fork(2) in
 * a threaded process. Errors: those of work, of ss_session_new(); SYSTEM (every level
 * failed), INTERRUPTED, INVALID, NO_MEMORY.
 */
SS_API struct ss_error *ss_sandbox_run(const struct ss_sandbox_options *options,
				       ss_sandbox_work *work, void *data,
				       struct ss_sandbox_result **ret);

SS_API void ss_sandbox_result_free(struct ss_sandbox_result *result);

/* Interpreting ------------------------------------------------------------ */

/*
 * The way from captures to snapshots, whatever is looked at: a source has captures, which
 * ss_interpret() unwinds, symbolizes and diagnoses in a confined process (ss_sandbox_run()).
 * That process asks for what is missing, and the source provides it: with privileges, and
 * without parsing anything.
 */

/* What is missing of the last capture of a source: memory according to a plan, or stacks. */
struct ss_completion {
	bool goroutines; /* the plan is for goroutines */
	bool runtimes;	 /* capture again with the plan */
	enum ss_jit_plan jit;
	struct ss_gather_plan plan;	       /* of one of these three; unchecked */
	const struct ss_stack_request *stacks; /* address 0: registers are missing */
	size_t count;
};

/* Of struct ss_source, the functions that a source does not have are NULL. */
struct ss_source {
	void *data;
	size_t count; /* of captures */
	/* In the order of time, of one process; or of several. The source owns them, and may
	   replace them when it completes the last one. NULL: see load. */
	struct ss_capture **captures;
	bool of_processes;
	/* Makes the only capture in the confined process, from input that may not be parsed with
	   privileges. count is 1 then. */
	struct ss_error *(*load)(void *data, const struct ss_sandbox_attempt *attempt,
				 struct ss_capture **ret);
	/* Completes the last capture as far as possible. may_stop: threads whose registers are
	   missing may be stopped. Returns whether anything has changed. */
	bool (*complete)(void *data, const struct ss_completion *completion,
			 bool may_stop);
	/* For struct ss_unwind_options, of the capture with that index. */
	size_t (*read)(void *data, size_t index, uint64_t address, void *bytes,
		       size_t size);
	bool (*check)(void *data, size_t index, pid_t tid);
};

/* For the times of struct ss_interpretation. */
enum ss_interpret_step {
	SS_STEP_CAPTURE, /* in the caller, to complete a capture */
	SS_STEP_UNWIND,
	SS_STEP_SYMBOLIZE,
	SS_STEP_DIAGNOSE,
	SS_STEP_FINISH,
	SS_STEP_COUNT,
};

/* What write of struct ss_interpret_options gets, in the confined process. */
struct ss_interpreted {
	const struct ss_capture *const *captures;
	const struct ss_snapshot *const *snapshots;
	size_t count;
	enum ss_sandbox_level level;
	const char *problem; /* as in struct ss_interpretation */
	int output;	     /* file for the result */
};

struct ss_interpret_options {
	size_t size;	     /* sizeof(struct ss_interpret_options) */
	unsigned max_frames; /* per thread; 0: no limit */
	bool native;	     /* as in struct ss_unwind_options, also the next two */
	bool tasks;	     /* of the last capture, or of each process */
	bool many;
	bool goroutines;    /* read those of the last capture */
	bool raw;	    /* no symbols */
	bool no_waits;	    /* no diagnosis */
	bool last_waits;    /* diagnose the last capture only */
	bool only_stacks;   /* neither symbols nor diagnosis */
	bool for_recording; /* identify files; symbols only as diagnosis needs them */
	unsigned symbolize_flags;	   /* enum ss_symbolize_flags */
	const struct ss_wait_table *waits; /* NULL: the functions that are built in */
	const char *debug_dir;		   /* as in struct ss_session_options */
	const char *sysroot;
	struct ss_cache *cache; /* or NULL */
	/* Whose privileges the confined process has; see ss_target_owner(). */
	bool owner_known;
	bool owner_reads_sysroot;
	uid_t uid;
	gid_t gid;
	enum ss_sandbox_level last_level; /* see struct ss_sandbox_options */
	unsigned timeout_ms;		  /* likewise */
	uint64_t more_memory;		  /* likewise */
	unsigned stops;	    /* how often threads may be stopped to read their registers */
	unsigned plans;	    /* for runtimes that were executed before */
	unsigned max_plans; /* 0: no limit but that of all requests */
	bool settled;	    /* nothing can be completed */
	void *data;	    /* of the functions, each of which may be NULL */
	/* In the confined process: writes the result in place of snapshots, which are not
	   returned then. *ret_value: see struct ss_sandbox_result. */
	struct ss_error *(*write)(void *data, const struct ss_interpreted *interpreted,
				  uint64_t *ret_value);
	/* In the confined process: a line about what is missing in the last snapshot. */
	char *(*advise)(void *data, const struct ss_snapshot *snapshot,
			struct ss_session *session);
	/* Files that the confined process may not open. attach: sets find_file and open_file of
	   its session, which note requests; request sends them (ss_sandbox_request()), *ret says
	   whether there are any; answer gets their bytes in the caller: untrusted. */
	void (*attach_files)(void *data, struct ss_session_options *session);
	struct ss_error *(*request_files)(void *data,
					  const struct ss_sandbox_attempt *attempt,
					  bool *ret);
	void (*answer_files)(void *data, const void *bytes, size_t size);
	unsigned file_rounds;
	/* As in struct ss_sandbox_options. */
	bool (*stop)(void *data);
	void (*slow)(void *data, enum ss_sandbox_step step);
};

struct ss_interpretation {
	struct ss_snapshot **snapshots; /* one of each capture */
	size_t count;			/* 0 with write */
	char *problem; /* one line: what failed, and what is missing therefore; or NULL */
	char *advice;  /* of the advise function; or NULL */
	bool settled;  /* nothing more could be completed */
	uint64_t spent_ns[SS_STEP_COUNT];
	struct ss_sandbox_result
		*sandbox; /* level, failures, messages; output with write */
};

/* Sets the owner of the process in options. */
SS_API void ss_interpret_as_owner(const struct ss_target *target,
				  struct ss_interpret_options *options);

/* With only_stacks and without write, there are no snapshots: the source was completed. Errors:
   those of ss_sandbox_run(); NO_PROCESS (there are no threads left), INVALID. */
SS_API struct ss_error *ss_interpret(struct ss_source *source,
				     const struct ss_interpret_options *options,
				     struct ss_interpretation **ret);
SS_API void ss_interpretation_free(struct ss_interpretation *interpretation);

/* A line about failures of attempts, to be freed; NULL: there were none. path (or NULL) returns
   the path of a module, or NULL, for those that were skipped. */
typedef const char *ss_module_path_function(const void *data, size_t index);
SS_API char *ss_interpret_problem(const struct ss_sandbox_failure *failures, size_t count,
				  enum ss_sandbox_level level, bool no_waits, bool raw,
				  ss_module_path_function *path, const void *data);

/* Registers may be needed only after more of a stack was copied: default of stops. */
enum { SS_INTERPRET_STOPS = 2 };

/* A live process as a source: one capture of it, or several, one after the other. */
struct ss_process_source;

struct ss_process_source_options {
	size_t size; /* sizeof(struct ss_process_source_options) */
	const struct ss_capture_options *capture;
	/* An open target, which must outlive this; NULL: it is opened by its pid. */
	struct ss_target *target;
	bool held;	 /* all threads of target stand still: see ss_supervisor_hold() */
	bool list;	 /* if access is denied: list the threads, with name and state */
	bool no_related; /* skip processes that threads wait for */
	/* Called before and after what may never return, because memory of the process
	   depends on a file system that does not answer; or NULL. */
	void (*watch)(void *data, pid_t pid, bool begin);
	/* Called if something could not be completed; or NULL. */
	void (*warn)(void *data, const struct ss_error *error);
	void *data;
};

/* Captures the process. Errors: those of ss_target_open() and ss_capture_take(). */
SS_API struct ss_error *
ss_process_source_new(pid_t pid, const struct ss_process_source_options *options,
		      struct ss_process_source **ret);
SS_API void ss_process_source_free(struct ss_process_source *source);
/* The last capture, which can be completed; valid as long as it, as the next three. */
SS_API struct ss_source *ss_process_source_last(struct ss_process_source *source);
/* All captures. */
SS_API struct ss_source *ss_process_source_all(struct ss_process_source *source);
SS_API struct ss_target *ss_process_source_target(struct ss_process_source *source);
/* Why threads are only listed; or NULL. */
SS_API const struct ss_error *
ss_process_source_refusal(const struct ss_process_source *source);

/*
 * For several captures: begin completes the first one and reads the functions of runtimes,
 * which is possible only before the process goes on; take adds a capture, and does the same
 * for it; end finds the processes that threads of the last capture wait for. options: of
 * the interpretation that follows. Errors: those of ss_capture_take() and ss_interpret();
 * INTERRUPTED: the capture was dropped.
 */
SS_API struct ss_error *
ss_process_source_begin_series(struct ss_process_source *live,
			       const struct ss_interpret_options *options);
SS_API struct ss_error *
ss_process_source_take(struct ss_process_source *live,
		       const struct ss_interpret_options *options);
/* Bytes of all captures, see ss_capture_size(). */
SS_API uint64_t ss_process_source_size(const struct ss_process_source *source);
SS_API void ss_process_source_end_series(struct ss_process_source *source);

struct ss_progress;

/*
 * A process that is observed for a while: captures of all threads at the beginning and at the
 * end, of running threads between, and the scheduler's counters. Of options, the members
 * target, held and list are not used. Errors: those of ss_target_open(), ss_activity_take()
 * and ss_capture_take().
 */
struct ss_observation;
SS_API struct ss_error *
ss_observation_new(pid_t pid, uint64_t time_ns,
		   const struct ss_process_source_options *options,
		   struct ss_observation **ret);
SS_API void ss_observation_free(struct ss_observation *observation);
/* Both are valid as long as the observation. */
SS_API struct ss_source *ss_observation_source(struct ss_observation *observation);
SS_API struct ss_target *ss_observation_target(struct ss_observation *observation);
/* See ss_progress_new(); result: of the source. */
SS_API struct ss_error *ss_observation_compare(const struct ss_observation *observation,
					       const struct ss_interpretation *result,
					       struct ss_progress **ret);

struct ss_snapshot_options {
	size_t size; /* sizeof(struct ss_snapshot_options) */
	struct ss_capture_options capture;
	struct ss_interpret_options interpret;
};

/*
 * One snapshot of a process: captures, completes, unwinds, symbolizes and diagnoses it, in a
 * confined process with the privileges of its owner. options: NULL for the defaults; sizes
 * and owner are set. Errors: those of ss_process_source_new() and ss_interpret().
 */
SS_API struct ss_error *ss_snapshot_take(pid_t pid,
					 const struct ss_snapshot_options *options,
					 struct ss_snapshot **ret);

/* Loading and unloading of modules ----------------------------------------- */

struct ss_module_event {
	bool loaded;			/* or unloaded */
	const struct ss_module *module; /* valid during the call */
	uint64_t time_ns;		/* CLOCK_REALTIME */
	uint64_t monotonic_ns;
	bool by_kernel; /* the times are those of the load; otherwise of its detection */
};

typedef void ss_module_watcher(void *data, const struct ss_module_event *event);

struct ss_tracker;

/*
 * Creates a tracker of the modules of a target, which must outlive it. It stops nothing:
 * ss_tracker_poll() compares what is mapped with the last call, which is cheap if nothing
 * has changed, and calls watcher for each difference, unloads first. The first call
 * reports all modules as loaded. Where perf events are allowed (see
 * ss_tracker_perf_errno()), the kernel dates further loads, and the next call reports a
 * module that came and went; otherwise it is not seen. A module whose code is made
 * executable again by mprotect(2) looks like one that came back. Build-ids that the kernel
 * does not tell (before Linux 6.11, or longer than 20 bytes) are read by a confined child
 * process, see ss_sandbox_run(). Errors: NO_MEMORY.
 */
SS_API struct ss_error *ss_tracker_new(struct ss_target *target,
				       ss_module_watcher *watcher, void *data,
				       struct ss_tracker **ret);
SS_API void ss_tracker_free(struct ss_tracker *tracker);
/* 0: the kernel dates loads; otherwise the errno of perf_event_open(2). */
SS_API int ss_tracker_perf_errno(const struct ss_tracker *tracker);
/* Errors: NO_PROCESS (it has ended; all modules were reported as unloaded), DENIED,
   SYSTEM, NO_MEMORY. */
SS_API struct ss_error *ss_tracker_poll(struct ss_tracker *tracker);

/* Tracing -------------------------------------------------------------------- */

/*
 * Events of chosen functions: that a thread calls one (a checkpoint), or the time from its
 * entry to its return (a scope). The kernel's uprobes report them; see stacksnap-trace(1) for
 * what may be probed and what it costs.
 */
struct ss_trace;

struct ss_trace_options {
	size_t size;		  /* sizeof(struct ss_trace_options) */
	const char *const *specs; /* what to probe, as the user writes it */
	size_t spec_count;
	bool scopes;	       /* see returns, too */
	uint64_t every;	       /* report each n-th hit only; 0: all */
	uint64_t max_rate;     /* report so many hits a second only; 0: all */
	unsigned args;	       /* registers of arguments to report, at most 6 */
	size_t max_stack;      /* bytes to copy of the stack of each hit; 0: no stacks */
	unsigned max_frames;   /* of a stack; 0: no limit */
	unsigned flags;	       /* enum ss_symbolize_flags, for the frames */
	const char *debug_dir; /* of separate debug files; NULL: /usr/lib/debug */
	/* No probes: sample each n-th minor page fault, and report those in memory without a
	   file, with the address as argument. specs, scopes, every and args are ignored.
	   0: probes */
	uint64_t faults;
};

/* A function, line or USDT probe that a spec selects. */
struct ss_trace_probe {
	size_t spec;	  /* its index */
	const char *name; /* demangled */
	const struct ss_module *module;
	uint64_t offset; /* ELF virtual address */
	size_t returns;	 /* places at which its scope ends */
	bool usdt;
	bool line;     /* FILE:LINE, or MODULE+OFFSET */
	bool set;      /* it is probed; otherwise a note says why not */
	uint64_t hits; /* that were read so far */
};

/* Something that a user should know about a spec. */
struct ss_trace_note {
	size_t spec;
	const char *module; /* path */
	const char *text;
};

/* Valid during the call. */
struct ss_trace_event {
	enum ss_trace_kind kind;
	uint64_t sequence; /* from 1, without gaps */
	uint64_t time_ns;  /* CLOCK_REALTIME */
	uint64_t monotonic_ns;
	pid_t pid;
	pid_t tid;
	const char *name;     /* comm of the thread */
	size_t probe;	      /* for ss_trace_probe() */
	unsigned depth;	      /* of scopes: how many others of the thread contain it */
	uint64_t entry;	      /* EXIT, LEFT, OPEN: sequence of its ENTER */
	uint64_t duration_ns; /* EXIT, LEFT, OPEN */
	uint64_t self_ns;     /* likewise: without the scopes within it */
	uint64_t args[SS_TRACE_ARGS];
	unsigned arg_count;   /* HIT, ENTER */
	uint32_t stack;	      /* HIT, ENTER: for ss_trace_stack(); 0: not known */
	uint32_t entry_stack; /* EXIT, LEFT, OPEN: of its ENTER */
};

/* A frame of the stack of a hit. Strings are valid as long as the trace. */
struct ss_trace_frame {
	uint64_t pc;
	uint64_t offset;		/* pc as ELF virtual address of module */
	const struct ss_module *module; /* or NULL: not in any file, or not known */
	const char *symbol;		/* or NULL */
	const char *file;		/* source file, or NULL */
	uint32_t line;			/* 0: not known */
	bool inlined;
	bool caller;	   /* pc is a return address */
	bool signal_frame; /* the kernel's signal trampoline */
	enum ss_frame_source source;
};

struct ss_trace_stack {
	const struct ss_trace_frame *frames; /* innermost first */
	size_t count;
	enum ss_end end;
};

typedef void ss_trace_handler(void *data, const struct ss_trace_event *event);

/* Whether this program may set probes. Errors: DENIED, UNSUPPORTED, as ss_trace_start(). */
SS_API struct ss_error *ss_trace_check(void);

/*
 * Finds what the specs select, in the modules that are loaded; a confined child process reads
 * their files. Sets no probe. The target must outlive the trace. Errors: INVALID,
 * NO_PROCESS, SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_trace_new(struct ss_target *target,
				     const struct ss_trace_options *options,
				     struct ss_trace **ret);
/* Removes the probes. */
SS_API void ss_trace_free(struct ss_trace *trace);
SS_API size_t ss_trace_probe_count(const struct ss_trace *trace);
SS_API const struct ss_trace_probe *ss_trace_probe(const struct ss_trace *trace,
						   size_t index);
SS_API size_t ss_trace_note_count(const struct ss_trace *trace);
SS_API const struct ss_trace_note *ss_trace_note(const struct ss_trace *trace,
						 size_t index);

/*
 * Sets the probes, in all threads of the process; threads and processes that these start are
 * traced, too. Errors: DENIED (root or CAP_SYS_ADMIN is needed), UNSUPPORTED (no uprobes),
 * INVALID (nothing to probe), NO_PROCESS, SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_trace_start(struct ss_trace *trace);

/* Reports what has happened since the last call, in the order of time. Call it some fifty
   times a second. Errors: NO_MEMORY. */
SS_API struct ss_error *ss_trace_read(struct ss_trace *trace, ss_trace_handler *handler,
				      void *data);

/* The number of bytes of a page. Whether the page with this address is in memory or in swap;
   false also if this cannot be read. */
SS_API size_t ss_trace_page_size(void);
SS_API bool ss_trace_is_resident(const struct ss_trace *trace, uint64_t address);

/* Ends the trace: reports what remains, and scopes that are open. Errors: NO_MEMORY. */
SS_API struct ss_error *ss_trace_end(struct ss_trace *trace, ss_trace_handler *handler,
				     void *data);

/* Stacks have the numbers 1, 2, and so on; those of events are known when they are reported. */
SS_API size_t ss_trace_stack_count(const struct ss_trace *trace);
SS_API const struct ss_trace_stack *ss_trace_stack(const struct ss_trace *trace,
						   uint32_t number);
SS_API const struct ss_trace_summary *ss_trace_summary(const struct ss_trace *trace);

/*
 * Writes the events of a trace to a recording, for ss_recording_open(). Each hit and each entry
 * becomes a sample; without a stack, its stack is the scopes that the thread is in.
 */
struct ss_trace_recorder;

/* Begins a recording in the empty file fd, which it owns. Trace and target must outlive it.
   Errors: SYSTEM, NO_MEMORY. */
SS_API struct ss_error *ss_trace_recorder_new(const struct ss_trace *trace,
					      struct ss_target *target, int fd,
					      struct ss_trace_recorder **ret);
SS_API void ss_trace_recorder_free(struct ss_trace_recorder *recorder);
/* Adds an event; each is added once, in its order. Errors: SYSTEM (the disk is full),
   NO_MEMORY. */
SS_API struct ss_error *ss_trace_recorder_add(struct ss_trace_recorder *recorder,
					      const struct ss_trace_event *event);
/* Completes the file, after ss_trace_end(). Errors: as ss_trace_recorder_add(). */
SS_API struct ss_error *ss_trace_recorder_finish(struct ss_trace_recorder *recorder,
						 enum ss_recording_end end);
/* The size of the file so far. */
SS_API uint64_t ss_trace_recorder_size(const struct ss_trace_recorder *recorder);

/* Recording ----------------------------------------------------------------- */

struct ss_recorder;

/* Totals of a recording. */
struct ss_recorder_summary {
	uint64_t samples;
	uint64_t ticks;
	uint64_t missed; /* ticks that were due but not taken */
	uint64_t threads;
	uint64_t stacks; /* different ones */
	uint64_t thread_stops;
	uint64_t stopped_ns;	 /* all stops, sum */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t duration_ns;
	uint64_t size;	   /* of the file */
	uint64_t memory;   /* of the recorder's tables */
	bool sampled_cpus; /* running threads are not stopped: the CPUs are sampled */
	int perf_errno;	   /* otherwise the errno of perf_event_open(2) */
	/* Why the kernel does not copy what functions of runtimes need with its samples: the errno of
	   bpf(2), or 0: it does, or no process needed it. */
	int copy_errno;
	uint64_t lost; /* of the missed: ticks that could not be unwound */
	/* Why ticks were lost: how the unwinding process died, and which modules are
	   skipped since; or NULL. Valid as long as the recorder. */
	const char *loss;
	bool partial; /* the kernel refused a part of the unwinding process's confinement */
	bool left_out; /* some children were not recorded: too few files may be open */
	enum ss_recording_end end;
	int undropped; /* errno of the last attempt to drop what is older than keep_ns; 0: it
			  succeeded */
	/* samples of running threads without a stack, since a thread is stopped for at most 1 % of
	   its time, and 5 ms at once */
	uint64_t not_stopped;
};

struct ss_recorder_options {
	size_t size;		  /* sizeof(struct ss_recorder_options) */
	uint64_t period_ns;	  /* between two ticks; 0: 99 a second */
	uint64_t duration_ns;	  /* after the first tick; 0: until stopped or it ends */
	uint64_t keep_ns;	  /* keep the last part, up to a quarter more; 0: all */
	unsigned max_frames;	  /* of a stack; 0: 1024 */
	size_t max_stack;	  /* bytes copied of one stack; 0: 256 KiB */
	ss_thread_filter *filter; /* called when a thread has run; NULL: all */
	void *filter_data;
	bool children; /* also sample processes that the target starts */
	/* Only threads that are on a CPU. If perf_event_open(2) may sample all CPUs, no
	   thread is stopped; otherwise the filter must select state R. */
	bool on_cpu;
	const char *directory; /* of the file; needed for keep_ns */
	const char *name;      /* of the file in directory */
	/* Called about once a second by the recording thread, or NULL. */
	void (*progress)(void *data, const struct ss_recorder_summary *summary);
	void *progress_data;
	const struct ss_recording_about *about; /* or NULL */
	/* A second empty file, which the recorder owns, open for reading and writing like the
	   first one: with keep_ns, a quarter of that time is written to one of the two, then
	   a quarter to the other, in place of what that contained. So both can be read while
	   they are written. 0: none */
	int other_fd;
	uint64_t write_ns; /* how often samples are written to the file; 0: each second */
};

/*
 * Creates a recorder that writes to the empty file fd, which it owns. The target must
 * outlive it. Errors: NO_MEMORY, SYSTEM, INVALID.
 */
SS_API struct ss_error *ss_recorder_new(struct ss_target *target, int fd,
					const struct ss_recorder_options *options,
					struct ss_recorder **ret);

/*
 * Samples until ss_recorder_stop(), the end of duration_ns, or the end of the target. Works
 * in a thread of its own with signals blocked; the caller waits, with SIGCHLD, SIGTSTP,
 * SIGTTIN and SIGTTOU blocked. The last three stop the process between two ticks, when no
 * thread of the target is held; other threads of the program should block them, too. A
 * spawned target is sampled once before its first instruction and then resumed. The file
 * is complete if this returns NULL; otherwise it ends with its last complete chunk.
 * Errors: DENIED, TRACED, NO_PROCESS, SYSTEM (for example: the disk is full), NO_MEMORY.
 */
SS_API struct ss_error *ss_recorder_run(struct ss_recorder *recorder);

/* Ends ss_recorder_run(). Any thread, and a signal handler, may call it. */
SS_API void ss_recorder_stop(struct ss_recorder *recorder);

/*
 * How long the current read of the target (or of one of its children) has lasted; 0: none
 * is in progress. If memory of the target does not answer it grows without end, and only
 * the end of the program ends the read. Any thread may call it.
 */
SS_API uint64_t ss_recorder_read_ns(const struct ss_recorder *recorder);

SS_API const struct ss_recorder_summary *
ss_recorder_summary(const struct ss_recorder *recorder);

SS_API void ss_recorder_free(struct ss_recorder *recorder);

/*
 * Starts a program, stops it before its first instruction, and opens it as a target. argv
 * ends with NULL; argv[0] is searched in PATH. ss_target_close() kills a child that was
 * never resumed, and leaves one that runs alone. Errors: INVALID (no such program),
 * SYSTEM, NO_MEMORY, and those of ss_target_open().
 */
SS_API struct ss_error *ss_target_spawn(char *const argv[], struct ss_target **ret);

/* Lets a spawned target run. Call it from the thread that spawned it. */
SS_API struct ss_error *ss_target_resume(struct ss_target *target);

/* Waits at most timeout_ms for the end of a spawned target that was resumed, and reaps it.
   *ret is its status as waitpid(2) returns it. False: it has not ended. */
SS_API bool ss_target_wait(struct ss_target *target, unsigned timeout_ms, int *ret);

/* The process id. */
SS_API pid_t ss_target_pid(const struct ss_target *target);

/* Dumps ------------------------------------------------------------------- */

/*
 * Reads the headers and notes, and no more, of the dump that the kernel writes to a pipe
 * (core(5)), into a file in memory. Until the pipe is closed the process stays as it was.
 * Errors: INVALID, UNSUPPORTED, SYSTEM.
 */
SS_API struct ss_error *ss_dump_read_head(int pipe, int *ret);

enum { SS_DUMP_NAME_MAX = 64, SS_DUMP_PATH_MAX = 4096 };

/* Returns a pidfd (pidfd_open(2)) of the process that is dumped: passed, if it is one, as the kernel
   passes it (%F in core_pattern, Linux 6.16); or a new one, which the caller closes; or -1. */
SS_API int ss_dump_find_process(pid_t pid, int passed);

/* Whether the process with that number is the one that is dumped. SIGKILL ends a dump, and then
   the number may be given to another process. */
enum ss_dump_identity {
	SS_DUMP_UNKNOWN, /* without a pidfd, and it did not start before the caller */
	SS_DUMP_GONE,
	SS_DUMP_SAME, /* and what was opened before is of this process */
};

SS_API enum ss_dump_identity ss_dump_identify(pid_t pid, int pidfd);

/* Smaller uids are of the system. */
enum { SS_DUMP_SYSTEM_UIDS = 1000 };

/* What is known about a process besides its dump. */
struct ss_dump_process {
	char name[SS_DUMP_NAME_MAX];	   /* comm; or empty, as the next one */
	char executable[SS_DUMP_PATH_MAX]; /* path as the caller sees it */
	/* Its effective ones; those of root if its memory is protected from its user. */
	uid_t uid;
	gid_t gid;
	int root; /* its root directory (O_PATH); the caller closes it. -1: that of the caller */
	/* Who answers for it: its real user; the creator of its user namespace; or nobody, for a
	   user of the system with another root directory. */
	uid_t account;
};

/* Reads it while the process is there. What cannot be read is empty, or of root. */
SS_API void ss_dump_describe(pid_t pid, struct ss_dump_process *ret);

struct ss_dump_options {
	size_t size;	  /* sizeof(struct ss_dump_options) */
	size_t max_stack; /* bytes to copy from one stack; 0: 16 MiB */
	size_t max_total; /* bytes to copy; 0: 64 MiB */
};

/* A dump and its process, to make a small core file of them. */
struct ss_dump;

/* head: of ss_dump_read_head(); it must stay open. pid 0: nothing is known but the head. options:
   NULL for defaults. Errors: INVALID, UNSUPPORTED, DENIED, SYSTEM, NO_MEMORY. */
SS_API struct ss_error *ss_dump_open(int head, pid_t pid,
				     const struct ss_dump_options *options,
				     struct ss_dump **ret);
SS_API void ss_dump_close(struct ss_dump *dump);

/*
 * Reads memory of the process, for example for frames of runtimes (struct ss_unwind_options).
 * From then on, core files have what was read. Never waits for a file system or a
 * userfaultfd(2). Returns the length of the prefix that was read: 0 beyond 128 MiB in all.
 */
SS_API size_t ss_dump_read(struct ss_dump *dump, uint64_t address, void *bytes,
			   size_t size);

/*
 * Makes a small core file, in memory: the headers and notes, the stacks, locks and other
 * arguments of system calls, the headers of modules, and what ss_dump_read() has read. The caller
 * closes *ret. Errors: INVALID, SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_dump_shrink(struct ss_dump *dump, int *ret);

/* Supervision ------------------------------------------------------------- */

/*
 * A command and all processes that it starts, traced (ptrace(2)) from their beginning, so that
 * a signal that is about to end one of them is seen while its threads and memory still exist.
 * Nothing else about them changes: signals, stops of job control, system calls that a signal
 * would not have interrupted. They run on untraced when the supervisor is freed, or dies.
 *
 * Left alone, together with what they start: programs that would lose the rights of their
 * file (set-user-ID), and debuggers. Another debugger cannot attach to a traced process.
 *
 * All calls are made by one thread, which blocks SIGCHLD and waits for that signal
 * (sigtimedwait(2)); it is the only one that waits for children of the program.
 */
struct ss_supervisor;

/* child: a new child process of the caller, which will execute a program. Without
   ss_supervisor_trace() only its end is seen. Errors: NO_MEMORY. */
SS_API struct ss_error *ss_supervisor_new(pid_t child, struct ss_supervisor **ret);

/* Traces the child from now on: call it before it executes the program. Errors: DENIED,
   SYSTEM. */
SS_API struct ss_error *ss_supervisor_trace(struct ss_supervisor *supervisor);

/* Frees the supervisor; the processes continue untraced. */
SS_API void ss_supervisor_free(struct ss_supervisor *supervisor);

enum ss_supervisor_event_kind {
	SS_SUPERVISOR_CRASH,	 /* a signal is about to end pid, which is held */
	SS_SUPERVISOR_STOPPED,	 /* signal has stopped the command (job control) */
	SS_SUPERVISOR_CONTINUED, /* the command runs again */
	SS_SUPERVISOR_ENDED,	 /* a child of the caller, or a traced process or thread:
				status as of waitpid(2) */
};

struct ss_supervisor_event {
	enum ss_supervisor_event_kind kind;
	pid_t pid;
	int signal;
	int status;
};

/* Handles what has happened, up to the next event. False: nothing more has happened. */
SS_API bool ss_supervisor_next(struct ss_supervisor *supervisor,
			       struct ss_supervisor_event *ret);

/*
 * Stops all threads of a traced process as they stop by themselves or in a capture, until
 * ss_supervisor_release(). A process that crashed is held already. ret: to capture it, in this
 * thread; its threads stay stopped afterwards, so that ss_capture_gather() and
 * ss_capture_extend() find the memory of the capture, also in a child process of the caller.
 * Errors: those of ss_target_open().
 */
SS_API struct ss_error *ss_supervisor_hold(struct ss_supervisor *supervisor, pid_t pid,
					   struct ss_target **ret);
/* Lets it continue, or end. */
SS_API void ss_supervisor_release(struct ss_supervisor *supervisor, pid_t pid);

struct ss_supervised {
	pid_t pid;
	bool traced;
};

/* The command and the processes that it has started, as far as they are traced or their
   parents are alive. The caller frees *ret. Errors: NO_MEMORY, SYSTEM. */
SS_API struct ss_error *ss_supervisor_list(const struct ss_supervisor *supervisor,
					   struct ss_supervised **ret, size_t *ret_count);

/* Sends a signal to one of these processes. */
SS_API void ss_supervisor_signal(const struct ss_supervisor *supervisor, pid_t pid,
				 int signal);

/* Whether the command has got this signal of this sender in the last second, or has it
   pending. */
SS_API bool ss_supervisor_has_received(const struct ss_supervisor *supervisor, int signal,
				       pid_t sender);

/* Progress --------------------------------------------------------------- */

/* The scheduler's counters of each thread of a process. */
struct ss_activity;

/*
 * Reads the counters of all threads. Does not touch the process.
 * Errors: NO_PROCESS, NO_MEMORY, SYSTEM.
 */
SS_API struct ss_error *ss_activity_take(const struct ss_target *target,
					 struct ss_activity **ret);

SS_API void ss_activity_free(struct ss_activity *activity);

/* What a thread did between two readings. */
enum ss_movement {
	SS_MOVEMENT_UNKNOWN = 0, /* the kernel has no schedstat */
	SS_MOVEMENT_NONE,	 /* it has not run */
	SS_MOVEMENT_WOKEN,	 /* it was woken, and waits in the same place again */
	SS_MOVEMENT_BUSY,	 /* it was runnable most of the time */
	SS_MOVEMENT_MOVES,	 /* anything else */
};

/* "none", "woken", ... as in JSON. Never NULL. */
SS_API const char *ss_movement_name(enum ss_movement movement);

/* The worst that applies to a process. See stacksnap-hang(1). */
enum ss_verdict {
	SS_VERDICT_IDLE = 0, /* its threads wait for work */
	SS_VERDICT_MOVING,
	SS_VERDICT_BUSY, /* a thread is runnable most of the time */
	/* a thread or goroutine made no progress, waiting for an application lock; or tasks
	   of asyncio wait for each other */
	SS_VERDICT_BLOCKED,
	SS_VERDICT_STUCK,    /* a thread made no progress, in a wait that is not idle */
	SS_VERDICT_DEADLOCK, /* a cycle of threads that made no progress */
};

/* "idle", "deadlock", ... Never NULL. */
SS_API const char *ss_verdict_name(enum ss_verdict verdict);

struct ss_thread_progress {
	size_t thread; /* index in the last snapshot */
	enum ss_movement movement;
	bool stuck;
	uint64_t run_ns;    /* on a CPU */
	uint64_t ready_ns;  /* waiting for one */
	uint64_t runs;	    /* how often it was put on a CPU */
	uint64_t voluntary; /* context switches: it blocked, */
	uint64_t forced;    /* or was preempted */
	/* Innermost function common to all its stacks, or NULL; one of the program's
	   language, if a runtime executes it */
	const char *within;
	unsigned samples; /* snapshots that contain its stack */
	bool blocked;	  /* it made no progress, waiting for an application lock */
};

struct ss_progress;

/*
 * Compares the counters before and after, with snapshots taken in between, in order of
 * time. All are symbolized; the last one contains all threads and is diagnosed. Counters
 * and snapshots must outlive *ret. Errors: INVALID, NO_MEMORY.
 */
SS_API struct ss_error *ss_progress_new(const struct ss_activity *before,
					const struct ss_activity *after,
					const struct ss_snapshot *const *snapshots,
					size_t count, struct ss_progress **ret);

SS_API void ss_progress_free(struct ss_progress *progress);

SS_API enum ss_verdict ss_progress_verdict(const struct ss_progress *progress);

/* Whether no thread has run and each of them waits, without a time limit, for another
   thread of the process: only a signal handler could end that. */
SS_API bool ss_progress_is_closed(const struct ss_progress *progress);

/* The time between the two readings. */
SS_API uint64_t ss_progress_elapsed_ns(const struct ss_progress *progress);

/* The progress of the thread with that index in the last snapshot. */
SS_API const struct ss_thread_progress *
ss_progress_thread(const struct ss_progress *progress, size_t index);

#ifdef __cplusplus
}
#endif

#endif
