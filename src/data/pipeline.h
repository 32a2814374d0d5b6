/*
 * What only the library's own pipeline (interpret/) calls of the rooms that capture, unwind and
 * diagnose: between a capture and its snapshot.
 */
#ifndef SS_DATA_PIPELINE_H
#define SS_DATA_PIPELINE_H

#include "stacksnap.h"

struct ss_cache;
#include "data/gather_plan.h"

/* Where a stack continues beyond its copy: the thread's tid and missing. */
struct ss_stack_request {
	pid_t tid;
	uint64_t address;
};

/*
 * Reads copied memory: stacks, and what a gather plan copied. Returns how many of the size
 * bytes at address are in the capture, as a prefix; 0: none.
 */
size_t ss_capture_read(const struct ss_capture *capture, uint64_t address,
			      void *bytes, size_t size);

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
				       struct ss_session *session,
				       struct ss_gather_plan *ret);

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
 * Reads other processes that threads of the capture wait for: the holder of a file lock
 * or of a lock in shared memory, the only other end of a pipe or UNIX socket, the only
 * child. Reads at most four processes of the same user, directly or through one
 * another, and stops none. Omits processes that may not be read. A second call does
 * nothing. ss_snapshot_add_related() interprets them.
 */
void ss_capture_add_related(struct ss_capture *capture, struct ss_target *target);

/* How many bytes of memory its copies of the process take. */
uint64_t ss_capture_size(const struct ss_capture *capture);

/* Finds in the cache what is known about the modules of a capture. Call it after the last
   change of the capture, before ss_capture_unwind(). uid: the owner of the process, see
   ss_target_owner(). What the files of one user's processes contain is never used for
   those of another user. */
void ss_cache_attach(struct ss_cache *cache, struct ss_capture *capture, uid_t uid);

/*
 * Writes the stacks of a snapshot to a file, before ss_snapshot_symbolize(), with the functions,
 * locks and tasks of runtimes, if the process has any; else nothing. With
 * ss_capture_add_stacks() the capture gets them, and ss_capture_unwind() takes them from
 * there: so a process in which functions of runtimes can be read only now (read of struct
 * ss_unwind_options) can be interpreted later. Unwind with native. The bytes are not
 * looked at before ss_capture_unwind(); they may be untrusted, but must be of the same build
 * of the library. *ret: whether there are any. Errors: SYSTEM, INVALID (more than 128 MiB),
 * NO_MEMORY.
 */
struct ss_error *ss_snapshot_save_stacks(const struct ss_snapshot *snapshot, int fd);

struct ss_error *ss_capture_add_stacks(struct ss_capture *capture, int fd, bool *ret);

/* Whether a capture has such stacks. One of a series, in which no thread has run since the one before
   (previous of struct ss_capture_options), has those of that one. */
bool ss_capture_has_stacks(const struct ss_capture *capture);

/* Whether a capture of a series has other modules than the one before: there may be a runtime that
   was not there. */
bool ss_capture_has_other_modules(const struct ss_capture *capture);

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
 * (__register_frame()), if the snapshot has frames of JIT code and libgcc is there. Unwind
 * the capture again after the plan was executed.
 */
enum ss_jit_plan ss_snapshot_plan_jit(const struct ss_snapshot *snapshot,
				      const struct ss_capture *capture,
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
 * in first, an earlier snapshot of the process, and have not run in between. Call it after
 * ss_snapshot_diagnose() of last, and before ss_progress_new().
 */
void ss_snapshot_compare_goroutines(struct ss_snapshot *last,
				    const struct ss_snapshot *first);

/*
 * Identifies the files of modules without a build-id, see struct ss_file_identity, so that
 * ss_snapshot_record() writes it. Reads their headers and symbol tables, like
 * ss_snapshot_symbolize(). Call it before the snapshot is shared between threads.
 */
void ss_snapshot_identify_files(struct ss_snapshot *snapshot, struct ss_session *session);

#endif
