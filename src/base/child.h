/*
 * Child processes: the only place that forks. A child runs a function of this program, which
 * may execute another program, with the signals, descriptors and standard streams that its
 * options say, and ends with the value that the function returns. Exit handlers of
 * this program are left alone.
 *
 * A child may block for ever in the kernel: on a file whose server (FUSE, NFS) does not
 * respond, or on a disk that is gone. In such a call not even SIGKILL ends a process, so that
 * it must be abandoned: ss_child_end() never waits for it.
 *
 * The kernel keeps the id of a child until it was waited for. So no descriptor of the process
 * is needed to send it signals.
 */
#ifndef SS_BASE_CHILD_H
#define SS_BASE_CHILD_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

/* What connects both processes. Its end tells one that the other one has ended. */
enum ss_child_channel {
	SS_CHILD_NO_CHANNEL,
	SS_CHILD_WRITES,  /* a pipe */
	SS_CHILD_READS,	  /* a pipe */
	SS_CHILD_STREAM,  /* a pair of sockets (unix(7)) */
	SS_CHILD_PACKETS, /* the same; messages have boundaries */
};

/* For streams, instead of a descriptor: the child's end of the channel; an empty file, in which
   nobody reads what is written. */
enum { SS_CHILD_CHANNEL = -1, SS_CHILD_NOWHERE = -2 };

struct ss_child_options {
	enum ss_child_channel channel;
	int streams[3];	      /* replace standard input, output and error; 0: stays */
	int death_signal;     /* when the thread that started it ends; 0: none */
	const sigset_t *mask; /* NULL: that of the caller */
	/* All signals but those of faults: what the terminal sends is for the parent. */
	bool block_signals;
	/* For functions that print: writes what is in the buffers of streams before, so that
	   nothing is written twice, and afterwards. */
	bool flush;
	/* Starts on the CPU of the caller (struct ss_cpu_pin), and may leave it. */
	bool on_this_cpu;
	/* Closes all descriptors except its end of the channel and these, so that nothing of
	   its parent's stays open if it is abandoned. Negative ones are ignored. */
	bool close_files;
	const int *keep;
	size_t keep_count;
};

/* channel: its end, close-on-exec; -1: none. Returns the exit status. */
typedef int ss_child_function(void *data, int channel);

struct ss_child {
	pid_t pid;	 /* 0: not started, or waited for */
	int channel;	 /* the parent's end, close-on-exec; -1: none */
	int status;	 /* after the end, as of waitpid(2) */
	uint64_t cpu_ns; /* after the end */
	/* Of ss_child_blocked_ns(): */
	uint64_t looked_ns; /* the last look, and what it has seen */
	uint64_t switches;  /* how often it had blocked */
	bool was_blocked;
	uint64_t blocked_ns; /* for how long in the same call */
};

#define SS_NO_CHILD                                                                      \
	{                                                                                \
		.channel = -1                                                            \
	}

/* Errors: SYSTEM. */
struct ss_error *ss_child_start(const struct ss_child_options *options,
				ss_child_function *function, void *data,
				struct ss_child *ret);

/* In a child: lowers a limit of resources for good (setrlimit(2)). That of memory stays with
   AddressSanitizer, which reserves terabytes of address space. */
void ss_child_limit(int resource, uint64_t soft, uint64_t hard);

/* Descriptors in a message, at most as many as the kernel allows (SCM_MAX_FD). */
struct ss_child_files {
	size_t count;
	int items[253];
	bool truncated; /* there were more, but no room for them (ulimit -n) */
};

/* sendmsg(2) over a channel of sockets, without SIGPIPE. files: NULL, or what is sent along. */
ssize_t ss_child_send(int channel, struct iovec *parts, size_t count,
		      const struct ss_child_files *files);

/* recvmsg(2): the descriptors are close-on-exec, and the caller's. */
ssize_t ss_child_receive(int channel, void *bytes, size_t size, int flags,
			 struct ss_child_files *ret);

/* Sends a signal, unless the child was waited for. */
void ss_child_signal(const struct ss_child *child, int signal);

enum { SS_CHILD_FOREVER = -1 };

/* Waits until the child has ended, at most timeout_ms (0: only looks). True: it has, and its
   status is set; 0 if other code of the program has waited for it. */
bool ss_child_wait(struct ss_child *child, int timeout_ms);

/* Kills the child, if it runs, waits until it has ended, and closes the channel. False: it is
   blocked and was abandoned; its status is that of a process that SIGKILL has ended. */
bool ss_child_end(struct ss_child *child);

/* How long the child has been blocked in one call, as far as earlier looks can tell: look a
   few times a second. 0: it runs, waits for a CPU, or has ended. One that a signal has stopped is
   continued. */
uint64_t ss_child_blocked_ns(struct ss_child *child);

/* After the end: the exit status; 128 and the number of the signal that has ended it. */
int ss_child_exit_status(const struct ss_child *child);

/*
 * Starts threads and child processes on the current CPU. The scheduler places a new
 * task on the least loaded CPU, which is often the one of a thread of the target; that
 * thread would then wait until the scheduler moves one of the two. A task started here
 * delays only the caller, which is about to wait for it anyway.
 */

struct ss_cpu_pin {
	cpu_set_t saved;
	bool pinned; /* else nothing was changed */
};

/* Restricts the calling thread, and the tasks that it starts, to the current CPU. */
void ss_cpu_pin_begin(struct ss_cpu_pin *pin);
/* Restores the affinity of the calling thread. A task started in between calls this for
   itself: it has inherited the restriction. */
void ss_cpu_pin_end(const struct ss_cpu_pin *pin);

#endif
