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
 * UNWIND (unwound.h).
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
