/*
 * The definitions of a recording's segment: what samples refer to by numbers. Here they
 * get their numbers and become bytes; when those are written is the writer's business.
 */
#ifndef SS_RECORD_DEFINE_H
#define SS_RECORD_DEFINE_H

#include "base/vector.h"
#include "record/bytes.h"
#include "record/format.h"
#include "record/writer.h"

/* A process, thread or module, by its handle. */
struct ss_defined {
	enum { SS_DEFINED_FREE = 0, SS_DEFINED_LIVE, SS_DEFINED_ENDED } state;
	bool needed;	  /* by a stack that is carried over */
	uint32_t local;	  /* its number in this segment */
	uint32_t process; /* handle, of threads and modules */
	pid_t id;
	uint64_t begin_ns;
	uint64_t end_ns;
	char *name; /* path of a module, comm of others */
	char *more; /* executable, build-id */
	char *problem;
	uint64_t numbers[4]; /* start time; base, size, bias, flags */
};

struct ss_defined_list {
	SS_VECTOR(struct ss_defined) items;
	SS_VECTOR(uint32_t) unused; /* handles */
	uint32_t next_local;
};

/* Frames and calls as they are compared, byte by byte: without padding. */
struct ss_frame_key {
	uint64_t value;
	uint32_t module; /* handle */
	uint32_t flags;
	uint32_t area;	  /* string, or 0 */
	uint32_t process; /* handle, without a module */
};

struct ss_call_key {
	int64_t number;
	uint64_t argument;
};

/* The key of a stack: numbers of 32 bits. */
enum { SS_KEY_END, SS_KEY_REASON, SS_KEY_FRAMES };

/* Told that many records have come together: to write them, and to empty out. */
typedef void ss_definer_full(void *data);

struct ss_definer {
	struct ss_bytes out; /* records that are not written yet */
	ss_definer_full *full;
	void *full_data;
	struct ss_bytes payload; /* of the record at hand */
	struct ss_idtable strings;
	struct ss_idtable frames;
	struct ss_idtable stacks;
	struct ss_idtable calls;
	struct ss_defined_list processes;
	struct ss_defined_list threads;
	struct ss_defined_list modules;
	struct ss_bytes key;  /* of the stack at hand */
	struct ss_bytes last; /* the key of the last one that was defined */
	uint64_t defined_threads;
	uint64_t defined_stacks;
};

void ss_definer_deinit(struct ss_definer *definer);

uint32_t ss_definer_add(struct ss_definer *definer, enum ss_definition kind,
			const struct ss_defined *what);
void ss_definer_end(struct ss_definer *definer, enum ss_definition kind, uint32_t handle,
		    uint64_t time_ns);
void ss_definer_name(struct ss_definer *definer, uint32_t thread, const char *name,
		     uint64_t time_ns);
uint32_t ss_definer_stack(struct ss_definer *definer,
			  const struct ss_written_frame *frames, size_t count,
			  enum ss_end end, const char *reason);
void ss_definer_wait(struct ss_definer *definer, const struct ss_written_wait *wait);
uint32_t ss_definer_call(struct ss_definer *definer, long number, uint64_t argument);

/* Begins a segment: everything that has not ended is defined anew, and what samples
   refer to. False without memory. */
bool ss_definer_renew(struct ss_definer *definer, struct ss_written_sample *samples,
		      size_t count);

/* Defines one that has a handle, under the next number of its kind. */
void ss_definer_put(struct ss_definer *definer, enum ss_definition kind,
		    struct ss_defined *d);

size_t ss_definer_memory(const struct ss_definer *definer);

#endif
