/*
 * Recordings: samples of a process over time, written to a file and read from it, and the
 * modules that come and go meanwhile. Conventions: see stacksnap.h.
 */
#ifndef STACKSNAP_RECORD_H
#define STACKSNAP_RECORD_H

#include "stacksnap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Recordings -------------------------------------------------------------- */

/*
 * A recording is a file of samples with relative frames: module, build-id and offset,
 * from which names can be looked up later, on any machine (see stacksnap-recording(5)).
 * Processes, threads, modules, stacks and places are identified by an index into a
 * table of the open recording. Everything that these functions return stays valid until
 * the recording is closed.
 *
 * The file is untrusted input: reading stops at the first invalid chunk, and the info says
 * why. A truncated recording is read up to its last complete chunk.
 */
struct ss_recording;

/* Why a recording ended. */
enum ss_recording_end {
	SS_RECORDING_CUT = 0, /* unknown: killed, or the file is truncated or corrupted */
	SS_RECORDING_STOPPED, /* stopped on request */
	SS_RECORDING_DURATION,	 /* the duration was reached */
	SS_RECORDING_TARGET_END, /* the process ended */
	SS_RECORDING_LOST,	 /* the process became unreadable */
	SS_RECORDING_SNAPSHOT,	 /* a single snapshot */
};

/* What the samples of a recording are. */
enum ss_recording_scope {
	SS_SCOPE_THREADS, /* the threads that were selected, at each tick */
	SS_SCOPE_CPUS,	  /* what was on a CPU at each tick, by samples of the CPUs */
	/* Threads that were on a CPU or waited for one, and stopped while they ran: short
	   bursts of work are missing. */
	SS_SCOPE_RUNNING,
	SS_SCOPE_EVENTS, /* calls of the functions of a trace: each is a tick with one sample */
};

struct ss_recording_info {
	enum ss_recording_scope scope;
	const char *machine; /* "x86_64" */
	const char *host;    /* name of the machine */
	const char *version; /* of the stacksnap that wrote it */
	uint64_t begin_ns;   /* CLOCK_REALTIME */
	uint64_t begin_monotonic_ns;
	uint64_t end_ns;    /* of the last tick */
	uint64_t period_ns; /* between two ticks; 0: a single snapshot */
	uint64_t keep_ns;   /* how much was kept; 0: everything */
	enum ss_recording_end end;
	const char *problem;	 /* why it could not be read to its end, or NULL */
	uint64_t first_sequence; /* of the first sample */
	uint64_t samples;
	uint64_t ticks;
	uint64_t missed;     /* ticks that were due but not taken, while it was kept */
	uint64_t stopped_ns; /* all stops, sum */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t thread_stops;	 /* how often a thread was stopped; 0: not known */
	uint64_t lost;		 /* of the missed: ticks that could not be unwound */
	const char *loss;	 /* why, or NULL */
	/* Waiting calls without what they waited for: the recording has too many waits */
	uint64_t waits_left_out;
	uint64_t size; /* of the file, up to where it could be read */
	/* Functions that wait and that are not built in, in the format of stacksnap-waits(5);
	   or NULL. Untrusted */
	const char *wait_functions;
	const char *boot_id;	   /* of the machine; "": not known */
	const char *const *labels; /* "KEY=VALUE" */
	size_t label_count;
};

struct ss_recorded_process {
	pid_t pid;
	const char *name;	/* comm */
	const char *executable; /* path, or NULL */
	uint64_t begin_ns;	/* CLOCK_MONOTONIC, like all lifetimes */
	uint64_t end_ns;	/* 0: it lived to the end */
	uint64_t start_time;	/* clock ticks after boot; 0: not known */
};

struct ss_recorded_thread {
	uint32_t process;
	pid_t tid;
	const char *name; /* comm, the last one */
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct ss_recorded_module {
	uint32_t process;
	const struct ss_module *module; /* base and size as loaded in process */
	uint64_t bias; /* load bias: address in the process minus offset */
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct ss_recorded_stack {
	const uint32_t *places; /* innermost first */
	size_t count;
	enum ss_end end;
	/* Details about end; if it is SS_END_ROOT, why the stack has native frames instead of functions
	   of a runtime; or NULL */
	const char *reason;
};

/* One thread at one tick. */
struct ss_sample {
	uint64_t sequence; /* counts all samples, without gaps */
	uint64_t tick;	   /* counts the ticks in the file, from 0 */
	uint64_t time_ns;  /* CLOCK_REALTIME */
	uint64_t monotonic_ns;
	uint32_t process;
	uint32_t thread;
	uint32_t stack;
	pid_t pid;
	pid_t tid;
	char state;	    /* R S D T t Z X I, or '?' */
	bool repeated;	    /* it had not run since its last sample */
	uint64_t on_cpu_ns; /* on a CPU since its last sample */
	uint64_t ready_ns;  /* runnable, but waiting for a CPU, likewise */
	long call;	    /* number of its system call, or -1 */
	uint64_t argument;  /* first argument of call */
	/* What it waits for in that call, valid as long as the recording; NULL: not known */
	const struct ss_wait *wait;
	uint64_t missed;     /* ticks missed since the tick of the sample before */
	uint64_t stopped_ns; /* stops for this tick, sum */
};

/*
 * Opens a recording for reading. The file must be seekable and must not change.
 * Errors: INVALID (no recording, unsupported version, empty), SYSTEM, DENIED, NO_MEMORY.
 */
SS_API struct ss_error *ss_recording_open(const char *path, struct ss_recording **ret);
SS_API void ss_recording_close(struct ss_recording *recording);

SS_API const struct ss_recording_info *
ss_recording_info(const struct ss_recording *recording);

SS_API size_t ss_recording_process_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_process *
ss_recording_process(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_thread_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_thread *
ss_recording_thread(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_module_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_module *
ss_recording_module(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_stack_count(const struct ss_recording *recording);
SS_API const struct ss_recorded_stack *
ss_recording_stack(const struct ss_recording *recording, size_t index);
SS_API size_t ss_recording_place_count(const struct ss_recording *recording);

/*
 * The frames of a place: inlined functions, innermost first, and last the function itself.
 * Before ss_recording_symbolize() it is one frame without a name. module_index of a frame
 * is an index for ss_recording_module(), or -1. *count is set to the number of frames.
 */
SS_API const struct ss_frame *ss_recording_place(const struct ss_recording *recording,
						 size_t index, size_t *count);

/*
 * Names all places. Finds modules by build-id: below the session's sysroot, at the
 * recorded path, and in debug_dir. Without a file of the right build the frames of a
 * module have no names, and module->problem says why. Call it at most once.
 * Errors: NO_MEMORY, INVALID.
 */
SS_API struct ss_error *ss_recording_symbolize(struct ss_recording *recording,
					       struct ss_session *session,
					       unsigned flags);

/* Reads the next sample. False at the end, and at data that cannot be read: problem of the
   info says why. */
SS_API bool ss_recording_next(struct ss_recording *recording, struct ss_sample *ret);
/* Starts again with the first sample. */
SS_API void ss_recording_rewind(struct ss_recording *recording);

/*
 * Makes a snapshot of the threads of a process at a tick, with names if the recording was
 * symbolized, and of the last one of recorded snapshots with what they wait for. Does not change what ss_recording_next() returns next.
 * Errors: INVALID (no such tick or process), NO_MEMORY.
 */
SS_API struct ss_error *ss_recording_snapshot(struct ss_recording *recording,
					      uint64_t tick, size_t process,
					      struct ss_snapshot **ret);

/* What a recording says besides samples. A zeroed struct says nothing. */
struct ss_recording_about {
	const char *wait_functions; /* in the format of stacksnap-waits(5); or NULL */
	const char *boot_id;	    /* of the machine, or NULL */
	const char *const *labels;  /* "KEY=VALUE" */
	size_t label_count;
};

/*
 * Writes a snapshot, without names, as a recording to the empty file fd, and closes it.
 * Errors: SYSTEM, NO_MEMORY.
 */
SS_API struct ss_error *ss_snapshot_record(const struct ss_snapshot *snapshot,
					   const struct ss_recording_about *about,
					   int fd);

/* Loading and unloading of modules ---------------------------------------- */

struct ss_module_event {
	bool loaded;			/* or unloaded */
	const struct ss_module *module; /* valid during the call */
	uint64_t time_ns;		/* CLOCK_REALTIME */
	uint64_t monotonic_ns;
	bool by_kernel; /* the times are those of the load; otherwise of its detection */
};

typedef void ss_module_watcher(void *data, const struct ss_module_event *event);

struct ss_tracker;

/*
 * Creates a tracker of the modules of a target, which must outlive it. It stops nothing:
 * ss_tracker_poll() compares what is mapped with the last call, which is cheap if nothing
 * has changed, and calls watcher for each difference, unloads first. The first call
 * reports all modules as loaded. Where perf events are allowed (see
 * ss_tracker_perf_errno()), the kernel dates further loads, and the next call reports a
 * module that came and went; otherwise it is not seen. A module whose code is made
 * executable again by mprotect(2) looks like one that came back. Build-ids that the kernel
 * does not tell (before Linux 6.11, or longer than 20 bytes) are read by a confined child
 * process. Errors: NO_MEMORY.
 */
SS_API struct ss_error *ss_tracker_new(struct ss_target *target,
				       ss_module_watcher *watcher, void *data,
				       struct ss_tracker **ret);
SS_API void ss_tracker_free(struct ss_tracker *tracker);
/* Errors: NO_PROCESS (it has ended; all modules were reported as unloaded), DENIED,
   SYSTEM, NO_MEMORY. */
SS_API struct ss_error *ss_tracker_poll(struct ss_tracker *tracker);

/* Recording --------------------------------------------------------------- */

struct ss_recorder;

/* Totals of a recording. */
struct ss_recorder_summary {
	uint64_t samples;
	uint64_t ticks;
	uint64_t missed; /* ticks that were due but not taken */
	uint64_t threads;
	uint64_t stacks; /* different ones */
	uint64_t thread_stops;
	uint64_t stopped_ns;	 /* all stops, sum */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t duration_ns;
	uint64_t size;	   /* of the file */
	uint64_t memory;   /* of the recorder's tables */
	bool sampled_cpus; /* running threads are not stopped: the CPUs are sampled */
	int perf_errno;	   /* otherwise the errno of perf_event_open(2) */
	/* Why the kernel does not copy what functions of runtimes need with its samples: the errno of
	   bpf(2), or 0: it does, or no process needed it. */
	int copy_errno;
	uint64_t lost; /* of the missed: ticks that could not be unwound */
	/* Why ticks were lost: how the unwinding process died, and which modules are
	   skipped since; or NULL. Valid as long as the recorder. */
	const char *loss;
	bool partial; /* the kernel refused a part of the unwinding process's confinement */
	bool left_out; /* some children were not recorded: too few files may be open */
	enum ss_recording_end end;
	int undropped; /* errno of the last attempt to drop what is older than keep_ns; 0: it
			  succeeded */
	/* samples of running threads without a stack, since a thread is stopped for at most 1 % of
	   its time, and 5 ms at once */
	uint64_t not_stopped;
};

struct ss_recorder_options {
	size_t size;		  /* sizeof(struct ss_recorder_options) */
	uint64_t period_ns;	  /* between two ticks; 0: 99 a second */
	uint64_t duration_ns;	  /* after the first tick; 0: until stopped or it ends */
	uint64_t keep_ns;	  /* keep the last part, up to a quarter more; 0: all */
	unsigned max_frames;	  /* of a stack; 0: 1024 */
	size_t max_stack;	  /* bytes copied of one stack; 0: 256 KiB */
	ss_thread_filter *filter; /* called when a thread has run; NULL: all */
	void *filter_data;
	bool children; /* also sample processes that the target starts */
	/* Only threads that are on a CPU. If perf_event_open(2) may sample all CPUs, no
	   thread is stopped; otherwise the filter must select state R. */
	bool on_cpu;
	const char *directory; /* of the file; needed for keep_ns */
	const char *name;      /* of the file in directory */
	/* Called about once a second by the recording thread, or NULL. */
	void (*progress)(void *data, const struct ss_recorder_summary *summary);
	void *progress_data;
	const struct ss_recording_about *about; /* or NULL */
	/* A second empty file, which the recorder owns, open for reading and writing like the
	   first one: with keep_ns, a quarter of that time is written to one of the two, then
	   a quarter to the other, in place of what that contained. So both can be read while
	   they are written. 0: none */
	int other_fd;
	uint64_t write_ns; /* how often samples are written to the file; 0: each second */
};

/*
 * Creates a recorder that writes to the empty file fd, which it owns. The target must
 * outlive it. Errors: NO_MEMORY, SYSTEM, INVALID.
 */
SS_API struct ss_error *ss_recorder_new(struct ss_target *target, int fd,
					const struct ss_recorder_options *options,
					struct ss_recorder **ret);

/*
 * Samples until ss_recorder_stop(), the end of duration_ns, or the end of the target. Works
 * in a thread of its own with signals blocked; the caller waits, with SIGCHLD, SIGTSTP,
 * SIGTTIN and SIGTTOU blocked. The last three stop the process between two ticks, when no
 * thread of the target is held; other threads of the program should block them, too. A
 * spawned target is sampled once before its first instruction and then resumed. The file
 * is complete if this returns NULL; otherwise it ends with its last complete chunk.
 * Errors: DENIED, TRACED, NO_PROCESS, SYSTEM (for example: the disk is full), NO_MEMORY.
 */
SS_API struct ss_error *ss_recorder_run(struct ss_recorder *recorder);

/* Ends ss_recorder_run(). Any thread, and a signal handler, may call it. */
SS_API void ss_recorder_stop(struct ss_recorder *recorder);

SS_API const struct ss_recorder_summary *
ss_recorder_summary(const struct ss_recorder *recorder);

SS_API void ss_recorder_free(struct ss_recorder *recorder);

#ifdef __cplusplus
}
#endif

#endif
