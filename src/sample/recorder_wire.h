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
 * The answer is untrusted: struct wire_answer, then for each MODULE struct
 * wire_module_answer, and for UNWIND the stacks (struct wire_stack and its frames),
 * for each thread struct wire_thread and its reason, the calls of runtimes that frames
 * refer to (struct wire_call, its function and its file), and, if has_plan, the gather plan for
 * the next captures (struct ss_gather_plan).
 */
#ifndef SS_SAMPLE_RECORDER_WIRE_H
#define SS_SAMPLE_RECORDER_WIRE_H

#include <stdint.h>

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

enum { WIRE_ANSWER = 0x53535557, WIRE_PROBLEM_MAX = 128 };

struct wire_answer {
	uint32_t magic;
	uint32_t module_count;
	uint32_t stack_count;
	uint32_t thread_count;
	uint32_t call_count;
	uint32_t has_plan; /* 0 or 1 */
};

struct wire_module_answer {
	uint32_t id;
	uint32_t build_id_size;
	uint64_t bias;
	uint8_t build_id[SS_BUILD_ID_MAX];
	uint64_t file_size; /* struct ss_file_identity, if has_hash */
	uint64_t modified_ns;
	uint64_t file_inode;
	uint8_t hash[SS_FILE_HASH_SIZE];
	uint64_t has_hash;		/* leaves no padding */
	char problem[WIRE_PROBLEM_MAX]; /* with a NUL; empty: none */
};

struct wire_stack {
	uint32_t frame_count;
	uint32_t end; /* enum ss_end */
};

struct wire_frame {
	uint64_t pc;	/* of the call of a runtime: its index */
	int32_t module; /* of the address space, or -1 */
	uint32_t flags; /* SS_FRAME_... of data/recording_format.h */
};

struct wire_thread {
	uint32_t stack;
	/* Why the stack ends, or, if it is whole, why it has native frames instead of calls: the text
	   follows, without a NUL. 0: none */
	uint32_t reason_size;
	uint32_t lacks_calls; /* 1: what runtimes need was not copied with its stack */
	/* The function that waits on a futex, which follows the reason, without a NUL; 0: none */
	uint32_t function_size;
};

struct wire_call {
	uint32_t kind; /* enum ss_frame_kind */
	uint32_t line;
	uint32_t function_size; /* at least 1 */
	uint32_t file_size;	/* 0: none */
};

/* Longer texts of calls are invalid. */
enum { WIRE_TEXT_MAX = 1 << 16 };

/* module_at of the worker: the index of a module in the address space, from 0 on; or
   WIRE_MODULE_AT - id, while a module is described. */
enum { WIRE_MODULE_AT = -2 };

/* A longer reason or function that waits is invalid. */
enum { WIRE_REASON_MAX = 1024, WIRE_FUNCTION_MAX = 256 };

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
