/*
 * stacksnap - the stacks of every thread of a running process
 *
 * The pipeline is: open a target, capture it (all threads are stopped for
 * microseconds, their registers and stacks copied, and released), unwind the
 * capture into a snapshot, symbolize the snapshot, diagnose what its threads wait
 * for, walk it, free everything.
 *
 * Conventions. A function that can fail returns a struct ss_error *; NULL is
 * success, and on failure *ret is untouched. Free functions accept NULL. The
 * caller owns what it receives through a "ret" parameter, until the matching
 * free or close function. Target addresses are uint64_t. Times are
 * nanoseconds, sizes bytes, unless the name says otherwise.
 *
 * What is not an error: a thread that vanished, a stack that ends early, a name
 * that is not known. These are data, each with its reason.
 *
 * Threads: a target and a session are used by one OS thread at a time; captures
 * and snapshots may be read by many. The library never prints, never exits and
 * installs no signal handler. A capture runs in a short-lived thread of its own,
 * so that the kernel releases the target whatever becomes of that thread.
 *
 * Structs that the library hands out grow at their end only; always reach them
 * through the pointers the accessors return, never copy arrays of them.
 */
#ifndef STACKSNAP_H
#define STACKSNAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SS_API __attribute__((visibility("default")))

struct ss_error;
struct ss_target;
struct ss_capture;
struct ss_session;
struct ss_snapshot;

/* Errors ---------------------------------------------------------------- */

enum ss_error_code {
	SS_ERROR_INVALID = 1, /* an argument is wrong */
	SS_ERROR_NO_MEMORY,
	SS_ERROR_SYSTEM,	/* a system call failed in a way not named below */
	SS_ERROR_NO_PROCESS,	/* there is no such process (any more) */
	SS_ERROR_KERNEL_THREAD, /* it has no user-space stack at all */
	SS_ERROR_SELF,		/* a process cannot stop itself */
	SS_ERROR_ZOMBIE,	/* it has ended and waits to be reaped */
	SS_ERROR_TRACED,	/* another tracer holds it */
	SS_ERROR_DENIED,	/* Yama, another user, not dumpable, no capability */
	SS_ERROR_UNSUPPORTED,	/* such as a 32-bit target, or an unbuilt mode */
	SS_ERROR_CHANGED,	/* it kept on changing (exec) while it was captured */
};

/* The code of an error, for decisions. */
SS_API enum ss_error_code ss_error_code(const struct ss_error *error);

/* One line, without a newline, that names the cause. Valid as long as error. */
SS_API const char *ss_error_message(const struct ss_error *error);

/* One line that names the remedy, or NULL where none is known. */
SS_API const char *ss_error_remedy(const struct ss_error *error);

SS_API void ss_error_free(struct ss_error *error);

/* "MAJOR.MINOR.PATCH" of the library that runs. */
SS_API const char *ss_version(void);

/* Target ---------------------------------------------------------------- */

/*
 * Opens the process with this pid (a thread's id is resolved to its process)
 * and checks that it may be looked at; nothing is stopped. Its start time is
 * kept, so that a reused pid is noticed later.
 * Errors: INVALID, NO_PROCESS, KERNEL_THREAD, SELF, ZOMBIE, DENIED, UNSUPPORTED,
 * NO_MEMORY, SYSTEM (such as: /proc is not mounted).
 */
SS_API struct ss_error *ss_target_open(pid_t pid, struct ss_target **ret);

/*
 * Opens a process that ss_target_open() refuses with DENIED, or that could not be
 * captured because it is TRACED, for what anyone may read: a capture of it, whatever
 * its mode, lists the threads with name and state, and stops nothing; each stack ends
 * with SS_END_DENIED.
 * Errors: INVALID, NO_PROCESS, KERNEL_THREAD, SELF, ZOMBIE, DENIED (not even that),
 * NO_MEMORY, SYSTEM.
 */
SS_API struct ss_error *ss_target_open_listing(pid_t pid, struct ss_target **ret);

SS_API void ss_target_close(struct ss_target *target);

/*
 * The effective user and group of the process, as seen from here: who interprets what
 * comes from it needs no more rights than that. Errors: NO_PROCESS.
 */
SS_API struct ss_error *ss_target_owner(const struct ss_target *target, uid_t *ret_uid,
					gid_t *ret_gid);

/* Capture --------------------------------------------------------------- */

enum ss_mode {
	SS_MODE_DEFAULT = 0, /* STOP */
	SS_MODE_STOP,	     /* stop all threads, copy, release, interpret afterwards */
	SS_MODE_LIVE,	     /* libunwind-ptrace unwinds while they are stopped */
	SS_MODE_NO_STOP,     /* never stop anything; what runs has no stack */
	SS_MODE_AUTO,	     /* stop what runs only; see also ss_capture_complete() */
};

/*
 * Says whether a thread is wanted, before anything is stopped. name is the
 * thread's comm (raw bytes, NUL-terminated), state the letter of /proc/TID/stat.
 * A thread that is not wanted is neither stopped nor listed.
 */
typedef bool ss_thread_filter(void *data, pid_t tid, const char *name, char state);

struct ss_capture_options {
	size_t size; /* sizeof(struct ss_capture_options) */
	enum ss_mode mode;
	unsigned timeout_ms;	  /* longest the whole freeze may last; 0: 1000 */
	size_t max_stack;	  /* bytes copied of one stack; 0: 256 KiB */
	size_t max_total;	  /* bytes copied of all stacks; 0: 256 MiB */
	unsigned max_frames;	  /* LIVE only: frames a thread; 0: no limit */
	ss_thread_filter *filter; /* NULL: all threads */
	void *filter_data;
	bool no_waits; /* nothing that only ss_snapshot_diagnose() needs: no locks, no
			  file descriptors */
};

/*
 * Takes one capture: the threads of the target, their registers and stack
 * bytes, and its modules. options may be NULL. The capture holds no live
 * handle on the process; files of modules stay open in it.
 * Errors: INVALID, NO_PROCESS, DENIED, TRACED, CHANGED, UNSUPPORTED,
 * NO_MEMORY, SYSTEM.
 */
SS_API struct ss_error *ss_capture_take(struct ss_target *target,
					const struct ss_capture_options *options,
					struct ss_capture **ret);

/*
 * For a capture that was made without stopping all threads (AUTO): stops these of them,
 * for a moment, and adds the registers that were not known. Of a thread that has run
 * since the capture the stack is replaced as well, and the capture is not of one moment
 * any more. Ids that are not in the capture are passed over. To be called with the
 * options of the capture, before it is unwound (again) or shared; snapshots that were
 * made of it already stay as they are. What could not be stopped stays as it was.
 * Errors: those of ss_capture_take(); the capture is then as it was.
 */
SS_API struct ss_error *ss_capture_complete(struct ss_capture *capture,
					    struct ss_target *target,
					    const struct ss_capture_options *options,
					    const pid_t *tids, size_t count);

/*
 * Looks at the other processes to which waits in a capture lead: that hold a file lock
 * that is waited for, the only other end of a pipe or UNIX socket, a lock in shared
 * memory, or are the only child. Four of them at most, of the same user, directly or one
 * through the other; none is ever stopped. ss_snapshot_follow() makes something of it.
 * What may not be looked at is left out, and a capture that was followed already.
 */
SS_API void ss_capture_follow(struct ss_capture *capture, struct ss_target *target);

SS_API void ss_capture_free(struct ss_capture *capture);

/* Session --------------------------------------------------------------- */

/*
 * Asked for a file that is not on this machine: the debug file of a build, or the module
 * itself. build_id is in lower-case hexadecimal. Returns a file that is open for reading,
 * which becomes the library's, or -1. A file of another build is not used.
 */
typedef int ss_file_finder(void *data, const char *build_id, bool debug);

struct ss_session_options {
	size_t size;	       /* sizeof(struct ss_session_options) */
	const char *debug_dir; /* separate debug files; NULL: /usr/lib/debug */
	const char *sysroot;   /* modules and debug files below here first; or NULL */
	/* Where the number of the module (as ss_snapshot_module() has it) is noted whose
	   bytes are about to be read, or NULL. In memory that is shared with another
	   process it tells that one which module was fatal to this one. */
	volatile int32_t *module_at;
	const int32_t *skip_modules; /* whose bytes are not to be interpreted */
	size_t skip_count;
	ss_file_finder *find_file; /* NULL: what is not found here stays without names */
	void *find_data;
};

/*
 * What stays useful between captures: module images, unwind tables, symbol
 * indexes. options may be NULL; its strings are copied, its arrays are not. The sysroot
 * is opened now, once. Errors: NO_MEMORY, SYSTEM, DENIED (the sysroot).
 */
SS_API struct ss_error *ss_session_new(const struct ss_session_options *options,
				       struct ss_session **ret);

SS_API void ss_session_free(struct ss_session *session);

/* Unwinding and symbolizing --------------------------------------------- */

struct ss_unwind_options {
	size_t size;	     /* sizeof(struct ss_unwind_options) */
	unsigned max_frames; /* a thread; 0: no limit */
	/* Why there is such a limit: the reason of stacks that it cuts. NULL: unsaid.
	   With it and max_frames 1 no unwind information is read at all. */
	const char *frames_reason;
};

/*
 * Unwinds every thread of a capture. The snapshot keeps what it needs: the
 * capture may be freed before it, and so may the session.
 * Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_capture_unwind(const struct ss_capture *capture,
					  struct ss_session *session,
					  const struct ss_unwind_options *options,
					  struct ss_snapshot **ret);

enum ss_symbolize_flags {
	SS_NO_INLINES = 1 << 0,	 /* no frames for inlined functions */
	SS_NO_SOURCE = 1 << 1,	 /* no file, line, column */
	SS_NO_DEMANGLE = 1 << 2, /* names as the linker sees them */
};

/*
 * Names the frames of a snapshot: symbol, file and line, and inserts frames
 * for inlined functions (innermost first, as they would be called). A name that
 * is not found is no error: it stays NULL. Call it at most once for a snapshot,
 * before the snapshot is shared between threads.
 * Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_snapshot_symbolize(struct ss_snapshot *snapshot,
					      struct ss_session *session, unsigned flags);

/*
 * Unwinds and names what ss_capture_follow() has seen of other processes, so that
 * ss_snapshot_diagnose() can tell what becomes of waits there. To be called between
 * ss_snapshot_symbolize() and that one; flags are those of the former.
 * Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_snapshot_follow(struct ss_snapshot *snapshot,
					   const struct ss_capture *capture,
					   struct ss_session *session, unsigned flags);

/*
 * Finds out what each thread waits for: sets wait of every thread. Call it at most once
 * for a snapshot, after it was symbolized (if it is at all: names of functions help to
 * tell locks apart), before it is shared between threads. Nothing is asked of the
 * process, which may have ended. flags: 0.
 * Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_snapshot_diagnose(struct ss_snapshot *snapshot,
					     unsigned flags);

SS_API void ss_snapshot_free(struct ss_snapshot *snapshot);

/* Walking the result ----------------------------------------------------- */

/* Why a stack ends where it ends. */
enum ss_end {
	SS_END_ROOT = 0,	/* whole: the outermost frame was reached */
	SS_END_FRAMES,		/* max_frames reached */
	SS_END_LIMIT,		/* the copied part of the stack ended (max_stack) */
	SS_END_NO_UNWIND_INFO,	/* neither CFI nor frame pointers lead on */
	SS_END_BAD_UNWIND_INFO, /* the CFI is there and cannot be interpreted */
	SS_END_UNREADABLE,	/* memory that was needed could not be read */
	SS_END_LOOP,		/* the next frame would not be further out */
	SS_END_REGISTER,	/* a register that is needed is not known (not stopped) */
	SS_END_GONE,		/* the thread ended before it could be read */
	SS_END_RUNNING,		/* it runs and was not stopped */
	SS_END_NOT_STOPPED,	/* it did not stop in time, and no stack was to be had */
	SS_END_TRACED,		/* another tracer holds this thread */
	SS_END_DENIED, /* we may not look at it: nothing but its state is known */
};

/* "root", "frames", "limit", "no-unwind-info", ... as JSON has it. Never NULL. */
SS_API const char *ss_end_name(enum ss_end end);

struct ss_process {
	pid_t pid;
	const char *name;	/* comm of the main thread, raw bytes */
	const char *executable; /* path as the target sees it, or NULL */
	uint64_t time_ns;	/* CLOCK_REALTIME at the freeze */
	enum ss_mode mode;	/* what was done; never DEFAULT */
	uint64_t stopped_ns;	/* from the first interrupt to the last release */
	unsigned threads_stopped;
	bool consistent;	     /* all threads listed stood still at one moment */
	uint64_t copied_bytes;	     /* of stacks */
	uint64_t running_stopped_ns; /* longest stop of a thread that was running */
	unsigned threads_unseen;     /* known to exist, and not captured at all */
	/* pid in the innermost pid namespace that the process is in: differs from pid
	   where that is below the one of this /proc; 0: not known */
	pid_t inner_pid;
	/* path of the cgroup (version 2) that keeps all its threads from running, at the
	   begin of the capture; NULL: none, or that is not known */
	const char *frozen;
};

struct ss_module {
	const char *path;     /* as the target's maps have it, without " (deleted)" */
	const char *build_id; /* lower-case hexadecimal, or NULL */
	uint64_t base;	      /* lowest mapped address */
	uint64_t size;	      /* from base to the end of the last mapping */
	bool deleted;	      /* the file has no name any more */
	const char *problem;  /* why its file could not be used, or NULL */
};

/* How a frame was found from the one inside it. */
enum ss_frame_source {
	SS_FROM_REGISTERS = 0, /* the innermost frame */
	SS_FROM_CFI,
	SS_FROM_FRAME_POINTER,
	SS_FROM_RETURN_ADDRESS, /* a plausible return address: a guess */
	SS_FROM_INLINE,		/* an inlined call inside the next frame */
};

struct ss_frame {
	uint64_t pc; /* absolute; a return address except where the thread stood */
	const struct ss_module *module; /* or NULL: not in any file */
	int32_t module_index;		/* for ss_snapshot_module(), or -1 */
	uint64_t offset;	/* pc as ELF virtual address of module; 0 without */
	const char *symbol;	/* demangled unless told not to; NULL: not known */
	uint64_t symbol_offset; /* pc minus the symbol's start */
	const char *file;	/* source file, or NULL */
	uint32_t line;		/* 0: not known */
	uint32_t column;	/* 0: not known */
	bool inlined;
	bool signal_frame; /* the kernel's signal trampoline */
	enum ss_frame_source source;
	/* What names and lines are looked up with: pc, or pc-1 for a return address
	   (a call may be the last instruction of its function). ELF virtual address;
	   without a module from the start of area. */
	uint64_t lookup_offset;
	/* Where pc lies if not in a module: "[heap]"; "[jit]" is memory without a name
	   that holds code, and "//anon" such that does not. NULL: nothing is mapped. */
	const char *area;
	uint64_t area_offset; /* pc from the start of area; 0 in a module or nowhere */
};

/* What kind of thing a thread waits for. */
enum ss_wait_kind {
	SS_WAIT_OTHER = 0, /* in a system call that is none of these */
	SS_WAIT_FUTEX,	   /* a futex, of which no more is known */
	SS_WAIT_MUTEX,
	SS_WAIT_RWLOCK,
	SS_WAIT_CONDVAR,
	SS_WAIT_SEMAPHORE,
	SS_WAIT_BARRIER,
	SS_WAIT_JOIN, /* the end of another thread */
	SS_WAIT_ONCE, /* an initialisation that another thread makes */
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
	SS_WAIT_PTRACE,	    /* its tracer holds it */
	SS_WAIT_STOPPED,    /* SIGSTOP and the like: it waits for SIGCONT */
	SS_WAIT_PAGE_FAULT, /* blocked outside any system call */
};

/* "mutex", "epoll", "file-lock", ... as JSON has it. Never NULL. */
SS_API const char *ss_wait_kind_name(enum ss_wait_kind kind);

/* A frame of a lock's owner that refers to the lock: in its memory, a register or its code. */
struct ss_owner_frame {
	uint32_t frame;	  /* number for ss_snapshot_frame() */
	uint32_t line;	  /* in file; 0: not known */
	const char *file; /* where it first calls a function with the lock, or NULL */
};

enum { SS_OWNER_FRAMES_MAX = 2 };

/* What a thread waits for. Strings may hold bytes of the target: escape them. */
struct ss_wait {
	enum ss_wait_kind kind;
	const char *text;	  /* in words, one line; never NULL */
	const char *syscall;	  /* name of the system call; NULL: none, or not known */
	uint64_t address;	  /* of the lock or futex; 0: none */
	pid_t owner_tid;	  /* who holds it, where that is proven; 0: not known */
	pid_t owner_pid;	  /* that thread's process; 0: this one, or not known */
	const char *owner_reason; /* why the owner of a lock is not known, or NULL */
	int fd;			  /* the file descriptor that it is about; -1: none */
	const char *object;	  /* what fd is, in words; NULL: none, or not known */
	int64_t timeout_ns;	  /* as the call was given it; -1: none, or not known */
	int64_t left_ns;	  /* of the timeout, at the moment of the capture; -1 */
	const char *beyond; /* what other processes do to which it leads, in words, or
			       NULL; see ss_capture_follow() */
	/* The innermost ones. Where the lock was taken is mostly among them, if that function has not
	   returned. Often none is known. */
	struct ss_owner_frame owner_frames[SS_OWNER_FRAMES_MAX];
	size_t owner_frame_count;
};

struct ss_thread {
	pid_t tid;
	const char *name;    /* comm, raw bytes: escape before printing */
	char state;	     /* as before the stop: R S D T t Z X I, or '?' */
	uint64_t stopped_ns; /* 0: never stopped */
	enum ss_end end;
	const char *reason; /* more about end, for a person, or NULL */
	size_t frame_count;
	uint32_t
		stack_id; /* threads with equal stacks (same frames, same end) share it */
	bool consistent;  /* its registers and stack belong to one moment */
	uint64_t thread_pointer; /* pthread_self() of most C libraries; 0: not known */
	pid_t inner_tid; /* as ss_process.inner_pid: what gettid() gives in there */
	const struct ss_wait *wait; /* NULL: it does not wait, or nothing is known (yet:
				       ss_snapshot_diagnose() finds out) */
	const char *wchan; /* where in the kernel it sleeps, or NULL: it was stopped, it
			      is not known, or was not asked for (only in state D, and
			      of what we may not look at) */
	const char *kernel_stack; /* of one in state D: functions, a line each without a
				     newline at the end, innermost first; or NULL */
};

/* Threads that wait for each other in a circle. They stood still together while their
   locks were read: the circle was there. */
struct ss_deadlock {
	const size_t *threads; /* for ss_snapshot_thread(): each waits for what the next
				  one holds (or for its end), the last for the first */
	size_t count;	       /* 1: the thread waits for itself */
	size_t behind;	       /* other threads that wait for these */
	bool timed;	       /* one of the waits has a time limit */
};

/* A thread that waits for no other one, and for which others wait. */
struct ss_blocker {
	size_t thread;	/* for ss_snapshot_thread() */
	size_t waiting; /* threads that wait for it, also through others */
	size_t locks;	/* through which they wait; at least 1 */
};

/* A thread of a process, each in its own snapshot. */
struct ss_circle_member {
	const struct ss_snapshot *snapshot;
	const struct ss_thread *thread;
};

/* Threads of several processes that wait for each other in a circle. They stood still
   together while their waits were read; none has a time limit. A process that holds a
   file lock, or the other end of a pipe, is followed where it has one thread only. */
struct ss_circle {
	const struct ss_circle_member *members; /* as in struct ss_deadlock */
	size_t count;
};

/* All of these are valid as long as the snapshot. An index must be in range. */
SS_API const struct ss_process *ss_snapshot_process(const struct ss_snapshot *snapshot);
SS_API size_t ss_snapshot_thread_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_thread *ss_snapshot_thread(const struct ss_snapshot *snapshot,
						  size_t index);
SS_API size_t ss_snapshot_module_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_module *ss_snapshot_module(const struct ss_snapshot *snapshot,
						  size_t index);

/* What ss_snapshot_diagnose() found; nothing before. The blocker for which most threads
   wait comes first. */
SS_API size_t ss_snapshot_deadlock_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_deadlock *ss_snapshot_deadlock(const struct ss_snapshot *snapshot,
						      size_t index);
SS_API size_t ss_snapshot_blocker_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_blocker *ss_snapshot_blocker(const struct ss_snapshot *snapshot,
						    size_t index);

/* Circles through other processes, if ss_snapshot_follow() was called. */
SS_API size_t ss_snapshot_circle_count(const struct ss_snapshot *snapshot);
SS_API const struct ss_circle *ss_snapshot_circle(const struct ss_snapshot *snapshot,
						  size_t index);

/* Frame number index of that thread, 0 is the innermost. */
SS_API const struct ss_frame *ss_snapshot_frame(const struct ss_snapshot *snapshot,
						const struct ss_thread *thread,
						size_t index);

/* Recordings --------------------------------------------------------------- */

/*
 * A recording is a file of samples with relative frames: module, build-id and offset,
 * to be named later, on any machine (see stacksnap-recording(5)). Numbers of processes,
 * threads, modules, stacks and places are indexes from 0 on and belong to one open
 * recording. Everything that is handed out is valid until it is closed.
 *
 * Nobody vouches for a file: what is wrong in it ends the reading there, and the info
 * says so. A recording that was cut is read to its last whole chunk.
 */
struct ss_recording;

/* Why recording ended. */
enum ss_recording_end {
	SS_RECORDING_CUT = 0,	 /* not known: killed, or the file is cut or damaged */
	SS_RECORDING_STOPPED,	 /* it was told to */
	SS_RECORDING_DURATION,	 /* the time was over */
	SS_RECORDING_TARGET_END, /* the process has ended */
	SS_RECORDING_LOST,	 /* the process could not be looked at any more */
	SS_RECORDING_SNAPSHOT,	 /* it is a single snapshot */
};

/* "cut", "stopped", ... Never NULL. */
SS_API const char *ss_recording_end_name(enum ss_recording_end end);

struct ss_recording_info {
	const char *machine; /* "x86_64" */
	const char *host;    /* name of the machine it was made on */
	const char *version; /* of the stacksnap that made it */
	uint64_t begin_ns;   /* CLOCK_REALTIME of its begin */
	uint64_t begin_monotonic_ns;
	uint64_t end_ns;    /* of the last tick */
	uint64_t period_ns; /* between two ticks; 0: a single snapshot */
	uint64_t keep_ns;   /* only so much was kept; 0: everything */
	enum ss_recording_end end;
	const char *problem;	 /* why it could not be read to its end, or NULL */
	uint64_t first_sequence; /* of the first sample that is there */
	uint64_t samples;	 /* that are there */
	uint64_t ticks;		 /* that are there */
	uint64_t missed;	 /* ticks that were due and not taken */
	uint64_t stopped_ns;	 /* how long threads were stopped, added up */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t thread_stops;	 /* how often a thread was stopped; 0: not known */
	uint64_t size;		 /* of the file, up to where it could be read */
};

struct ss_recorded_process {
	pid_t pid;
	const char *name;	/* comm, raw bytes */
	const char *executable; /* or NULL */
	uint64_t begin_ns;	/* CLOCK_MONOTONIC, as all lifetimes here */
	uint64_t end_ns;	/* 0: it was there at the end */
};

struct ss_recorded_thread {
	uint32_t process;
	pid_t tid;
	const char *name; /* comm, raw bytes; the last one it had */
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct ss_recorded_module {
	uint32_t process;
	const struct ss_module *module; /* base and size as it was loaded there */
	uint64_t bias;			/* address in the process minus offset */
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct ss_recorded_stack {
	const uint32_t *places; /* innermost first */
	size_t count;
	enum ss_end end;
	const char *reason; /* more about end, or NULL */
};

/* What a thread of a snapshot waits for: of those that wait for another thread, and of
   those for which others wait. */
struct ss_recorded_wait {
	uint32_t thread;
	uint32_t owner;	  /* that it waits for; UINT32_MAX: none */
	const char *kind; /* as ss_wait_kind_name() has it */
	const char *text; /* as in struct ss_wait */
	bool in_circle;	  /* it is part of a deadlock */
};

/* One thread at one tick. */
struct ss_sample {
	uint64_t sequence; /* counts through the recording, without gaps */
	uint64_t tick;	   /* counts the ticks that are there, from 0 */
	uint64_t time_ns;  /* CLOCK_REALTIME */
	uint64_t monotonic_ns;
	uint32_t process;
	uint32_t thread;
	uint32_t stack;
	pid_t pid;
	pid_t tid;
	char state;	     /* R S D T t Z X I, or '?' */
	bool repeated;	     /* it had not run since its last sample */
	uint64_t on_cpu_ns;  /* on a CPU since its last sample */
	long call;	     /* system call that it is in, or -1 */
	uint64_t argument;   /* the first one of call */
	uint64_t missed;     /* ticks missed just before this one */
	uint64_t stopped_ns; /* how long threads were stopped for this tick, added up */
};

/* Whether a file begins like a recording; of any version. */
SS_API bool ss_recording_is(int fd);

/*
 * Opens a recording for reading. The file must be seekable and stay as it is.
 * Errors: INVALID (not a recording, another version, empty), SYSTEM, DENIED, NO_MEMORY.
 */
SS_API struct ss_error *ss_recording_open(const char *path, struct ss_recording **ret);
/* The same of an open file, which becomes the recording's also on failure. */
SS_API struct ss_error *ss_recording_open_fd(int fd, struct ss_recording **ret);
SS_API void ss_recording_close(struct ss_recording *recording);

SS_API const struct ss_recording_info *
ss_recording_info(const struct ss_recording *recording);

SS_API size_t ss_recording_process_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_process *
ss_recording_process(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_thread_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_thread *
ss_recording_thread(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_wait_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_wait *
ss_recording_wait(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_module_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_module *
ss_recording_module(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_stack_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_stack *
ss_recording_stack(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_place_count(const struct ss_recording *recording);

/*
 * The frames that a place stands for: inlined calls, innermost first, and last the
 * function itself. Before ss_recording_symbolize() it is one frame without a name. In
 * frames module_index is a number for ss_recording_module(), or -1.
 */
SS_API const struct ss_frame *ss_recording_place(const struct ss_recording *recording,
						 size_t index, size_t *count);

/*
 * Names all places. Modules are found by build-id, below the session's sysroot, in its
 * debug_dir, at the recorded path if the file there has that build-id. Without a file
 * of that very build a module's frames have no name, and module->problem says so.
 * Call it at most once. Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_recording_symbolize(struct ss_recording *recording,
					       struct ss_session *session,
					       unsigned flags);

/* The next sample in order. False: there is none; what could not be read any more
   (the file has changed, say) shows in the info's problem. */
SS_API bool ss_recording_next(struct ss_recording *recording, struct ss_sample *ret);
/* Begins again with the first sample. */
SS_API void ss_recording_rewind(struct ss_recording *recording);

/*
 * The threads of a process as they were at a tick, as a snapshot: with names if the
 * recording was symbolized before. The samples' order is not disturbed.
 * Errors: INVALID (there is no such tick or process), NO_MEMORY.
 */
SS_API struct ss_error *ss_recording_snapshot(struct ss_recording *recording,
					      uint64_t tick, size_t process,
					      struct ss_snapshot **ret);

/*
 * Writes a snapshot (before or after it is symbolized; names are left out) as a
 * recording to fd, an empty file, which is closed. Errors: SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_snapshot_record(const struct ss_snapshot *snapshot, int fd);

/* Modules as they come and go ---------------------------------------------- */

struct ss_module_event {
	bool loaded;			/* or unloaded */
	const struct ss_module *module; /* valid during the call */
	uint64_t time_ns;		/* CLOCK_REALTIME of the look that noticed it */
	uint64_t monotonic_ns;
};

typedef void ss_module_watcher(void *data, const struct ss_module_event *event);

struct ss_tracker;

/*
 * Follows the modules of a target, which must outlive the tracker. Nothing is stopped:
 * each ss_tracker_poll() looks at what is mapped, which is cheap as long as it has not
 * changed, and calls watcher for each difference; first for unloads. The first one
 * tells of all modules as loaded. A module that came and went between two looks is not
 * seen. Errors: NO_MEMORY.
 */
SS_API struct ss_error *ss_tracker_new(struct ss_target *target,
				       ss_module_watcher *watcher, void *data,
				       struct ss_tracker **ret);
SS_API void ss_tracker_free(struct ss_tracker *tracker);
/* Errors: NO_PROCESS (it has ended; all modules were told to be unloaded), DENIED,
   SYSTEM, NO_MEMORY. */
SS_API struct ss_error *ss_tracker_poll(struct ss_tracker *tracker);

/* Recording ----------------------------------------------------------------- */

struct ss_recorder;

/* What a recorder has done so far. */
struct ss_recorder_summary {
	uint64_t samples;
	uint64_t ticks;
	uint64_t missed; /* ticks that were due and could not be taken */
	uint64_t threads;
	uint64_t stacks; /* that are different */
	uint64_t thread_stops;
	uint64_t stopped_ns;	 /* how long threads were stopped, added up */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t duration_ns;
	uint64_t size;	 /* of the file */
	uint64_t memory; /* of the recorder's tables */
	enum ss_recording_end end;
	int undropped; /* errno: why what is older than keep_ns could not be dropped when it
			  was tried last, and the file grows; 0: it could */
};

struct ss_recorder_options {
	size_t size;	      /* sizeof(struct ss_recorder_options) */
	uint64_t period_ns;   /* between two ticks; 0: 99 a second */
	uint64_t duration_ns; /* 0: until stopped, or the target ends */
	uint64_t keep_ns;     /* keep only so much, or a quarter more; 0: everything */
	unsigned max_frames;  /* of a stack; 0: 1024 */
	size_t max_stack;     /* bytes copied of one stack; 0: 256 KiB */
	ss_thread_filter *filter; /* asked when a thread has run; NULL: all */
	void *filter_data;
	bool children;	       /* also processes that the target forks */
	const char *directory; /* where the file is: needed for keep_ns */
	const char *name;      /* the file's name there */
	/* Called about once a second, by the recording thread; may be NULL. */
	void (*progress)(void *data, const struct ss_recorder_summary *summary);
	void *progress_data;
};

/*
 * Makes a recorder that writes to fd, an empty file, which becomes its own. The target
 * must outlive it. Errors: NO_MEMORY, SYSTEM, INVALID.
 */
SS_API struct ss_error *ss_recorder_new(struct ss_target *target, int fd,
					const struct ss_recorder_options *options,
					struct ss_recorder **ret);

/*
 * Samples until it is stopped, the time is over or the target has ended, in a thread of
 * its own, with signals blocked; the caller waits, with SIGCHLD blocked. A target that
 * was spawned is sampled once before it begins, and let run. The file is
 * whole when it returns without an error, and otherwise up to its last chunk.
 * Errors: DENIED, TRACED, NO_PROCESS, SYSTEM (such as: the disk is full), NO_MEMORY.
 */
SS_API struct ss_error *ss_recorder_run(struct ss_recorder *recorder);

/* Ends ss_recorder_run(). May be called from any thread, and from a signal handler. */
SS_API void ss_recorder_stop(struct ss_recorder *recorder);

/*
 * For how many nanoseconds it has been looking at the target, or at the one of its children
 * that is at hand; 0: it is not. Where memory of the target waits for something that does not answer this grows
 * without end, and only the end of the program ends it. May be called from any thread.
 */
SS_API uint64_t ss_recorder_looking_ns(const struct ss_recorder *recorder);

SS_API const struct ss_recorder_summary *
ss_recorder_summary(const struct ss_recorder *recorder);

SS_API void ss_recorder_free(struct ss_recorder *recorder);

/*
 * Starts a program that waits before its first instruction, and opens it as a target.
 * argv ends with NULL; the program is searched in PATH. ss_target_close() ends a child
 * that was not let run, and leaves one that runs alone. Errors: INVALID (there is no such
 * program), SYSTEM, NO_MEMORY, and those of ss_target_open().
 */
SS_API struct ss_error *ss_target_spawn(char *const argv[], struct ss_target **ret);

/* Lets a target that was spawned run; to be called by the same thread. */
SS_API struct ss_error *ss_target_resume(struct ss_target *target);

/* The id of its process. */
SS_API pid_t ss_target_pid(const struct ss_target *target);

/* Progress --------------------------------------------------------------- */

/* What each thread of a process has done so far, by the counters of the scheduler. */
struct ss_activity;

/*
 * Reads the counters of all threads; the process is not touched.
 * Errors: NO_PROCESS, NO_MEMORY, SYSTEM.
 */
SS_API struct ss_error *ss_activity_take(const struct ss_target *target,
					 struct ss_activity **ret);

SS_API void ss_activity_free(struct ss_activity *activity);

/* What a thread did between two looks. */
enum ss_movement {
	SS_MOVEMENT_UNKNOWN = 0, /* nobody counts (/proc has no schedstat) */
	SS_MOVEMENT_NONE,	 /* it has not run at all */
	SS_MOVEMENT_WOKEN,	 /* it was woken, and waits in the same place again */
	SS_MOVEMENT_BUSY,	 /* it ran, or wanted to, most of the time */
	SS_MOVEMENT_MOVES,	 /* anything else */
};

/* "none", "woken", ... as JSON has it. Never NULL. */
SS_API const char *ss_movement_name(enum ss_movement movement);

/* What a process did, the worst of what holds. */
enum ss_verdict {
	SS_VERDICT_IDLE = 0, /* its threads wait where threads without work do */
	SS_VERDICT_MOVING,
	SS_VERDICT_BUSY,     /* a thread is */
	SS_VERDICT_STUCK,    /* a thread has not run, and its wait is not an idle one */
	SS_VERDICT_DEADLOCK, /* a circle of threads that have not run */
};

/* "idle", "deadlock", ... Never NULL. */
SS_API const char *ss_verdict_name(enum ss_verdict verdict);

struct ss_thread_progress {
	size_t thread; /* for ss_snapshot_thread() of the last snapshot */
	enum ss_movement movement;
	bool stuck;
	uint64_t run_ns;    /* on a CPU */
	uint64_t ready_ns;  /* waiting for one */
	uint64_t runs;	    /* times it was put on a CPU */
	uint64_t voluntary; /* context switches: it waited for something, */
	uint64_t forced;    /* or was replaced by another thread */
	const char *within; /* the innermost function that all snapshots have in common,
			       or NULL */
	unsigned samples;   /* snapshots that have its stack */
};

struct ss_progress;

/*
 * Compares what was before with what was after. The snapshots were taken in between, in
 * this order; all are symbolized, and the last one, which has all threads, is diagnosed.
 * They and the activities must outlive *ret. Errors: INVALID, NO_MEMORY.
 */
SS_API struct ss_error *ss_progress_new(const struct ss_activity *before,
					const struct ss_activity *after,
					const struct ss_snapshot *const *snapshots,
					size_t count, struct ss_progress **ret);

SS_API void ss_progress_free(struct ss_progress *progress);

SS_API enum ss_verdict ss_progress_verdict(const struct ss_progress *progress);

/* Whether no thread has run and each waits, without a time limit, for what only another
   thread of the process can do: then none ever will, but for a signal handler. */
SS_API bool ss_progress_is_closed(const struct ss_progress *progress);

SS_API uint64_t ss_progress_elapsed_ns(const struct ss_progress *progress);

/* That of the thread with the same index in the last snapshot. */
SS_API const struct ss_thread_progress *
ss_progress_thread(const struct ss_progress *progress, size_t index);

#ifdef __cplusplus
}
#endif

#endif
