/*
 * A target: one process that we may look at, with the directories of procfs that
 * are kept open on it. It holds nothing that could disturb the process.
 */
#ifndef SS_TARGET_TARGET_H
#define SS_TARGET_TARGET_H

#include "base/error.h"
#include "base/io.h"
#include "proc/task.h"
#include "stacksnap.h"

struct ss_target {
	pid_t pid;
	uint64_t start_time; /* clock ticks after boot: tells a reused pid */
	pid_t live;	     /* the thread that proc_fd is of: the leader, if it lives */
	int proc_fd;	     /* /proc/LIVE, where exe, root and map_files are */
	int root_fd;	     /* its root directory, also when it has ended; or -1 */
	int task_fd;	     /* /proc/PID/task */
	bool listing;	     /* only what anyone may read is to be had */
	bool spawned;	     /* our child */
	bool held;	     /* which has not begun yet */
};

/* NO_PROCESS if the process has ended or the pid belongs to another one by now. */
struct ss_error *ss_target_check(const struct ss_target *target);

/* Reads a small file of task/TID. False: the thread is gone, or it is not readable. */
bool ss_target_read_task(const struct ss_target *target, pid_t tid, const char *name,
			 struct ss_text *text);

/* Reads task/TID/stat or status below a target. False: the thread is gone. */
bool ss_target_read_stat(const struct ss_target *target, pid_t tid, struct ss_text *text,
			 struct ss_stat *ret);
bool ss_target_read_status(const struct ss_target *target, pid_t tid,
			   struct ss_text *text, struct ss_status *ret);

/* Ends a child that has not begun, and asks how one that has ended did. */
void ss_target_reap(struct ss_target *target);

/* Whether it is about to end, or has: it runs no program any more. */
bool ss_target_is_exiting(const struct ss_target *target);

/* Name and path of the program, to be freed; NULL where they cannot be read. */
void ss_target_describe(const struct ss_target *target, char **name, char **executable);

/* Tells the program that it runs from the one after an exec (ss_stat.program). */
uint64_t ss_target_program(const struct ss_target *target);

/* A living thread of the process (its leader may be a zombie), or 0. */
pid_t ss_target_find_live(const struct ss_target *target);

/* Opens the root directory anew: that of the program that runs now. If the process ends
   before its files are opened, they are found below it still. */
void ss_target_hold_root(struct ss_target *target);

/* Makes proc_fd that of a living thread, and returns it, or 0. */
pid_t ss_target_follow_live(struct ss_target *target);

SS_DEFINE_CLEANUP(struct ss_target, ss_target, ss_target_close)

#endif
