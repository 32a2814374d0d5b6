/*
 * What only the library's own pipeline (interpret/) calls of the rooms that capture, unwind and
 * diagnose: between a capture and its snapshot.
 */
#ifndef SS_DATA_PIPELINE_H
#define SS_DATA_PIPELINE_H

#include "data/gather.h"
#include "stacksnap.h"

struct ss_activity;
struct ss_cache;
struct ss_capture;

/* The steps of a snapshot ------------------------------------------------------ */

/*
 * The effective user and group id of the process, in the user namespace of the caller.
 * A program that interprets a capture needs no other privileges than theirs. Errors:
 * NO_PROCESS.
 */
struct ss_error *ss_target_owner(const struct ss_target *target, uid_t *ret_uid,
				 gid_t *ret_gid);

struct ss_capture_options {
	size_t size; /* sizeof(struct ss_capture_options) */
	enum ss_mode mode;
	unsigned timeout_ms;	  /* limit for the whole freeze; 0: 1000 */
	size_t max_stack;	  /* bytes to copy from one stack; 0: 256 KiB */
	size_t max_total;	  /* bytes to copy from all stacks; 0: 256 MiB */
	unsigned max_frames;	  /* LIVE only: frames per thread; 0: no limit */
	ss_thread_filter *filter; /* NULL: all threads */
	void *filter_data;
	bool may_be_empty; /* it is no error if the filter excludes all threads */
	bool no_waits;	   /* skip what only ss_snapshot_diagnose() needs: locks and file
			  descriptors */
	const struct ss_gather_plan *plan; /* more memory to copy; NULL: none */
	/* Bytes to copy from one stack whose end is known, because it has a mapping of its
	   own, or was needed; 0: 8 MiB, or max_stack if that is
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
struct ss_error *ss_capture_take(struct ss_target *target,
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
struct ss_error *ss_capture_complete(struct ss_capture *capture, struct ss_target *target,
				     const struct ss_capture_options *options,
				     const pid_t *tids, size_t count);

/* Snapshots of the capture stay valid. */
void ss_capture_free(struct ss_capture *capture);

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
	   whether it belongs to the moment of the capture. ss_snapshot_take() sets these. NULL:
	   only what was copied is used. */
	ss_memory_read_function *read;
	ss_thread_check_function *check;
	void *read_data;
	/* Keep the native frames of interpreters besides the functions that they execute. */
	bool native;
	bool no_runtimes; /* native frames only */
	bool no_names;	  /* of threads, as their runtimes have them */
	/* As read, but the bytes may have been read at any time since the capture; or NULL. With
	   it, read is for proofs that what was read before has not changed. */
	ss_memory_read_function *read_early;
	bool tasks; /* read the tasks of asyncio, too */
	/* What is planned for runtimes is for later captures of the process,
	   too: it copies the frames of all threads that run then. */
	bool many;
	/* As read, for many pieces at once; or NULL. With it and read_early, what was read for
	   captures of the session before is only compared. */
	ss_memory_read_ranges_function *read_ranges;
};

/*
 * Unwinds every thread of a capture. The capture and the session may be freed before the
 * snapshot. Errors: NO_MEMORY, INVALID.
 */
struct ss_error *ss_capture_unwind(const struct ss_capture *capture,
				   struct ss_session *session,
				   const struct ss_unwind_options *options,
				   struct ss_snapshot **ret);

/*
 * Sets symbol, file, line and column of the frames, and inserts frames for inlined
 * functions, innermost first; that invalidates pointers to frames. An unknown name stays
 * NULL. flags: enum ss_symbolize_flags. Call it at most once for a snapshot, before the
 * snapshot is shared between threads. Errors: NO_MEMORY, INVALID.
 */
struct ss_error *ss_snapshot_symbolize(struct ss_snapshot *snapshot,
				       struct ss_session *session, unsigned flags);

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
struct ss_error *ss_snapshot_diagnose(struct ss_snapshot *snapshot,
				      const struct ss_diagnose_options *options);

/* Between these steps ------------------------------------------------------------ */

/* Where a stack continues beyond its copy: the thread's tid and missing. */
struct ss_stack_request {
	pid_t tid;
	uint64_t address;
};

/*
 * Reads copied memory: stacks, and what a gather plan copied. Returns how many of the size
 * bytes at address are in the capture, as a prefix; 0: none.
 */
size_t ss_capture_read(const struct ss_capture *capture, uint64_t address, void *bytes,
		       size_t size);

/* Whether the file is what proof of a ss_file_opener says, by its build-id or its checksum.
   The file and proof are untrusted input. fd stays open. */
bool ss_file_matches(int fd, const char *proof);

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
bool ss_capture_plan_goroutines(const struct ss_capture *capture,
				struct ss_session *session, struct ss_gather_plan *ret);

/*
 * Opens a process that ss_target_open() refuses with DENIED, or whose capture failed
 * with TRACED. A capture of it, in any mode, lists the threads with name and state, and
 * stops nothing; each stack ends with SS_END_DENIED. Errors: INVALID, NO_PROCESS,
 * KERNEL_THREAD, SELF, ZOMBIE, DENIED (not even threads and states may be read),
 * NO_MEMORY, SYSTEM.
 */
struct ss_error *ss_target_open_listing(pid_t pid, struct ss_target **ret);

/* Checks an untrusted plan. Errors: INVALID. */
struct ss_error *ss_gather_plan_check(const struct ss_gather_plan *plan);

/*
 * For a copy of the capture that another process has, such as a sandboxed child: writes what
 * the last ss_capture_complete() has added to it, as bytes that ss_capture_apply_completion()
 * adds to the copy. Returns their number. 0: they do not fit, or it added more than registers
 * (stacks, files of modules), so a new copy is needed. The second function returns false if
 * the bytes are not valid; it believes them otherwise.
 */
size_t ss_capture_copy_completion(const struct ss_capture *capture, void *ret,
				  size_t max);

bool ss_capture_apply_completion(struct ss_capture *capture, const void *bytes,
				 size_t size);

/*
 * Executes a plan after the capture, without stopping a thread, and adds what it copies in
 * place of what an earlier plan has copied. Threads that run may have changed it
 * meanwhile. Steps cannot begin at a register or thread pointer. Call it before the capture
 * is shared. Errors: NO_PROCESS, INVALID, NO_MEMORY.
 */
struct ss_error *ss_capture_gather(struct ss_capture *capture, struct ss_target *target,
				   const struct ss_gather_plan *plan);

/*
 * Copies more of stacks that end where their copy ends, in the same or in another mapping.
 * Stops no thread. Takes only stacks of threads that sleep, and that provably have not run
 * since (by the scheduler's counter); of a thread that was stopped, only if it is where it
 * was and its stack has the same bytes. ret: how many stacks have grown; unwind the
 * capture again if there are any. Ends at max_deep bytes of each stack. Pass the options of
 * the capture; call it before the capture is shared. Errors: NO_PROCESS, INVALID,
 * NO_MEMORY.
 */
struct ss_error *ss_capture_extend(struct ss_capture *capture, struct ss_target *target,
				   const struct ss_capture_options *options,
				   const struct ss_stack_request *requests, size_t count,
				   size_t *ret);

/*
 * Reads memory of the target after the capture, without stopping a thread: what unwinding
 * needs for the frames of runtimes. Its functions have the types that struct ss_unwind_options
 * wants, with the reader as data. Memory that is not present is not read, and the total is
 * limited. Capture and target must outlive the reader. Errors: NO_PROCESS, NO_MEMORY.
 */
struct ss_late_reader;
struct ss_error *ss_late_reader_new(const struct ss_capture *capture,
				    struct ss_target *target,
				    struct ss_late_reader **ret);
void ss_late_reader_free(struct ss_late_reader *reader);
size_t ss_late_reader_read(void *data, uint64_t address, void *bytes, size_t size);
bool ss_late_reader_check(void *data, pid_t tid);
/* From now on all of the memory may be read, for that time; not pages in swap, which would bring
   them back into memory. */
void ss_late_reader_read_all(struct ss_late_reader *reader, unsigned timeout_ms);

/*
 * Reads other processes that threads of the capture wait for: the holder of a file lock
 * or of a lock in shared memory, the only other end of a pipe or UNIX socket, children
 * if there are few. Reads at most twelve processes of the same user, directly or through one
 * another, and stops none. Omits processes that may not be read. A second call does
 * nothing. ss_snapshot_add_related() interprets them.
 */
void ss_capture_add_related(struct ss_capture *capture, struct ss_target *target);

/* How often threads of other processes had run. */
struct ss_run_count {
	pid_t tid;
	uint64_t runs; /* 0: not known */
};

struct ss_run_counts {
	struct ss_run_count *items;
	size_t count;
	size_t capacity;
};

/* For an observation: takes the counts from the processes that ss_capture_add_related() has added to its
   first capture, and removes these; then marks the threads of those of its last capture that have not run
   since. The facts of that capture must not be shared yet. */
void ss_capture_take_counts(struct ss_capture *capture, struct ss_run_counts *ret);
void ss_capture_compare_counts(struct ss_capture *capture,
			       const struct ss_run_counts *before);

/*
 * Reads the scheduler's counters of all threads of a process. Does not touch the process. Errors:
 * NO_PROCESS, NO_MEMORY, SYSTEM.
 */
struct ss_error *ss_activity_take(const struct ss_target *target,
				  struct ss_activity **ret);
void ss_activity_free(struct ss_activity *activity);

/* How many bytes of memory its copies of the process take. */
uint64_t ss_capture_size(const struct ss_capture *capture);

/* Finds in the cache what is known about the modules of a capture. Call it after the last
   change of the capture, before ss_capture_unwind(). uid: the owner of the process, see
   ss_target_owner(). What the files of one user's processes contain is never used for
   those of another user. */
void ss_cache_attach(struct ss_cache *cache, struct ss_capture *capture, uid_t uid);

/*
 * Gives a capture the stacks of a snapshot that ss_snapshot_send() has written to a file before
 * ss_snapshot_symbolize(), with the functions, locks and tasks of runtimes. ss_capture_unwind()
 * takes them from there: so a process in which functions of runtimes can be read only now (read of
 * struct ss_unwind_options) can be interpreted later. Unwind with native. The bytes are not
 * looked at before ss_capture_unwind(); they may be untrusted, but must be of the same build
 * of the library. *ret: whether there are any. Errors: SYSTEM, INVALID (more than 128 MiB),
 * NO_MEMORY.
 */
struct ss_error *ss_capture_add_stacks(struct ss_capture *capture, int fd, bool *ret);

/* Whether a capture has such stacks. One of a series, in which no thread has run since the one before
   (previous of struct ss_capture_options), has those of that one. */
bool ss_capture_has_stacks(const struct ss_capture *capture);

/* Whether a capture of a series has other modules than the one before, or files that no stack led to
   before: there may be a runtime that was not known. */
bool ss_capture_has_new_files(const struct ss_capture *capture);

/*
 * Unwinds and symbolizes the other processes that ss_capture_add_related() has read, so that
 * ss_snapshot_diagnose() can follow waits into them. Call it at most once, between
 * ss_snapshot_symbolize() and ss_snapshot_diagnose(), with the capture of the snapshot
 * and the flags of the former. Errors: NO_MEMORY, INVALID.
 */
struct ss_error *ss_snapshot_add_related(struct ss_snapshot *snapshot,
					 const struct ss_capture *capture,
					 struct ss_session *session, unsigned flags);

/*
 * A plan that copies the unwind information which JIT compilers registered with libgcc
 * (__register_frame()) or for debuggers (__jit_debug_descriptor), if the snapshot has frames of
 * JIT code. Unwind the capture again after the plan was executed.
 */
enum ss_jit_plan ss_snapshot_plan_jit(const struct ss_snapshot *snapshot,
				      const struct ss_capture *capture,
				      const struct ss_session *session,
				      struct ss_gather_plan *ret);

/*
 * A plan that copies the frames of runtimes together with the stacks, if threads of the
 * snapshot ran while they were captured: their frames cannot be read later. Capture again
 * with the plan. False: no plan is needed, or the capture was made with one. With many of
 * struct ss_unwind_options, it was made with the same one; threads that start and end all the
 * time make new ones, so the caller needs a limit.
 */
bool ss_snapshot_plan_runtimes(const struct ss_snapshot *snapshot,
			       const struct ss_capture *capture,
			       struct ss_gather_plan *ret);

/*
 * Marks as blocked the goroutines of last that wait for a lock, did so with the same stack
 * in first, an earlier snapshot of the process, and have not run in between; not if another
 * one that waited with this stack has run: the lock changes hands. Call it after
 * ss_snapshot_diagnose() of last, and before ss_progress_new(). False without memory.
 */
bool ss_snapshot_compare_goroutines(struct ss_snapshot *last,
				    const struct ss_snapshot *first);

/*
 * Identifies the files of modules without a build-id, see struct ss_file_identity, so that
 * ss_snapshot_record() writes it. Reads their headers and symbol tables, like
 * ss_snapshot_symbolize(). Call it before the snapshot is shared between threads.
 */
void ss_snapshot_identify_files(struct ss_snapshot *snapshot, struct ss_session *session);

/*
 * Texts about modules that the cache keeps with their names, for instance the package that a
 * module belongs to. key: what the text depends on; a text that was added with another key is
 * not found. Call both after ss_snapshot_symbolize(), with its session. find: false: there is
 * none. *ret may be NULL, if that was added, and is valid as long as the session.
 */
bool ss_session_find_note(struct ss_session *session, const struct ss_snapshot *snapshot,
			  size_t module, uint64_t key, const char **ret);
void ss_session_add_note(struct ss_session *session, const struct ss_snapshot *snapshot,
			 size_t module, uint64_t key, const char *text);

#endif
