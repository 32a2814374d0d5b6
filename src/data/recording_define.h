/*
 * Assigns numbers to the objects that the samples of a segment refer to, and encodes
 * their definitions. The writer decides when to write them.
 */
#ifndef SS_DATA_RECORDING_DEFINE_H
#define SS_DATA_RECORDING_DEFINE_H

#include "base/encode.h"
#include "base/vector.h"
#include "data/recording_format.h"
#include "data/recording_writer.h"
#include "stacksnap/trace.h"

/* A process, thread or module, by its handle. */
struct ss_defined {
	enum { SS_DEFINED_FREE = 0, SS_DEFINED_LIVE, SS_DEFINED_ENDED } state;
	bool needed;	  /* used by a stack of the next segment */
	uint32_t local;	  /* its number in this segment */
	uint32_t process; /* of threads and modules: its handle */
	pid_t id;
	uint64_t begin_ns;
	uint64_t end_ns;
	char *name; /* path of a module, comm of others */
	char *more; /* executable, build-id */
	char *problem;
	char *hash; /* of the file of a module, or NULL */
	/* start time; base, size, bias, flags, and of the file: size, time, inode */
	uint64_t numbers[7];
};

/* Texts of a new object, which are copied. */
struct ss_defined_texts {
	const char *name;
	const char *more;
	const char *problem;
	const char *hash;
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
	struct ss_buffer key;  /* of the current stack */
	struct ss_buffer last; /* of the stack that was defined last */
	uint32_t next_probe;   /* number in this segment */
	uint64_t defined_threads;
	uint64_t defined_stacks;
};

void ss_definer_deinit(struct ss_definer *definer);

uint32_t ss_definer_add(struct ss_definer *definer, enum ss_definition kind,
			const struct ss_defined *what,
			const struct ss_defined_texts *texts);
/* What has ended. The handle is valid until the next segment, that of a thread until
   ss_definer_forget_threads(). */
void ss_definer_end(struct ss_definer *definer, enum ss_definition kind, uint32_t handle,
		    uint64_t time_ns);
/* Drops the threads that have ended, when their samples are written: no stack needs them, and a process
   may have any number of threads. False: no memory. */
bool ss_definer_forget_threads(struct ss_definer *definer);
void ss_definer_name(struct ss_definer *definer, uint32_t thread, const char *name,
		     uint64_t time_ns);
uint32_t ss_definer_stack(struct ss_definer *definer,
			  const struct ss_frame_record *frames, size_t count,
			  enum ss_end end, const char *reason);
void ss_definer_wait(struct ss_definer *definer, const struct ss_written_wait *wait);
void ss_definer_coverage(struct ss_definer *definer,
			 const struct ss_written_coverage *written);
void ss_definer_task(struct ss_definer *definer, const struct ss_written_task *written);
uint32_t ss_definer_probe(struct ss_definer *definer,
			  const struct ss_written_probe *probe);
void ss_definer_trace(struct ss_definer *definer, const struct ss_trace_summary *summary);
/* wait: what the thread waits for in that call, or NULL. */
uint32_t ss_definer_call(struct ss_definer *definer, long number, uint64_t argument,
			 const struct ss_wait *wait);

/* Begins a segment: defines all objects again that still exist or that the samples
   refer to. False without memory. */
bool ss_definer_renew(struct ss_definer *definer, struct ss_sample_record *samples,
		      size_t count);

size_t ss_definer_memory(const struct ss_definer *definer);

#endif
