/*
 * Writes a recording. Processes, threads and modules have handles, which stay valid;
 * stacks and calls have numbers, which are valid until ss_writer_roll(). The file grows
 * by complete chunks, so that it remains readable if the recorder is killed.
 */
#ifndef SS_DATA_RECORDING_WRITER_H
#define SS_DATA_RECORDING_WRITER_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/recording_format.h"
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
/* The same for a module that is the same as before in its process. For all modules of a writer; none
   may end. */
uint32_t ss_writer_find_module(struct ss_writer *writer, uint32_t process,
			       const struct ss_module *module, uint64_t bias,
			       uint64_t begin_ns);
/* Nothing is written if that is its name already. */
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

/* What a thread of a snapshot waits for: of the last one, if the recording has several.
   Without owner_frames and chain. */
struct ss_recorded_wait {
	uint32_t thread;
	uint32_t owner; /* the thread that it waits for; UINT32_MAX: none */
	bool in_cycle;	/* it is part of a deadlock */
	struct ss_wait wait;
};

/* Its threads are handles, or SS_ID_NONE. */
void ss_writer_wait(struct ss_writer *writer, const struct ss_recorded_wait *wait);

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

/* A task of a runtime in that tick. Its process and thread are handles; SS_ID_NONE: it is on no thread,
   or that is not known. */
struct ss_recorded_task; /* data/recording.h */
void ss_writer_task(struct ss_writer *writer, const struct ss_recorded_task *task);

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
size_t ss_writer_memory(const struct ss_writer *writer);

SS_DEFINE_CLEANUP(struct ss_writer, ss_writer, ss_writer_free)

/*
 * Encodes the samples of one chunk. Each tick is written as changes since the previous
 * tick: most threads of a server are idle.
 */

/* The last sample of a thread in the chunk. */
struct ss_listed {
	uint32_t thread; /* handle */
	uint32_t stack;
	uint32_t call;
	char state;
};

struct ss_ticks {
	struct ss_buffer out;
	uint64_t first; /* number of the first sample */
	uint64_t count;
	uint64_t tick_count;
	uint64_t missed;
	uint64_t stopped_ns;
	uint64_t begin_ns;	/* CLOCK_MONOTONIC of the first tick */
	uint64_t monotonic_ns;	/* of the last tick */
	int64_t begin_distance; /* wall clock minus monotonic, of the first tick */
	int64_t distance;	/* of the last tick */
	SS_VECTOR(struct ss_listed) list;
	SS_VECTOR(uint32_t) places; /* by handle: index in list + 1; 0: not in it */
};

void ss_ticks_deinit(struct ss_ticks *ticks);

/* local: the number of a thread in this segment, by its handle. False: no memory. */
typedef uint32_t ss_local_thread(const void *data, uint32_t handle);
bool ss_ticks_add(struct ss_ticks *ticks, const struct ss_tick_record *tick,
		  const struct ss_sample_record *samples, size_t count,
		  ss_local_thread *local, const void *data);

/* Appends the contents of a chunk: the head and the samples. */
void ss_ticks_put(const struct ss_ticks *ticks, struct ss_buffer *ret);

/* Called after the chunk was written: the next tick begins a new one. */
void ss_ticks_reset(struct ss_ticks *ticks);

/*
 * The state of a recording's writer. recording_define.c assigns numbers to the objects that the
 * samples of a segment refer to, and encodes their definitions; recording_writer.c decides when
 * to write them.
 */

/* A process, thread or module, by its handle. */
struct ss_defined {
	enum { SS_DEFINED_FREE = 0, SS_DEFINED_LIVE, SS_DEFINED_ENDED } state;
	bool needed;	  /* used by a stack of the next segment */
	uint32_t local;	  /* its number in this segment */
	uint32_t process; /* of threads and modules: its handle */
	uint64_t end_ns;
	void *record; /* owned; as in ss_record_schemas, with the number of the process */
};

struct ss_defined_list {
	SS_VECTOR(struct ss_defined) items;
	SS_VECTOR(uint32_t) unused; /* handles */
	uint32_t next_local;
};

/* Called when out is long: writes the records and empties it. */
typedef void ss_definer_full(void *data);

struct ss_definer {
	struct ss_buffer out; /* encoded, not yet written */
	ss_definer_full *full;
	void *full_data;
	struct ss_buffer payload; /* of the current record */
	struct ss_idtable strings;
	struct ss_idtable frames;
	struct ss_idtable stacks;
	struct ss_idtable calls;
	struct ss_defined_list processes;
	struct ss_defined_list threads;
	SS_VECTOR(uint32_t) ended_threads; /* handles */
	struct ss_defined_list modules;
	struct ss_idtable module_ids; /* of ss_writer_find_module(): ids are handles */
	struct ss_buffer key;	      /* of the current stack, call or module */
	struct ss_buffer last;	      /* of the stack that was defined last */
	uint32_t next_probe;	      /* number in this segment */
	uint64_t defined_threads;
	uint64_t defined_stacks;
};

struct ss_segment_place {
	uint64_t offset;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
};

struct ss_ring {
	int fd;
	uint64_t size; /* up to the end of the last complete chunk */
	bool broken;   /* no more writes are possible */
	int directory; /* of the file, or -1 */
	char *name;    /* NULL: nothing is dropped */
	uint64_t keep_ns;
	/* Another file, or -1: each segment begins at the start of the other one of the two
	   files, in place of what it contained; name is not used. */
	int other;
	int undropped; /* errno: why old segments could not be dropped; 0: they were */
	SS_VECTOR(struct ss_segment_place) segments;
};

struct ss_writer {
	struct ss_ring ring;
	struct ss_definer definer;
	struct ss_ticks ticks;
	struct ss_buffer events; /* encoded, not yet written */
	uint64_t first_event;	 /* number of the sample of the first one */
	struct ss_buffer packed;
	uint64_t write_ns;
	uint64_t flushed_ns; /* CLOCK_MONOTONIC of the last tick that was written */
	uint64_t segment_ns; /* CLOCK_MONOTONIC of its beginning */
	uint64_t period_ns;
	uint64_t scope;
	size_t memory_max;
	char *machine;
	char *host;
	struct ss_buffer about; /* as it is written to each segment */
	uint64_t tick_count;
	uint64_t missed;
	uint64_t stopped_ns;
	uint64_t stopped_max_ns;
	uint64_t perf_maps;    /* bytes of them in this segment */
	struct ss_error *late; /* of an early chunk; returned by the next call */
};

void ss_definer_deinit(struct ss_definer *definer);

/* Drops the threads that have ended, when their samples are written: no stack needs them, and a process
   may have any number of threads. False: no memory. */
bool ss_definer_forget_threads(struct ss_definer *definer);

/* Begins a segment: defines all objects again that still exist or that the samples
   refer to. False without memory. */
bool ss_definer_renew(struct ss_definer *definer, struct ss_sample_record *samples,
		      size_t count);

size_t ss_definer_memory(const struct ss_definer *definer);

#endif
