/*
 * A target: a process that may be captured, with open procfs directories. An open target
 * does not affect the process.
 */
#ifndef SS_PROCESS_TARGET_H
#define SS_PROCESS_TARGET_H

#include "base/error.h"
#include "base/io.h"
#include "base/procfs.h"
#include "base/vector.h"
#include "process/thread_files.h"
#include "stacksnap.h"

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
	uint64_t start_time; /* clock ticks after boot: detects a reused pid */
	pid_t live;	     /* the thread of proc_fd: the leader if it is alive */
	int procfs_fd;	     /* /proc, for other processes */
	int proc_fd;	     /* /proc/LIVE, which has exe, root and map_files */
	int root_fd;	     /* its root directory, even after it has ended; or -1 */
	int task_fd;	     /* /proc/PID/task */
	int keep_max;	     /* ss_io_keep_max() when the target was opened */
	bool listing;	     /* only world-readable data is available */
	bool spawned;	     /* our child */
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

#endif
