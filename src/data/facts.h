/*
 * What a capture knows about waits of threads besides their stacks: system calls, memory
 * of their arguments, file descriptors. Filled by the privileged rooms, read by
 * diagnose/. Reference-counted, and immutable once a capture has it: snapshots keep it
 * after the capture is freed.
 */
#ifndef SS_DATA_FACTS_H
#define SS_DATA_FACTS_H

#include <stdatomic.h>

#include "arch/arch.h"
#include "base/intern.h"
#include "base/procfs.h"
#include "base/vector.h"
#include "stacksnap.h"

/* Bytes of target memory. */
struct ss_memory_fact {
	uint64_t address;
	size_t size;	      /* 0: unreadable */
	const uint8_t *bytes; /* kept by the facts */
};

/* A process or thread that another one waits for. */
struct ss_process_fact {
	pid_t pid;
	pid_t inner_pid;  /* in its innermost pid namespace; 0: not known */
	pid_t parent_tid; /* of children: the thread that created it */
	char state;	  /* '?': unknown */
	const char *name; /* NULL: unknown */
};

struct ss_thread_facts {
	pid_t tid;
	char state;
	struct ss_syscall call; /* number -1: none, or not known */
	/* the call continues as restart_syscall; call has the original one, if found */
	bool restarted;
	bool worker;	    /* a kernel worker (io_uring, vhost) */
	bool still_in_call; /* it was still in that call when its objects were read */
	struct ss_memory_fact memory[SS_SYSCALL_ARGS]; /* that the arguments point to */
	struct ss_memory_fact lock; /* around the futex on which it is blocked */
	bool lock_shared;	    /* it is in shared memory, or may be */
	unsigned freeze_round;	    /* see struct ss_lock_copy */
	/* the memory is shared, but no other process maps it, and none can open it */
	bool lock_alone;
	/* another process that maps the memory of the lock and has a thread whose id is
	   in the lock word; 0: none */
	pid_t sharer;
	/* a thread of the parent process whose id is in the lock word, of memory that is not
	   shared: fork() copied a lock that the thread held; 0: none */
	pid_t forked_owner;
	/* the id of the thread whose struct pthread the lock of a stdio stream names, in its
	   own pid namespace; 0: none */
	pid_t stream_owner;
	/* did not run between two later checks of all related processes; its wait and
	   lock word are unchanged */
	bool unchanged;
	bool still; /* of another process: it has not run during the observation */
	struct ss_process_fact tracer; /* none if pid is 0 */
	struct ss_process_fact
		last_operator;	    /* of the semaphore or queue for which it waits */
	bool opens_fifo;	    /* it waits for a process that opens the other end */
	enum ss_access fifo_access; /* for reading: SHARED */
	/* The FUSE file system whose server it waits for; "": not known which. NULL: none */
	const char *mount;
	/* Of the file lock for which it waits; the server of mount; of a thread that sleeps: a
	   process that has locked a database of SQLite. Unknown if pid is 0 */
	struct ss_process_fact holder;
	bool holder_known; /* the lock was found; if pid is 0, its owner is not visible */
};

struct ss_socket_fact {
	const char *protocol; /* "TCP", "UDPv6", "UNIX", "NETLINK" ...; NULL: not known */
	bool found;	      /* the following members are known */
	bool listens;	      /* UNIX */
	uint32_t unread;      /* UNIX: bytes that were received; of TCP, inet has it */
	struct ss_net_inet inet;
	const char *path;      /* UNIX: name of this end, or NULL */
	const char *peer_path; /* name of the other end, or NULL */
	uint64_t
		peer_inode; /* of the other end, on this machine; 0: none, or not known */
};

enum { SS_HOLDERS_MAX = 4 };

struct ss_fd_fact {
	int fd;
	enum ss_fd_kind kind;
	const char *name; /* link as in /proc/PID/fd; NULL: unknown */
	uint64_t inode;	  /* pipes, sockets, files */
	uint64_t device;  /* files: major << 32 | minor */
	/* a thread waits for this descriptor alone, or for it and a few others */
	bool resolve_peers;
	struct ss_fdinfo info;
	struct ss_fdinfo_watch *watches; /* EPOLL; kept by the facts, sorted by fd */
	size_t watch_count;
	bool watches_truncated; /* the set has more descriptors */
	struct ss_socket_fact socket;
	/* Processes that have the other end of the pipe or UNIX socket open; the
	   process of a pidfd. */
	struct ss_process_fact holders[SS_HOLDERS_MAX];
	int holder_fds[SS_HOLDERS_MAX]; /* its descriptor of that end; -1: not known */
	size_t holder_count;
	bool holders_truncated; /* there may be others: not all processes were searched */
	/* They are those of the previous capture of a series that still have it; other
	   processes were not searched. */
	bool holders_kept;
};

struct ss_facts {
	atomic_uint references;
	struct ss_facts *origin;   /* of a copy: keeps its strings and blocks alive */
	struct ss_intern *strings; /* for all strings */
	SS_VECTOR(void *) blocks;  /* ss_facts_keep() */
	SS_VECTOR(struct ss_thread_facts) threads;  /* ascending by tid */
	SS_VECTOR(struct ss_fd_fact) fds;	    /* ascending by fd */
	SS_VECTOR(struct ss_process_fact) children; /* if a thread waits for one */
	bool children_known;
	pid_t pid;	       /* of the process itself */
	pid_t parent;	       /* of a process with a forked_owner */
	bool of_another;       /* another process, found by ss_capture_add_related() */
	bool observed;	       /* the last capture of an observation */
	uint64_t time_ns;      /* CLOCK_REALTIME when time limits were read */
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC at the same time; 0: not known */
};

/* Empty facts with one reference, or NULL if memory is exhausted. */
struct ss_facts *ss_facts_new(void);
/* A copy that can be modified while others have references to facts. NULL if memory is
   exhausted. */
struct ss_facts *ss_facts_copy(struct ss_facts *facts);
/* Both accept NULL. */
struct ss_facts *ss_facts_ref(struct ss_facts *facts);
void ss_facts_unref(struct ss_facts *facts);

/* Allocates zeroed memory that lives as long as the facts. NULL if memory is exhausted.
   */
void *ss_facts_keep(struct ss_facts *facts, size_t size);

/* The facts of a thread, or NULL. facts may be NULL. */
const struct ss_thread_facts *ss_facts_find_thread(const struct ss_facts *facts,
						   pid_t tid);

/* The facts of a file descriptor, or NULL. facts may be NULL. */
const struct ss_fd_fact *ss_facts_find_fd(const struct ss_facts *facts, int fd);

/* A descriptor that a thread watches in poll(2) or select(2). */
struct ss_watch {
	int fd;
	bool input;
	bool output;
};

/* Finds the next one from *at on, which is 0 at first. False: no more is known, or it is in another call. A
   program may list a descriptor twice. */
bool ss_facts_next_watch(const struct ss_thread_facts *thread, size_t *at,
			 struct ss_watch *ret);

/* Whether all of them are known. */
bool ss_facts_has_all_watches(const struct ss_thread_facts *thread);

/* Whether a thread reads, fills or watches only pipes whose other ends nobody else has. certain: it is known
   that there is no other process; otherwise, as far as processes were searched. */
bool ss_facts_waits_for_own_pipes(const struct ss_facts *facts,
				  const struct ss_thread_facts *thread, bool certain);

SS_DEFINE_CLEANUP(struct ss_facts, ss_facts, ss_facts_unref)

/*
 * Scheduler counters of each thread of a process, read without affecting it. Comparing
 * two readings shows which threads ran in between.
 */

struct ss_thread_activity {
	pid_t tid;
	char state;
	bool counted;	 /* the counters could be read */
	uint64_t run_ns; /* on a CPU */
	uint64_t ready_ns;
	uint64_t runs;	    /* number of times it was scheduled */
	uint64_t voluntary; /* context switches: voluntary, */
	uint64_t forced;    /* and involuntary */
};

struct ss_activity {
	uint64_t time_ns;			      /* CLOCK_MONOTONIC */
	SS_VECTOR(struct ss_thread_activity) threads; /* ascending by tid */
};

/* The counters of a thread, or NULL. activity may be NULL. */
const struct ss_thread_activity *ss_activity_find(const struct ss_activity *activity,
						  pid_t tid);

#endif
