/*
 * The stacks of hits, unwound and named by a confined child, and numbered from 1 on: what the child
 * answers is untrusted; and the traced threads.
 */
#ifndef SS_TRACE_STACKS_H
#define SS_TRACE_STACKS_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/capture.h"
#include "process/target.h"
#include "sandbox/worker.h"
#include "stacksnap/trace.h"

/*
 * The side that runs in a confined child (stacks_child.c): it unwinds one stack at a time, and names its
 * frames. The child is a fork of the tracer, so structs are sent as they are in memory.
 */

/* A request is this and the bytes of the stack. */
struct ss_stack_question {
	struct ss_regs regs;
	uint64_t pc;	  /* one of regs */
	uint64_t address; /* of the first byte */
	uint32_t size;
	uint32_t truncated;
};

enum { SS_STACK_FRAMES_MAX = 4096, SS_STACK_WORDS_MAX = 2048 };

/*
 * The answer is this, word_count times uint32_t, the offset of a word of the stack that unwinding
 * has read, and then the fields of a struct ss_stack. complete: the frames depend on nothing else.
 */
struct ss_stack_words {
	uint32_t word_count;
	uint32_t complete;
};

struct ss_stack_server;

/* capture: modules and areas; borrowed. NULL: no memory. */
struct ss_stack_server *ss_stack_server_new(struct ss_capture *capture,
					    unsigned max_frames, unsigned flags,
					    const char *debug_dir);
void ss_stack_server_free(struct ss_stack_server *server);

/* For a child that is started from now on: a capture with the same code. */
void ss_stack_server_set_capture(struct ss_stack_server *server,
				 struct ss_capture *capture);

/* A ss_worker_serve; data is the server. */
bool ss_stack_server_serve(void *data, const struct ss_worker_request *request,
			   volatile int32_t *module_at, const uint8_t **answer,
			   size_t *answer_size);

/*
 * Where a process has code: its modules, and its executable areas. Unwinding needs nothing else of
 * an address space, whose other areas change all the time while a process allocates memory.
 */

struct ss_code_range {
	uint64_t start;
	uint64_t end;
};

/* Zeroed, it is empty. */
struct ss_code_map {
	SS_VECTOR(struct ss_code_range) ranges; /* sorted; neighbours are one */
	SS_VECTOR(struct ss_module_impl *)
	modules; /* of the capture; one reference each */
};

/* Takes the code of a capture, in place of what was there. False: no memory; it is empty. */
bool ss_code_map_set(struct ss_code_map *map, const struct ss_capture *capture);
void ss_code_map_deinit(struct ss_code_map *map);

/* Whether a capture has the same code, with the same indexes of modules. */
bool ss_code_map_is_of(const struct ss_code_map *map, const struct ss_capture *capture);

/*
 * Stacks that were unwound before. Unwinding depends on registers and on the words of the stack
 * that it reads, so a stack in which they are the same has the same frames: return addresses must
 * be equal, and pointers into the stack must have the same distance from the stack pointer. Other
 * values are data that functions keep in registers, which may differ, unless they point into the
 * stack now. Where a stack ended since a value was no return address, another one may be one, so only
 * stacks that reached their root or a limit are kept. Zero as a return address is a root: above the
 * outermost return address, zero is no data. Programs come by at the same place again and again.
 */

/* A word of the stack or a register, for comparison. */
struct ss_stack_word {
	uint64_t
		value; /* CODE (or 0): itself; STACK: its distance from the stack pointer */
	uint32_t at;   /* in the stack, or the register */
	enum ss_stack_word_kind { SS_WORD_DATA, SS_WORD_CODE, SS_WORD_STACK } kind;
};

struct ss_known_stack {
	uint32_t next; /* index + 1 of one that may be this one as well; 0: none */
	uint32_t number;
	uint64_t valid; /* registers */
	size_t first;	/* in words: registers, */
	size_t count;	/* and words of the stack */
};

/* Zeroed, it is empty. */
struct ss_stack_cache {
	struct ss_idtable places;  /* struct place */
	SS_VECTOR(uint32_t) heads; /* of each place: index + 1; 0: none */
	SS_VECTOR(struct ss_known_stack) items;
	SS_VECTOR(struct ss_stack_word) words;
};

void ss_stack_cache_deinit(struct ss_stack_cache *cache);

/* The number that was added for a stack like this one, or 0. */
uint32_t ss_stack_cache_find(const struct ss_stack_cache *cache,
			     const struct ss_stack_question *question,
			     const uint8_t *bytes);

/* stack: the frames. offsets: of the words that unwinding has read, each within the bytes. Without
   memory, nothing is added. */
void ss_stack_cache_add(struct ss_stack_cache *cache, const struct ss_trace_stack *stack,
			const struct ss_stack_question *question, const uint8_t *bytes,
			const uint32_t *offsets, size_t count, uint32_t number);

struct ss_trace_stacks {
	struct ss_stack_server *server;
	struct ss_worker *worker;
	const struct ss_capture *capture; /* with the code of the worker */
	struct ss_code_map code;	  /* likewise */
	unsigned failures;
	struct ss_intern *strings;
	struct ss_stack_cache cache;
	struct ss_idtable ids;
	struct ss_buffer request;
	struct ss_buffer key;
	SS_VECTOR(struct ss_trace_stack) items;	    /* by id - 1 */
	SS_VECTOR(struct ss_module_impl *) modules; /* of frames; one reference each */
};

void ss_trace_stacks_deinit(struct ss_trace_stacks *stacks);

/* Starts a child for an address space, in place of the one before, unless their code is the same.
   Errors: SYSTEM, NO_MEMORY. */
struct ss_error *ss_trace_stacks_begin(struct ss_trace_stacks *stacks,
				       struct ss_capture *capture,
				       const struct ss_target *target,
				       const struct ss_trace_options *options);

/* The number of the stack with these registers and bytes; 0: the child failed, or no memory. */
uint32_t ss_trace_stacks_find(struct ss_trace_stacks *stacks, const struct ss_regs *regs,
			      const void *bytes, size_t size, bool truncated);

/* The number of the stack with these fields, which the child has sent; 0: no memory. Invalid frames
   are left out, and so is what follows bytes that are invalid. */
uint32_t ss_trace_stacks_add(struct ss_trace_stacks *stacks, const uint8_t *bytes,
			     size_t size);

/*
 * The traced threads: their names, and the scopes that they are in.
 */

enum { SS_TRACE_COMM = 16 };

struct ss_trace_scope {
	uint32_t probe;
	bool reported; /* its entry was */
	uint64_t sp;   /* at the entry: the same as when it returns */
	uint64_t begin_ns;
	uint64_t inner_ns; /* taken by reported scopes within it */
	uint64_t sequence; /* of its entry */
	uint32_t stack;	   /* likewise */
};

struct ss_trace_thread {
	pid_t pid;
	pid_t tid;
	bool other_program; /* it is not in the address space of the target */
	bool named;
	char name[SS_TRACE_COMM];
	SS_VECTOR(struct ss_trace_scope) scopes; /* outermost first */
};

/* Zeroed, it is empty. */
struct ss_trace_threads {
	SS_VECTOR(struct ss_trace_thread) items;
	SS_VECTOR(uint32_t) unused; /* slots of threads that have ended */
	struct ss_hash index;	    /* by tid; also those of unused slots, with tid 0 */
};

void ss_trace_threads_deinit(struct ss_trace_threads *threads);

/* The thread, which is added if it is new; it executes the program of its process. Valid until the next
   call. NULL: no memory. */
struct ss_trace_thread *ss_trace_threads_get(struct ss_trace_threads *threads, pid_t pid,
					     pid_t tid);
void ss_trace_threads_remove(struct ss_trace_threads *threads,
			     struct ss_trace_thread *thread);

void ss_trace_thread_set_name(struct ss_trace_thread *thread, const char *name);
/* Reads its name, unless it is known. */
void ss_trace_thread_find_name(struct ss_trace_thread *thread,
			       const struct ss_target *target);

#endif
