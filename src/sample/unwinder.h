/*
 * Unwinds captures in a child process without privileges (see sandbox/worker.h), which
 * has a copy of the recorded address spaces. Its answers are untrusted: this file checks
 * every index, count and length.
 *
 * No thread of the target is stopped while the child works. If the child fails or hangs,
 * the current tick is lost, and the caller must start another child. A module that was being
 * read is skipped from then on.
 */
#ifndef SS_SAMPLE_UNWINDER_H
#define SS_SAMPLE_UNWINDER_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/vector.h"
#include "capture/stacks.h"
#include "data/capture.h"
#include "data/gather.h"
#include "data/module.h"
#include "sample/address_space.h"
#include "sample/gathers.h"
#include "sample/modules.h"
#include "sample/thread_list.h"
#include "sandbox/worker.h"

/*
 * The protocol between the recorder and its unwinding child. The child is a fork of the
 * recorder, so structs are sent as they are in memory.
 *
 * A request is a sequence of these records, each with a struct wire_record first:
 *
 *	MODULE    struct wire_module, its path, mappings, header and bytes; and
 *		  a file, if it has one
 *	FORGET_MODULE
 *	SPACE     struct wire_space, ids of modules, path of the executable, areas,
 *		  names of areas
 *	FORGET_SPACE
 *	UNWIND    struct wire_unwind, threads (struct ss_capture_thread), whose stacks
 *		  are in shared memory, and what was gathered with them: for each turn
 *		  the number of its blocks, these (struct ss_memory_block) and their bytes;
 *		  always the last record
 *
 * The answer is untrusted: struct ss_unwound, with what the MODULEs are, and the stacks of
 * UNWIND.
 */

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
	/* As the recorder has it: its pointers tell only whether there is something, and follow */
	struct ss_module_impl module;
	uint32_t path_size;
	bool skipped; /* its unwind information is not read */
};

struct wire_space {
	uint32_t module_count;
	uint32_t area_count;
	uint64_t executable_size; /* 0: not known */
	uint32_t elf_machine;	  /* of its processor */
	uint32_t elf_class;
	uint64_t name_bytes; /* of all names, each with a NUL */
};

/* In each area the offset of its name replaces the pointer. */

struct wire_unwind {
	uint32_t max_frames;
	uint32_t thread_count;
	uint32_t turn_count;
	bool runtimes; /* find the calls of runtimes */
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
	uint32_t name;	      /* that its runtime has, if it was read with this capture */
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

/* A longer reason, function that waits, problem of a module, or name of a thread is invalid. */
enum {
	WIRE_REASON_MAX = 1024,
	WIRE_FUNCTION_MAX = 256,
	WIRE_PROBLEM_MAX = 128,
	WIRE_NAME_MAX = 1024
};

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

/*
 * The side of the recorder.
 */

/* A module, by its id. */
struct ss_unwinder_module {
	struct ss_module_impl *module; /* one reference; NULL: the id is free */
	uint32_t sent; /* number of the child that has it, from 1; 0: none */

	bool described;	   /* bias, build-id and problem are known */
	unsigned failures; /* number of children that failed while reading it */
	uint64_t bias;	   /* address minus offset */
	char build_id[2 * SS_BUILD_ID_MAX + 1]; /* in hexadecimal; empty: none */
	/* The identity of the file, in place of a build-id, and its hash; empty: none. */
	struct ss_file_identity file;
	char file_hash[2 * SS_FILE_HASH_SIZE + 1];
	char *problem; /* found by the child, or NULL */
};

/* The address space of one recorded process. */
struct ss_unwinder_space {
	uint32_t id;
	uint32_t sent;		     /* the child that has it; 0: none */
	uint64_t sent_version;	     /* of the address space */
	SS_VECTOR(uint32_t) modules; /* ids, in the order of the capture */
};

/* What the child needs to find the calls of runtimes. NULL in either: it does not find
   any. */
struct ss_unwinder_runtimes {
	const struct ss_gathers *gathers;	/* copied with the stacks */
	const struct ss_process_memory *memory; /* of the process, as it is now */
	/* Tells whether a thread has been blocked since the capture; NULL: it may have run */
	const struct ss_thread_list *threads;
};

enum { SS_UNWINDER_SENTENCE = 384 };

/* Losses caused by failures of the unwinder. */
struct ss_unwinder_losses {
	uint64_t ticks;	       /* ticks; each process counts separately */
	struct ss_buffer text; /* description of the failures; empty: none */
	char last[SS_UNWINDER_SENTENCE];
};

struct ss_unwinder {
	struct ss_worker *worker;
	struct ss_unwind_server *server; /* used in the child only */
	uint32_t child;			 /* the number of the current child */
	unsigned failures;		 /* in a row */
	SS_VECTOR(struct ss_unwinder_module) modules;
	SS_VECTOR(uint32_t) free_modules;
	SS_VECTOR(bool) spaces;
	struct ss_buffer request;
	SS_VECTOR(int) files;
	SS_VECTOR(uint32_t) pending; /* modules that the request describes */
	struct ss_unwound unwound;
	struct ss_unwinder_losses losses;
	unsigned max_frames;
};

/* arena: contains the stacks of all captures; it must outlive the unwinder. The child runs
   as the owner of the target, if that is permitted. meanwhile and owner: see struct
   ss_worker_options. */
struct ss_error *ss_unwinder_init(struct ss_unwinder *unwinder,
				  const struct ss_target *target,
				  const struct ss_arena *arena, unsigned max_frames,
				  bool (*meanwhile)(void *owner), void *owner);
void ss_unwinder_deinit(struct ss_unwinder *unwinder);

/* Starts a child if ss_unwinder_is_down(). The child ends with the calling thread. Errors:
   SYSTEM. */
struct ss_error *ss_unwinder_start(struct ss_unwinder *unwinder);

/* Whether a child must be started. */
bool ss_unwinder_is_down(const struct ss_unwinder *unwinder);

/* Whether too many children have failed in a row. No more are started; only the innermost
   frame of each thread is known then. */
bool ss_unwinder_gave_up(const struct ss_unwinder *unwinder);

/* False without memory. */
bool ss_unwinder_add_space(struct ss_unwinder *unwinder, struct ss_unwinder_space *space);
void ss_unwinder_remove_space(struct ss_unwinder *unwinder,
			      struct ss_unwinder_space *space);

/* The id of a module; SS_ID_NONE without memory. */
uint32_t ss_unwinder_add_module(struct ss_unwinder *unwinder,
				struct ss_module_impl *module);
void ss_unwinder_remove_module(struct ss_unwinder *unwinder, uint32_t id);

enum ss_unwinder_result {
	SS_UNWINDER_OK,
	SS_UNWINDER_FAILED, /* the child failed, or there is none: the tick is lost */
	SS_UNWINDER_NO_MEMORY,
};

/* Sends the changes of an address space and requests descriptions of new modules. All
   modules must be in the set, with their ids. */
enum ss_unwinder_result ss_unwinder_sync(struct ss_unwinder *unwinder,
					 struct ss_unwinder_space *space,
					 const struct ss_address_space *from,
					 const struct ss_module_set *set);

/* Does the same and unwinds a capture. runtimes: NULL, native frames only. *ret is valid until the next call. */
enum ss_unwinder_result ss_unwinder_unwind(struct ss_unwinder *unwinder,
					   struct ss_unwinder_space *space,
					   const struct ss_address_space *from,
					   const struct ss_module_set *set,
					   const struct ss_capture *capture,
					   const struct ss_unwinder_runtimes *runtimes,
					   const struct ss_unwound **ret);

#endif
