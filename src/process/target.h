/*
 * A target: a process that may be captured, with open procfs directories. An open target
 * does not affect the process.
 */
#ifndef SS_PROCESS_TARGET_H
#define SS_PROCESS_TARGET_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "base/procfs.h"
#include "base/vector.h"
#include "stacksnap.h"

struct ss_arch;

enum { SS_UNRESPONSIVE_MAX = 64 };

/* A file system whose server did not respond, or a file that nobody permitted to open
   (process/files.h). */
struct ss_unresponsive {
	uint64_t device; /* as in maps */
	uint64_t inode;	 /* 0: all files of the device */
	uint64_t since_ns;
};

struct ss_target {
	pid_t pid;
	uint64_t start_time;	    /* clock ticks after boot: detects a reused pid */
	const struct ss_arch *arch; /* of its program; see ss_target_find_arch() */
	pid_t live;		    /* the thread of proc_fd: the leader if it is alive */
	int procfs_fd;		    /* /proc, for other processes */
	int proc_fd;		    /* /proc/LIVE, which has exe, root and map_files */
	int root_fd;  /* its root directory, even after it has ended; or -1 */
	int task_fd;  /* /proc/PID/task */
	int keep_max; /* ss_io_keep_max() when the target was opened */
	bool listing; /* only world-readable data is available */
	bool spawned; /* our child */
	/* a child that ss_target_spawn() started; not resumed yet */
	bool stopped_at_exec;
	struct ss_unresponsive unresponsive[SS_UNRESPONSIVE_MAX]; /* a ring */
	size_t unresponsive_count;
	/* The calling thread traces all its threads (crash/): a capture is made in this
	   thread, and leaves those that it stopped as they are. */
	bool held;
	int held_mem_fd;	    /* of a held process: its /proc/PID/mem; or -1 */
	struct ss_kept_files *kept; /* between the captures of a series; or NULL */
	struct ss_crash crash; /* of a held process: the signal that is about to end it */
};

/* NO_PROCESS if the process has ended, or if the pid was reused. */
struct ss_error *ss_target_check(const struct ss_target *target);

/* The error if the process has no readable thread: it has ended, or this program has no
   descriptor left to read it. */
struct ss_error *ss_target_missing(const struct ss_target *target);

/* Whether the page with this address is in memory or in swap; false also if this cannot be
   read. */
bool ss_target_has_page(const struct ss_target *target, uint64_t address);

/* Whether the process is exiting, or has ended. */
bool ss_target_is_exiting(const struct ss_target *target);

/*
 * Whether the process has been forked a moment ago and will probably execute a program
 * next. If a user without privileges traces it then, the program gets no rights from its
 * file: no set-user-ID, no capabilities (execve(2)).
 */
bool ss_target_will_execute(const struct ss_target *target);

/* Name and path of the program, or NULL if unreadable. The caller frees them. */
void ss_target_describe(const struct ss_target *target, char **name, char **executable);

/* Sets arch again: execve() may have changed it. UNSUPPORTED: a program of another processor. */
struct ss_error *ss_target_find_arch(struct ss_target *target);

/* A number that identifies the program and that execve() changes (ss_stat.program). */
uint64_t ss_target_program(const struct ss_target *target);

/*
 * Whether a process still has the memory of maps_fd (/proc/PID/maps): execve() replaces
 * it, and exit drops it. The memory may outlive the process: a child of vfork() shares
 * that of its parent. program: as ss_target_program() said when they were opened.
 */
bool ss_target_has_memory(const struct ss_target *target, uint64_t program, int maps_fd);

/* Returns a living thread of the process (its leader may be a zombie), or 0. */
pid_t ss_target_find_live(const struct ss_target *target);

/* Opens the root directory again, so that files below it can be opened even after the
   process has ended. */
void ss_target_open_root(struct ss_target *target);

/* Reopens proc_fd for a living thread if necessary. Returns that thread, or 0. */
pid_t ss_target_reopen_live(struct ss_target *target);

SS_DEFINE_CLEANUP(struct ss_target, ss_target, ss_target_close)

struct ss_children {
	SS_VECTOR(pid_t) pids;
};

/* Stores the living children in ret; none if the kernel lacks CONFIG_PROC_CHILDREN.
   Returns false if memory is exhausted. */
bool ss_target_list_children(const struct ss_target *target, struct ss_children *ret);

/*
 * Files of threads in procfs: read once, or kept open.
 */

struct ss_target;

/* Reads the call in which a thread is. Returns false as ss_target_read_task(). */
bool ss_target_read_syscall(const struct ss_target *target, pid_t tid,
			    struct ss_buffer *text, struct ss_syscall_text *ret);

/* Makes a call that stands for several the one that is meant. */
void ss_target_unfold(const struct ss_target *target, struct ss_syscall_text *call);

/* Reads a small file of task/TID. Returns false if the thread is gone, or if it is not
   readable. */
bool ss_target_read_task(const struct ss_target *target, pid_t tid, const char *name,
			 struct ss_buffer *text);

/* Read task/TID/stat or status. Return false if the thread is gone. */
bool ss_target_read_stat(const struct ss_target *target, pid_t tid,
			 struct ss_buffer *text, struct ss_stat *ret);
bool ss_target_read_status(const struct ss_target *target, pid_t tid,
			   struct ss_buffer *text, struct ss_status *ret);

/* The state of a thread (proc_pid_stat(5)), or 0 if it is gone. Does not allocate. */
char ss_target_peek_state(const struct ss_target *target, pid_t tid);

/* Opens a file of a thread, close-on-exec. -1 if the thread is gone. */
int ss_target_open_task(const struct ss_target *target, pid_t tid, const char *name);

/* Whether the process of a status file is writing a core dump (Linux 4.15), of any of its
   threads: all exist until the dump is complete. Does not allocate; false for -1. */
bool ss_target_dumps_core(int status_fd);

/*
 * Files of threads that stay open from one capture of a target to the next. Reading an open
 * file takes a fifth of the time of opening, reading and closing it. And an open file proves
 * which thread it is: after the end of the thread it cannot be read, even if another thread has
 * got the same id.
 */

struct ss_gather;
struct ss_page_cache;

/* Descriptors + 1; 0: not open. */
struct ss_kept_thread {
	pid_t tid;
	int stat;
	int schedstat;
	int syscall; /* not in a series */
};

struct ss_kept_files {
	SS_VECTOR(struct ss_kept_thread) threads; /* ascending by tid */
	int maps_fd;				  /* -1: not open */
	uint64_t program; /* that it belongs to, see ss_target_program() */
	/* Memory for stacks, that has been faulted in up to scratch_ready. NULL: none */
	void *scratch;
	size_t scratch_size;
	size_t scratch_ready;
	/* What executes a gather plan: its memory has been faulted in, too. NULL: none */
	struct ss_gather *gather;
	struct ss_page_cache *pages;
};

struct ss_kept_files *ss_kept_files_new(void); /* NULL: no memory */
void ss_kept_files_free(struct ss_kept_files *kept);

/* Closes all. */
void ss_kept_files_clear(struct ss_kept_files *kept);

/* Moves the files of a thread to the caller. Does not allocate. kept may be NULL. */
void ss_kept_files_take(struct ss_kept_files *kept, struct ss_kept_thread *thread);

/* Closes the files that were not taken, and keeps those of these threads instead, which are in
   any order. */
void ss_kept_files_replace(struct ss_kept_files *kept, struct ss_kept_thread *threads,
			   size_t count);

/* How often the thread was scheduled; 0: its file is not kept, or it has ended. kept may be
   NULL. */
uint64_t ss_kept_files_count_runs(const struct ss_kept_files *kept, pid_t tid);

/* Read its open files. 0, false: it has ended, or the file is not open. */
uint64_t ss_kept_thread_count_runs(const struct ss_kept_thread *thread);
bool ss_kept_thread_read_stat(const struct ss_kept_thread *thread, struct ss_stat *ret);
bool ss_kept_thread_read_syscall(const struct ss_kept_thread *thread,
				 struct ss_syscall_text *ret);

void ss_kept_thread_close(struct ss_kept_thread *thread);

#endif
