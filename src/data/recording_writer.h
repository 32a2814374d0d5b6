/*
 * Writes a recording. Processes, threads and modules have handles, which stay valid;
 * stacks and calls have numbers, which are valid until ss_writer_roll(). The file grows
 * by complete chunks, so that it remains readable if the recorder is killed.
 */
#ifndef SS_DATA_RECORDING_WRITER_H
#define SS_DATA_RECORDING_WRITER_H

#include "base/error.h"
#include "base/idtable.h"
#include "data/snapshot.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

/*
 * Converts frames of a snapshot to frames of a recording.
 */

/* process: its handle. modules: handles by module_index. Texts remain the frame's. */
struct ss_frame_record ss_frame_record_make(const struct ss_frame *frame,
					    uint32_t process, const uint32_t *modules);

/* The kind of a frame in a recording: code of no file with a name is JIT. */
enum ss_frame_kind ss_frame_record_kind(const struct ss_frame *frame);

/* The flags of a frame in a recording: SS_FRAME_... */
uint32_t ss_frame_record_flags(const struct ss_frame *frame);

struct ss_writer;

struct ss_writer_options {
	uint64_t monotonic_ns; /* both of the same time: the beginning */
	uint64_t wall_ns;
	uint64_t period_ns; /* between two ticks; 0: a single snapshot */
	uint64_t keep_ns;   /* drop older segments; 0: keep all */
	uint64_t scope;	    /* enum ss_recording_scope */
	const char *machine;
	const char *host;
	const struct ss_recording_about *about; /* or NULL */
	const char *directory;			/* of the file; needed for keep_ns */
	const char *name;
	/* A second empty file, owned from then on: each segment begins in the other one of
	   the two files, instead of what it contained. 0: none */
	int other;
	uint64_t write_ns; /* how often a chunk is written; 0: each second */
	/* size of tables at which a new segment begins; 0: SS_WRITER_MEMORY */
	size_t memory_max;
	ss_hash_function *hash; /* NULL except in tests */
};

/* A frame as it is recorded. */
struct ss_frame_record {
	uint32_t module;  /* a handle, or SS_ID_NONE */
	uint32_t flags;	  /* SS_FRAME_... */
	uint64_t value;	  /* offset in the module, or the address */
	const char *area; /* of a frame without a module, or NULL */
	uint32_t process; /* of a frame without a module: its handle */
	/* The call of a runtime (the source in flags is SS_FROM_RUNTIME) has only these. */
	enum ss_frame_kind kind;
	const char *function; /* or NULL */
	const char *file;     /* or NULL */
	uint32_t line;	      /* 0: not known */
};

/* One thread at one tick. */
struct ss_sample_record {
	uint32_t thread; /* handle */
	uint32_t stack;
	uint32_t call; /* or SS_ID_NONE */
	char state;
	uint64_t cpu_us;   /* on a CPU since its last sample */
	uint64_t ready_us; /* runnable without a CPU, likewise */
};

struct ss_tick_record {
	uint64_t monotonic_ns;
	uint64_t wall_ns;
	uint64_t missed;	 /* number of missed ticks before this one */
	uint64_t stopped_ns;	 /* of all threads together */
	uint64_t stopped_max_ns; /* the longest of one thread */
};

struct ss_summary {
	uint64_t samples;
	uint64_t ticks;
	uint64_t missed;
	uint64_t stopped_ns;	 /* of all ticks */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t thread_stops;	 /* number of thread stops */
	uint64_t duration_ns;
	uint64_t reason; /* enum ss_recording_end */
	uint64_t threads;
	uint64_t stacks;
	uint64_t lost;	  /* ticks whose captured stacks were lost */
	const char *loss; /* why; or NULL */
};

/* Takes over fd, an empty file, and writes the header. Errors: SYSTEM, NO_MEMORY. */
struct ss_error *ss_writer_new(int fd, const struct ss_writer_options *options,
			       struct ss_writer **ret);
void ss_writer_free(struct ss_writer *writer);

/* Each returns a handle; SS_ID_NONE without memory. Strings are copied. */
uint32_t ss_writer_add_process(struct ss_writer *writer, pid_t pid, uint64_t start_time,
			       const char *name, const char *executable,
			       uint64_t begin_ns);
uint32_t ss_writer_add_thread(struct ss_writer *writer, uint32_t process, pid_t tid,
			      const char *name, uint64_t begin_ns);
uint32_t ss_writer_add_module(struct ss_writer *writer, uint32_t process,
			      const struct ss_module *module, uint64_t bias,
			      uint64_t begin_ns);
void ss_writer_name_thread(struct ss_writer *writer, uint32_t thread, const char *name,
			   uint64_t time_ns);
/* The handle is not valid after the tick, and is used again. */
void ss_writer_end_thread(struct ss_writer *writer, uint32_t thread, uint64_t time_ns);
void ss_writer_end_module(struct ss_writer *writer, uint32_t module, uint64_t time_ns);
void ss_writer_end_process(struct ss_writer *writer, uint32_t process, uint64_t time_ns);

/* The number of a stack, innermost frame first. SS_ID_NONE without memory. */
uint32_t ss_writer_stack(struct ss_writer *writer, const struct ss_frame_record *frames,
			 size_t count, enum ss_end end, const char *reason);

/* The number of a system call and its first argument. wait: what a thread waits for in it;
   NULL: not known. SS_ID_NONE without memory. */
uint32_t ss_writer_call(struct ss_writer *writer, long number, uint64_t argument,
			const struct ss_wait *wait);

/* What a thread waits for, in a snapshot. owner: the thread that it waits for, a handle,
   or SS_ID_NONE. flags: SS_WAIT_... */
struct ss_written_wait {
	uint32_t thread;
	uint32_t owner;
	unsigned flags;
	const struct ss_wait *wait;
};
void ss_writer_wait(struct ss_writer *writer, const struct ss_written_wait *wait);

/* How far the tasks of a kind are known in a snapshot. */
struct ss_recorded_coverage {
	uint64_t tick;
	uint32_t process;
	enum ss_task_kind kind;
	struct ss_task_coverage coverage; /* problem: of the recording */
};

/* How far the tasks of a kind are known in the tick that is written next. They follow. Its process
   is a handle. */
void ss_writer_coverage(struct ss_writer *writer,
			const struct ss_recorded_coverage *coverage);

/* A task of a runtime in that tick. process, thread: handles; SS_ID_NONE: it is on no thread, or that
   is not known. stack: its number. */
struct ss_written_task {
	uint64_t tick;
	uint32_t process;
	uint32_t thread;
	uint32_t stack;
	const struct ss_task *task;
};
void ss_writer_task(struct ss_writer *writer, const struct ss_written_task *written);

/* A function, line or USDT probe of a recorded trace. */
struct ss_recorded_probe {
	const char *name; /* demangled */
	uint32_t module;  /* index, or UINT32_MAX */
	uint64_t offset;  /* ELF virtual address */
	bool usdt;
	bool line;  /* FILE:LINE, or MODULE+OFFSET */
	bool scope; /* its returns were traced, too */
};

/* The number of a probe in this segment. Its module is a handle, or SS_ID_NONE. */
uint32_t ss_writer_probe(struct ss_writer *writer, const struct ss_recorded_probe *probe);

/*
 * Appends an event of a trace. HIT and ENTER have a sample, which is a tick of its own; all
 * others refer to that of their ENTER: event->entry is its number, ss_writer_samples() before
 * it was appended. event->probe is the number of a probe. Errors: as ss_writer_tick().
 */
struct ss_error *ss_writer_event(struct ss_writer *writer,
				 const struct ss_trace_event *event,
				 const struct ss_sample_record *sample);

/* The totals of a trace, before ss_writer_finish(). */
void ss_writer_trace(struct ss_writer *writer, const struct ss_trace_summary *summary);

/* Appends a tick with its samples, and writes a chunk about once a second. Errors:
   SYSTEM (the disk is full), NO_MEMORY; afterwards nothing can be added. */
struct ss_error *ss_writer_tick(struct ss_writer *writer,
				const struct ss_tick_record *tick,
				const struct ss_sample_record *samples, size_t count);

/* Whether it is time for ss_writer_roll(): the tables are large, or the segment is
   long. */
bool ss_writer_wants_roll(const struct ss_writer *writer, uint64_t monotonic_ns);

/* Writes the perf map of a process as it is now, or the end of a very long one. Errors:
   SYSTEM, NO_MEMORY. */
struct ss_error *ss_writer_perf_map(struct ss_writer *writer, uint32_t process,
				    const struct ss_perf_map_file *map);

/* Begins a new segment. Updates the numbers of stacks and calls in samples; all other
   numbers, also of probes, become invalid, as do handles of what has ended. */
struct ss_error *ss_writer_roll(struct ss_writer *writer, uint64_t monotonic_ns,
				uint64_t wall_ns, struct ss_sample_record *samples,
				size_t count);

/* Fills in the counts of the summary; writes the remaining chunks and the summary. */
struct ss_error *ss_writer_finish(struct ss_writer *writer, struct ss_summary *summary);

/* Counts so far. */
uint64_t ss_writer_samples(const struct ss_writer *writer);
uint64_t ss_writer_size(const struct ss_writer *writer);
/* The errno of the last failure to drop old segments, or 0. */
int ss_writer_undropped(const struct ss_writer *writer);
void ss_writer_counts(const struct ss_writer *writer, uint64_t *threads,
		      uint64_t *stacks);
size_t ss_writer_memory(const struct ss_writer *writer);

SS_DEFINE_CLEANUP(struct ss_writer, ss_writer, ss_writer_free)

#endif
