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
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SS_API __attribute__((visibility("default")))

struct ss_error;
struct ss_target;
struct ss_session;
struct ss_snapshot;

/* Errors ------------------------------------------------------------------ */

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

/* Target ------------------------------------------------------------------ */

/*
 * Opens the process with this pid; the id of a thread selects its process. Checks that it
 * may be read, and stops nothing. Stores its start time, so that a reused pid is detected.
 * Errors: INVALID, NO_PROCESS, KERNEL_THREAD, SELF, ZOMBIE, DENIED, UNSUPPORTED,
 * NO_MEMORY, SYSTEM (for example: /proc is not mounted).
 */
SS_API struct ss_error *ss_target_open(pid_t pid, struct ss_target **ret);

/* Captures of the target stay valid. */
SS_API void ss_target_close(struct ss_target *target);

/* Capture ----------------------------------------------------------------- */

enum ss_mode {
	SS_MODE_DEFAULT = 0, /* AUTO */
	SS_MODE_STOP,	     /* stop all threads, copy, release */
	SS_MODE_LIVE,	     /* unwind with libunwind while stopped: slow */
	SS_MODE_NO_STOP,     /* stop nothing; running threads have no stack */
	SS_MODE_AUTO, /* stop those that run, and those whose registers are needed */
	SS_MODE_CORE, /* from a core file; cannot be requested */
};

/*
 * Returns whether to capture a thread. The capturing thread calls it before it stops
 * anything. name is the thread's comm, state the letter of /proc/TID/stat. Other threads
 * are neither stopped nor listed.
 */
typedef bool ss_thread_filter(void *data, pid_t tid, const char *name, char state);

/* Session ----------------------------------------------------------------- */

struct ss_session_options {
	size_t size;	       /* sizeof(struct ss_session_options) */
	const char *debug_dir; /* of separate debug files; NULL: /usr/lib/debug */
	const char *sysroot;   /* search files below here first; or NULL */
};

/*
 * A cache that lasts from one capture to the next: files of modules, unwind tables,
 * symbol indexes. The strings of options are copied. The sysroot is opened at once. Errors: NO_MEMORY, SYSTEM, DENIED (the sysroot).
 */
SS_API struct ss_error *ss_session_new(const struct ss_session_options *options,
				       struct ss_session **ret);

/* Snapshots stay valid. */
SS_API void ss_session_free(struct ss_session *session);

enum ss_symbolize_flags {
	SS_NO_INLINES = 1 << 0,	 /* no frames for inlined functions */
	SS_NO_SOURCE = 1 << 1,	 /* no file, line, column of native code */
	SS_NO_DEMANGLE = 1 << 2, /* mangled names */
};

SS_API void ss_snapshot_free(struct ss_snapshot *snapshot);

/* Reading the result ------------------------------------------------------ */

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
	SS_END_GUESSED,	    /* the outermost frame was reached, but by guesses */
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
	/* From the first attachment to the last release. Threads that are
	   stopped later, for their registers, add the longest of these stops. */
	uint64_t stopped_ns;
	unsigned threads_stopped;
	bool consistent;	     /* atomic: all threads stood still at one moment */
	uint64_t copied_bytes;	     /* of stacks */
	uint64_t running_stopped_ns; /* longest stop of a thread that was running */
	unsigned threads_unseen;     /* known to exist, but not captured */
	unsigned threads_left_out;   /* not selected */
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
	/* Of modules of recordings. */
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
	/* Without a symbol: the function of its module that the next frame called, which may
	   have jumped to this one. NULL: not known */
	const char *called;
};

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
	SS_LOCK_STREAM,	      /* of a stdio stream, FILE */
	SS_LOCK_JAVA_CLASS,   /* a Java class that is being initialised */
};

/* "mutex", "robust-mutex", "rust-rwlock", ..., "none". Never NULL. */
SS_API const char *ss_lock_type_name(enum ss_lock_type type);

/* What a function on the stack says about a wait; see stacksnap-waits(5). */
enum ss_wait_purpose {
	SS_PURPOSE_UNKNOWN = 0,
	SS_PURPOSE_LOCK,    /* a lock of the application */
	SS_PURPOSE_EVENT,   /* a condition, an answer or work: which one is not known */
	SS_PURPOSE_IDLE,    /* work */
	SS_PURPOSE_SERVICE, /* a thread of a runtime, not of the program */
};

/* "lock", "event", "idle", "service", "unknown". Never NULL. */
SS_API const char *ss_wait_purpose_name(enum ss_wait_purpose purpose);

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
	SS_OWNER_ALONE, /* processes can share it, but no other one has it any more */
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
	/* EPOLL, edge-triggered: bytes that have been received and not read, of which no other event
	   tells; 0: none, or not known */
	uint32_t unread;
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
	const char *owner_name;	     /* name of that thread, or NULL */
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
	const char
		*path; /* path that is being opened, or that the call is about; or NULL */

	/* Of any kind: the call waits until another program permits it, fanotify(7). Known from
	   the kernel's functions, so to root only. */
	bool fanotify;

	/* Threads of other processes that the wait leads to: the thread waits for the first
	   one, that for the second, and so on. See ss_snapshot_cycle(). */
	const struct ss_thread_ref *chain;
	size_t chain_length;

	enum ss_wait_purpose purpose;
	const char *purpose_function; /* name without parameters, or NULL */
	const char *purpose_words;    /* its description in the table, or NULL */

	/* Only threads of the process can end it: it waits on a private futex, or for a pipe that no other
	   process has open. */
	bool within_process;
	/* Only other processes can end it, directly or through one another, and these wait for each other,
	   or made no progress during an observation (struct ss_progress). */
	bool stuck_elsewhere;
	/* The same, if none of the threads of the process itself has run: each waits for another one, or for
	   processes that wait for these. */
	bool closed;
	/* OTHER: it waits for another process to open the other end of a FIFO, which this one opens
	   for reading (access is SHARED) or writing */
	bool opens_fifo;
	/* Of any kind: it waits for the server of a FUSE file system, mounted here; "": not known which.
	   The server is owner_pid. NULL: it does not */
	const char *mount;
	/* IPC: the process that changed the semaphore last, which probably has it; that sent to the queue last,
	   or received from it, if the thread waits for that; 0: not known */
	pid_t operator_pid;
	const char *operator_process; /* or NULL */
};

/* Kinds of tasks. To add one: its name in data/snapshot.c, its words in report/names.c, and
   whoever finds the tasks of a process. */
enum ss_task_kind {
	SS_TASK_THREAD = 0, /* of the kernel */
	SS_TASK_GOROUTINE,  /* the runtime of Go runs it on threads */
	/* Of Python: a task of asyncio that has not ended, which an event loop runs; or a greenlet */
	SS_TASK_ASYNCIO,
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

/* Why nothing will end the wait of a task, unless the task is cancelled. */
enum ss_endless {
	SS_ENDLESS_NO = 0, /* something may */
	/* Only tasks of which this is true refer to what it waits for. */
	SS_ENDLESS_OBJECT,
	/* Its event loop waits for nothing, and no other thread can wake it. */
	SS_ENDLESS_LOOP,
	/* GOROUTINE: its channel is nil */
	SS_ENDLESS_NIL_CHANNEL,
};

/* Something that executes functions one after the other and so has a stack. Members of which
   the comment names kinds are set for these only. */
struct ss_task {
	/* The thread's tid; what Go counts; the address of the object, which another task may
	   get after its end. Otherwise the same in all snapshots of a process. */
	uint64_t id;
	/* Of a thread: what its language's runtime calls it, or comm; a GOROUTINE has none: "" */
	const char *name;
	const char *reason; /* details about end, in words, or NULL */
	size_t frame_count;
	enum ss_task_kind kind;
	/* The thread that runs it: a THREAD itself; the one on which a goroutine was; the one of
	   the task's event loop. 0: none, or not known */
	pid_t tid;
	enum ss_end end;
	/* Equal for tasks with equal frames and end. The frames of an ASYNCIO task are its
	   coroutines, of which each awaits the one before; if it runs, only the outermost one:
	   the others are on its thread. */
	uint32_t stack_id;

	/* THREAD */
	uint64_t stopped_ns;	 /* 0: never stopped */
	uint64_t thread_pointer; /* pthread_self() of most C libraries; 0: not known */
	/* LIMIT, UNREADABLE: memory of the process that was not copied, see
	   max_stack of struct ss_snapshot_options; 0: none */
	uint64_t missing;
	/* NULL: it does not wait, or that is not known, or with no_waits */
	const struct ss_wait *wait;
	/* The kernel function in which it sleeps, or NULL. Read only for threads in state
	   D, and if access is denied. */
	const char *wchan;
	/* State D only: kernel functions, innermost first, separated by newlines; or NULL */
	const char *kernel_stack;
	/* Why it has native frames in place of those of a runtime, or NULL */
	const char *native_reason;
	const char *comm; /* the kernel's name, at most 15 bytes; NULL: not known */
	/* The id that the language's runtime prints: Python's ident, Java's threadId(). 0: not known */
	uint64_t runtime_id;
	pid_t inner_tid;  /* in its own pid namespace; 0: not known */
	uint8_t priority; /* Java: 1 to 10; 0: not known */
	bool daemon;	  /* Java: the process does not wait for its end */
	char state;	  /* before the stop: R S D T t Z X I, or '?' */
	bool consistent;  /* its registers and stack belong to one moment */

	/* GOROUTINE */
	/* It runs, or is in a system call: its stack is that of thread tid */
	bool on_thread;
	bool changed; /* it ran while it was read: its stack is not known */
	/* It has waited about that long, according to Go's garbage collector, which knows it
	   after its second run. 0: not known */
	uint64_t waiting_ns;
	/* WAITING: the function that waits for a lock, such as
	   "sync.(*Mutex).Lock"; NULL: it waits for something else */
	const char *lock_function;
	uint64_t run_mark; /* differs after it has run; 0: not known */
	/* The path of the program or library whose runtime of Go runs it: a process may have
	   several, each with ids of its own. NULL: not known */
	const char *runtime;

	/* GOROUTINE, ASYNCIO */
	/* WAITING: in the words of the runtime, such as "chan receive", or the type of the
	   future that it awaits, such as "Future"; NULL: not known */
	const char *wait_reason;
	enum ss_task_status status;
	bool blocked; /* GOROUTINE: it made no progress between two snapshots, waiting for a lock */
	bool idle; /* GOROUTINE: it waits for the network or a timer */

	/* ASYNCIO */
	bool awaits_all; /* it continues after all of awaited, and has no time limit */
	/* It is in a cycle of tasks that wait for each other */
	bool in_cycle;
	size_t cycle_next; /* the index of the next one in the cycle */
	/* Tasks that it waits for, itself or by asyncio.gather(), a TaskGroup, asyncio.wait() or
	   asyncio.wait_for(), or the one that holds the lock: indexes for ss_snapshot_task() */
	const size_t *awaited;
	size_t awaited_count;
	/* The type of the lock or queue through which it waits, such as "Lock"; NULL: none, or
	   not known */
	const char *object;
	bool greenlet; /* it is a greenlet, whose calls are suspended: no event loop runs it */
	bool loop_empty; /* its event loop has no timers, no signals and no descriptors */
	enum ss_endless endless; /* GOROUTINE, too */

	/* GOROUTINE: the id of the one that probably holds the lock; 0: not known */
	uint64_t holder;
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
	/* A signal can only end the process: it executes no code of the program. False, too, if that is
	   not known. */
	bool no_signal_code;
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
	pid_t owner_pid; /* the process that holds it, as in struct ss_wait; 0: not known */
	const char *owner_process;
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
/* Threads are ascending by tid, goroutines by id and by runtime, and tasks of asyncio by name. */
SS_API size_t ss_snapshot_task_count(const struct ss_snapshot *snapshot,
				     enum ss_task_kind kind);
/* NULL if there are none of the kind. */
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

/* The blocker with the most waiters comes first. */
SS_API size_t ss_snapshot_deadlock_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_deadlock *ss_snapshot_deadlock(const struct ss_snapshot *snapshot,
						      size_t index);
SS_API size_t ss_snapshot_blocker_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_blocker *ss_snapshot_blocker(const struct ss_snapshot *snapshot,
						    size_t index);
SS_API size_t ss_snapshot_application_lock_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_application_lock *
ss_snapshot_application_lock(const struct ss_snapshot *snapshot, size_t index);

/* Cycles through other processes, in snapshots of ss_snapshot_take(). */
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

/* Interpreting ------------------------------------------------------------ */

struct ss_snapshot_options {
	size_t size; /* sizeof(struct ss_snapshot_options) */
	enum ss_mode mode;
	unsigned freeze_ms; /* limit for the whole freeze; 0: 1000 */
	size_t max_stack; /* bytes to copy from one stack; 0: 256 KiB, more where needed */
	size_t max_total;	  /* bytes to copy from all stacks; 0: 256 MiB */
	ss_thread_filter *filter; /* NULL: all threads */
	void *filter_data;
	unsigned max_frames;	  /* per thread; 0: no limit */
	bool native;		  /* keep the native frames of interpreters, too */
	bool no_tasks;		  /* neither goroutines nor tasks of asyncio */
	bool raw;		  /* no names of functions */
	bool no_waits;		  /* no diagnosis */
	unsigned symbolize_flags; /* enum ss_symbolize_flags */
	const char *debug_dir;	  /* as in struct ss_session_options */
	const char *sysroot;
	unsigned timeout_ms;	      /* of the interpretation; 0: 60000 */
	struct ss_pipeline *pipeline; /* NULL; for stacksnap(1) itself */
};

/*
 * One snapshot of a process: captures, completes, unwinds, symbolizes and diagnoses it, in a
 * confined process with the privileges of its owner. What could not be completed is missing, and
 * the snapshot says why; if access is denied, it has name and state of the threads. options: NULL for
 * the defaults. Errors: those of ss_target_open(); TRACED, CHANGED, SYSTEM (the confined process has
 * failed), NO_MEMORY.
 */
SS_API struct ss_error *ss_snapshot_take(pid_t pid,
					 const struct ss_snapshot_options *options,
					 struct ss_snapshot **ret);

enum ss_write_flags {
	SS_WRITE_ALL = 1 << 0,	   /* text: idle threads, too */
	SS_WRITE_VERBOSE = 1 << 1, /* text: no limits, nothing shortened */
};

/*
 * Writes a snapshot in a format of stacksnap(1): "text" as the tool prints it, "json", "folded" and
 * others. flags: enum ss_write_flags. Control characters that come from the target are escaped. A
 * failure to write is left in ferror() of out. Errors: INVALID (there is no such format, or it needs
 * the capture: "recording", see ss_snapshot_record()), NO_MEMORY.
 */
SS_API struct ss_error *ss_snapshot_write(const struct ss_snapshot *snapshot,
					  const char *format, unsigned flags, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
