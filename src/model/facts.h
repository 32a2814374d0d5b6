/*
 * What a capture knows about the waiting of threads, beside their stacks: system calls,
 * what their arguments point to, what their file descriptors are. Filled by the
 * privileged rooms, read by diagnose/. Reference-counted, and immutable once a capture
 * holds it: the snapshot keeps it when the capture is gone.
 */
#ifndef SS_MODEL_FACTS_H
#define SS_MODEL_FACTS_H

#include <stdatomic.h>

#include "arch/arch.h"
#include "proc/fdinfo.h"
#include "proc/net.h"
#include "base/intern.h"
#include "base/vector.h"
#include "stacksnap.h"

/* Bytes of target memory. */
struct ss_memory_fact {
	uint64_t address;
	size_t size;	      /* 0: none could be read */
	const uint8_t *bytes; /* kept by the facts */
};

/* A process, or thread, that another one waits for. */
struct ss_process_fact {
	pid_t pid;
	pid_t inner_pid;  /* in its innermost pid namespace; 0: not known */
	pid_t parent_tid; /* of children: the thread that made it */
	char state;	  /* '?': not known */
	const char *name; /* NULL: not known */
};

struct ss_thread_facts {
	pid_t tid;
	char state;
	struct ss_syscall call; /* number -1: none, or not known */
	bool restarted; /* call goes on as restart_syscall; if its number is another one,
			   that was found out */
	bool worker;	/* the kernel's own, for io_uring or vhost */
	bool stayed;	/* it was still in that call when its objects were looked at */
	struct ss_memory_fact memory[SS_SYSCALL_ARGS]; /* to which that argument points */
	struct ss_memory_fact lock; /* around the futex that it is blocked on */
	bool lock_shared;	    /* it lies in memory that other processes may have */
	unsigned moment;	    /* see struct ss_lock_copy */
	pid_t sharer; /* another process, which has the memory that the lock lies in and a
			 thread with an id that the lock names; 0: none is known */
	bool stood_still; /* in this wait, with the same in its lock, from one later look at
			     all threads of all processes in question to another */
	struct ss_process_fact tracer; /* pid 0: none */
	struct ss_process_fact holder; /* of the file lock that it waits for; pid 0 */
	bool holder_known; /* that lock was found: pid 0 is a holder not seen */
};

/* What is at the other end of a file descriptor, or of any file, in words of the kernel.
 */
enum ss_fd_kind {
	SS_FD_UNKNOWN, /* closed by now, or it could not be read */
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

struct ss_socket_fact {
	const char *protocol; /* "TCP", "UDPv6", "UNIX", "NETLINK" ...; NULL: not known */
	bool found;	      /* the rest is known */
	bool listens;	      /* UNIX */
	struct ss_net_inet inet;
	const char *path;      /* UNIX: name of this end, or NULL */
	const char *peer_path; /* name of the other end, or NULL */
	uint64_t peer_inode;   /* UNIX: of the other end; 0: none, or not known */
};

enum { SS_HOLDERS_MAX = 4 };

struct ss_fd_fact {
	int fd;
	enum ss_fd_kind kind;
	const char *name; /* path, or the kernel's word for it; NULL: not known */
	uint64_t inode;	  /* pipes, sockets, files */
	uint64_t device;  /* files: major << 32 | minor */
	bool followed;	  /* a thread waits for it alone, or with few others */
	struct ss_fdinfo info;
	struct ss_fdinfo_watch *watches; /* EPOLL; kept by the facts, by ascending fd */
	size_t watch_count;
	bool watches_cut; /* there are more */
	struct ss_socket_fact socket;
	/* Processes that hold the other end of a pipe or of a UNIX socket; of a pidfd the
	   process that it stands for. */
	struct ss_process_fact holders[SS_HOLDERS_MAX];
	size_t holder_count;
	bool holders_cut; /* there may be others: not all processes could be looked at */
};

struct ss_facts {
	atomic_uint references;
	struct ss_intern *strings;		    /* what the facts point to */
	SS_VECTOR(void *) blocks;		    /* bytes that are kept; owned */
	SS_VECTOR(struct ss_thread_facts) threads;  /* ascending by tid */
	SS_VECTOR(struct ss_fd_fact) fds;	    /* ascending by fd */
	SS_VECTOR(struct ss_process_fact) children; /* where a thread waits for one */
	bool children_known;
	pid_t pid;	  /* of the process itself */
	bool of_another;  /* it is not the one that was asked for, but that one's waits
			     lead here */
	uint64_t time_ns; /* CLOCK_REALTIME of the capture */
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC at the same moment */
};

/* Empty facts with one reference. NULL without memory. */
struct ss_facts *ss_facts_new(void);
/* NULL is fine for both. */
struct ss_facts *ss_facts_ref(struct ss_facts *facts);
void ss_facts_unref(struct ss_facts *facts);

/* Memory of that size, zeroed, that lives as long as the facts. NULL without memory. */
void *ss_facts_keep(struct ss_facts *facts, size_t size);

/* What is known of a thread, or NULL. facts may be NULL. */
const struct ss_thread_facts *ss_facts_find_thread(const struct ss_facts *facts,
						   pid_t tid);

/* What is known of a file descriptor, or NULL. facts may be NULL. */
const struct ss_fd_fact *ss_facts_find_fd(const struct ss_facts *facts, int fd);

SS_DEFINE_CLEANUP(struct ss_facts, ss_facts, ss_facts_unref)

#endif
