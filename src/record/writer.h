/*
 * Writes a recording. What is described (processes, threads, modules) has a handle that
 * stays; stacks and calls have numbers that hold until ss_writer_roll(). The file only
 * grows, by whole chunks, so that it can be read to its last one whatever happens to us.
 */
#ifndef SS_RECORD_WRITER_H
#define SS_RECORD_WRITER_H

#include "base/error.h"
#include "model/snapshot.h"
#include "record/idtable.h"

struct ss_writer;

struct ss_writer_options {
	uint64_t monotonic_ns; /* both of the same moment: the begin */
	uint64_t wall_ns;
	uint64_t period_ns; /* between two ticks; 0: a single snapshot */
	uint64_t keep_ns;   /* keep only so much, at least; 0: everything */
	const char *machine;
	const char *host;
	const char *directory; /* where the file is, for keep_ns */
	const char *name;
	size_t memory_max; /* of tables; 0: SS_WRITER_MEMORY. A new segment begins then */
	ss_hash_function *hash; /* NULL, but in tests */
};

enum { SS_WRITER_MEMORY = 128 << 20 };

/* What a frame is in a recording. */
struct ss_written_frame {
	uint32_t module;  /* a handle, or SS_ID_NONE */
	uint32_t flags;	  /* SS_FRAME_... */
	uint64_t value;	  /* offset in the module, or the address */
	const char *area; /* without a module, or NULL */
	uint32_t process; /* without a module: its handle */
};

/* One thread at one tick. */
struct ss_written_sample {
	uint32_t thread; /* handle */
	uint32_t stack;
	uint32_t call; /* or SS_ID_NONE */
	char state;
	uint64_t cpu_us; /* on a CPU since its last sample */
};

struct ss_written_tick {
	uint64_t monotonic_ns;
	uint64_t wall_ns;
	uint64_t missed;	 /* ticks that were due before and not taken */
	uint64_t stopped_ns;	 /* of all threads together */
	uint64_t stopped_max_ns; /* of one thread, or of all at once */
};

struct ss_summary {
	uint64_t samples;
	uint64_t ticks;
	uint64_t missed;
	uint64_t stopped_ns;	 /* of all ticks */
	uint64_t stopped_max_ns; /* the longest stop */
	uint64_t thread_stops;	 /* how often a thread was stopped */
	uint64_t duration_ns;
	uint64_t reason; /* enum ss_recording_end */
	uint64_t threads;
	uint64_t stacks;
};

/* Takes fd, which is empty, and writes the file's begin. */
struct ss_error *ss_writer_new(int fd, const struct ss_writer_options *options,
			       struct ss_writer **ret);
void ss_writer_free(struct ss_writer *writer);

/* Handles; SS_ID_NONE without memory. Strings are copied. */
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
void ss_writer_end_thread(struct ss_writer *writer, uint32_t thread, uint64_t time_ns);
void ss_writer_end_module(struct ss_writer *writer, uint32_t module, uint64_t time_ns);
void ss_writer_end_process(struct ss_writer *writer, uint32_t process, uint64_t time_ns);

/* The number of a stack, innermost frame first. SS_ID_NONE without memory. */
uint32_t ss_writer_stack(struct ss_writer *writer, const struct ss_written_frame *frames,
			 size_t count, enum ss_end end, const char *reason);

/* The number of a system call and its first argument. */
uint32_t ss_writer_call(struct ss_writer *writer, long number, uint64_t argument);

/* What a thread waits for, in a snapshot. owner: the thread that it waits for, a handle,
   or SS_ID_NONE. flags: SS_WAIT_... */
struct ss_written_wait {
	uint32_t thread;
	uint32_t owner;
	unsigned flags;
	const char *kind;
	const char *text;
};
void ss_writer_wait(struct ss_writer *writer, const struct ss_written_wait *wait);

/* Appends a tick with its samples, and writes what has come together if it is time.
   Errors: SYSTEM (the disk is full), NO_MEMORY; nothing can be added then. */
struct ss_error *ss_writer_tick(struct ss_writer *writer,
				const struct ss_written_tick *tick,
				const struct ss_written_sample *samples, size_t count);

/* Whether tables have become large, or a slice of what is kept is full. */
bool ss_writer_wants_roll(const struct ss_writer *writer, uint64_t monotonic_ns);

/* The names of JIT code of a process: the text of its perf map, or the end of it where it
   is very long, as it is now. Errors: SYSTEM, NO_MEMORY. */
struct ss_error *ss_writer_perf_map(struct ss_writer *writer, uint32_t process,
				    const struct ss_perf_map_file *map);

/* Begins a new segment. Numbers of stacks and calls in samples are brought up to date;
   all others are void, as are handles of what has ended. */
struct ss_error *ss_writer_roll(struct ss_writer *writer, uint64_t monotonic_ns,
				uint64_t wall_ns, struct ss_written_sample *samples,
				size_t count);

/* Writes what is left, and the summary. samples, threads and stacks are filled in. */
struct ss_error *ss_writer_finish(struct ss_writer *writer, struct ss_summary *summary);

/* So far. */
uint64_t ss_writer_samples(const struct ss_writer *writer);
uint64_t ss_writer_size(const struct ss_writer *writer);
/* The errno of it where what is too old could not be dropped, or 0. */
int ss_writer_undropped(const struct ss_writer *writer);
void ss_writer_counts(const struct ss_writer *writer, uint64_t *threads,
		      uint64_t *stacks);
size_t ss_writer_memory(const struct ss_writer *writer);

SS_DEFINE_CLEANUP(struct ss_writer, ss_writer, ss_writer_free)

#endif
