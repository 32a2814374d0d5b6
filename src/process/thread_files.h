/*
 * Files of threads in procfs: read once, or kept open.
 */
#ifndef SS_PROCESS_THREAD_FILES_H
#define SS_PROCESS_THREAD_FILES_H

#include "base/buffer.h"
#include "base/procfs.h"
#include "base/vector.h"

struct ss_target;

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
