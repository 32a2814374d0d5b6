/*
 * The protocol between the recorder and its unwinding child. The child is a fork of the
 * recorder, so structs are sent as they are in memory.
 *
 * A request is a sequence of these records, each with a struct wire_record first:
 *
 *	MODULE    struct wire_module, its path, mappings, build-id, header and bytes; and
 *		  a file, if it has one
 *	FORGET_MODULE
 *	SPACE     struct wire_space, ids of modules, path of the executable, areas,
 *		  names of areas
 *	FORGET_SPACE
 *	UNWIND    struct wire_unwind, threads (struct ss_capture_thread), whose stacks
 *		  are in shared memory, and what was gathered with them: for each turn
 *		  struct wire_turn, its blocks (struct wire_block) and their bytes;
 *		  always the last record
 *
 * The answer is untrusted: struct ss_unwound, with what the MODULEs are, and the stacks of
 * UNWIND.
 */
#ifndef SS_SAMPLE_RECORDER_WIRE_H
#define SS_SAMPLE_RECORDER_WIRE_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/vector.h"
#include "data/gather_plan.h"
#include "data/module.h"
#include "sandbox/worker.h"

enum wire_kind {
	WIRE_MODULE = 1,
	WIRE_FORGET_MODULE,
	WIRE_SPACE,
	WIRE_FORGET_SPACE,
	WIRE_UNWIND,
};

struct wire_record {
	uint32_t kind;
	uint32_t id; /* of the module or the address space */
};

struct wire_module {
	uint64_t base;
	uint64_t size;
	uint64_t device;
	uint64_t inode;
	uint64_t file_inode; /* see struct ss_module_impl */
	uint64_t modified_ns;
	uint64_t byte_count;
	uint32_t path_size;
	uint32_t mapping_count;
	uint32_t build_id_size;
	uint32_t header_size; /* see struct ss_module_impl */
	bool has_file;
	bool copied;
	bool unverified;
	bool skipped; /* its unwind information is not read */
};

struct wire_space {
	uint32_t module_count;
	uint32_t area_count;
	uint64_t executable_size; /* 0: not known */
	uint64_t name_bytes;	  /* of all names, each with a NUL */
};

/* In each area the offset of its name replaces the pointer. */

struct wire_unwind {
	uint32_t max_frames;
	uint32_t thread_count;
	uint32_t turn_count;
	bool runtimes; /* find the calls of runtimes */
};

struct wire_turn {
	uint64_t block_count;
	uint64_t byte_count; /* of all blocks */
};

struct wire_block {
	uint64_t address;
	uint64_t size;
};

/*
 * The answer: the stacks of a capture, as tables of plain structs that refer to each other by index.
 * The recorder checks every index and length before it uses them (unwinder.c).
 */

/* Of a module that the request has. Texts are offsets in texts; 0: none. */
struct ss_unwound_module {
	uint32_t id;
	uint32_t build_id_size;
	uint64_t bias; /* address minus offset */
	uint8_t build_id[SS_BUILD_ID_MAX];
	uint64_t file_size; /* struct ss_file_identity, if has_hash */
	uint64_t modified_ns;
	uint64_t file_inode;
	uint8_t hash[SS_FILE_HASH_SIZE];
	uint32_t has_hash;
	uint32_t problem;
};

struct ss_unwound_stack {
	uint32_t first; /* of its frames */
	uint32_t count;
	uint32_t end; /* enum ss_end */
};

struct ss_unwound_frame {
	uint64_t pc;	/* of the call of a runtime: its index in calls */
	int32_t module; /* index into the capture's modules, or -1 */
	uint32_t flags; /* SS_FRAME_... of data/recording_format.h */
};

struct ss_unwound_thread {
	uint32_t stack;
	uint32_t reason;   /* why it ended there, or has native frames instead of calls */
	uint32_t function; /* that waits on a futex */
	uint32_t lacks_calls; /* 1: what runtimes need was not copied with its stack */
};

/* The call of a runtime. */
struct ss_unwound_call {
	uint32_t kind; /* enum ss_frame_kind */
	uint32_t line;
	uint32_t function; /* not empty */
	uint32_t file;
};

struct ss_unwound {
	SS_VECTOR(struct ss_unwound_module) modules;
	SS_VECTOR(struct ss_unwound_stack) stacks;
	SS_VECTOR(struct ss_unwound_frame) frames;
	SS_VECTOR(struct ss_unwound_thread) threads; /* in the order of the capture */
	SS_VECTOR(struct ss_unwound_call) calls;
	SS_VECTOR(char) texts; /* each with a NUL */
	/* One for the next captures of the process, or none; as it came: not checked */
	SS_VECTOR(struct ss_gather_plan) plans;
	bool no_memory; /* something is missing */
};

void ss_unwound_clear(struct ss_unwound *unwound);
void ss_unwound_deinit(struct ss_unwound *unwound);

/* Appends all tables. */
void ss_unwound_encode(struct ss_unwound *unwound, struct ss_buffer *out);

/* False: invalid, or no memory. */
bool ss_unwound_decode(struct ss_unwound *unwound, struct ss_cursor *cursor);

/* Appends a text, of at most max bytes. NULL: 0. Without memory sets no_memory. */
uint32_t ss_unwound_add_text(struct ss_unwound *unwound, const char *text, size_t max);

/* The text of an offset that was checked; or NULL. */
static inline const char *ss_unwound_text(const struct ss_unwound *unwound,
					  uint32_t offset)
{
	return offset ? unwound->texts.items + offset : NULL;
}

static inline const struct ss_unwound_frame *
ss_unwound_frames(const struct ss_unwound *unwound, const struct ss_unwound_stack *stack)
{
	return unwound->frames.items + stack->first;
}

/* Longer texts of calls are invalid. */
enum { WIRE_TEXT_MAX = 1 << 16 };

/* module_at of the worker: the index of a module in the address space, from 0 on; or
   WIRE_MODULE_AT - id, while a module is described. */
enum { WIRE_MODULE_AT = -2 };

/* A longer reason, function that waits, or problem of a module is invalid. */
enum { WIRE_REASON_MAX = 1024, WIRE_FUNCTION_MAX = 256, WIRE_PROBLEM_MAX = 128 };

/*
 * The child's side (unwind_server.c). It runs without privileges, and is the only part of this
 * room that reads ELF files and unwind tables.
 */

struct ss_arena;
struct ss_unwind_server;

/* arena: the recorder's (see ss_arena_share()). NULL: no memory. */
struct ss_unwind_server *ss_unwind_server_new(const struct ss_arena *arena);
void ss_unwind_server_free(struct ss_unwind_server *server);

/* A ss_worker_serve; data is a struct ss_unwind_server. */
bool ss_unwind_server_serve(void *data, const struct ss_worker_request *request,
			    volatile int32_t *module_at, const uint8_t **answer,
			    size_t *answer_size);

#endif
