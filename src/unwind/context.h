/*
 * What unwinders know about a process: the copied stacks of one thread, the mapped
 * files, and which areas are code. They never read a live process.
 */
#ifndef SS_UNWIND_CONTEXT_H
#define SS_UNWIND_CONTEXT_H

#include "elf/cfi_table.h"
#include "model/capture.h"
#include "model/capture_memory.h"
#include "model/session.h"
#include "runtime/runtimes.h"
#include "unwind/images.h"
#include "unwind/registered.h"

/* A module of the capture with its image. */
struct ss_loaded_module {
	struct ss_module_impl *module; /* the capture's */
	struct ss_image *image;	       /* the session's; NULL: no bytes */
	uint64_t bias;
	struct ss_cfi_table table; /* empty: none */
	bool skipped;		   /* its unwind information must not be read */
	bool opened;		   /* the image was searched for */
};

/* By how much a function moves the stack pointer, see missing_fp.c. */
struct ss_stack_move {
	uint64_t start; /* of the function; 0: none */
	uint64_t moved;
	bool known;
};

/* What the code at an address of the process is. Many threads have the same frames. */
struct ss_code_fact {
	uint64_t address; /* 0: none */
	bool sigreturn;
	bool return_address;
};

enum { SS_STACK_MOVES = 64, SS_CODE_FACTS = 256 };

struct ss_unwind_context {
	const struct ss_arch *arch;
	const struct ss_capture *capture;
	struct ss_images *images;
	struct ss_loaded_module *modules; /* one for each module of the capture */
	struct ss_loaded_module *last;	  /* that was found */
	struct ss_registered registered;
	struct ss_runtimes *runtimes; /* or NULL */
	const struct ss_capture_thread *thread;
	struct ss_capture_memory stacks; /* of thread */
	uint64_t missing;		 /* address of the last read that failed */
	struct ss_words_read *words;	 /* or NULL */
	struct ss_stack_move moves[SS_STACK_MOVES]; /* by a hash of start */
	struct ss_code_fact facts[SS_CODE_FACTS];   /* by a hash of address */
};

/* False without memory. The capture must outlive the context. */
bool ss_context_init(struct ss_unwind_context *ctx, const struct ss_capture *capture,
		     struct ss_images *images);
void ss_context_deinit(struct ss_unwind_context *ctx);

/* Selects the thread whose stacks are read from now on. */
void ss_context_set_thread(struct ss_unwind_context *ctx,
			   const struct ss_capture_thread *thread);

/* The module at an address of the process, its image opened; or NULL. */
struct ss_loaded_module *ss_context_find_module(struct ss_unwind_context *ctx,
						uint64_t address);

/* The same for data, which may be in the module's .bss, after the part that is mapped
   from the file. Only a symbol can tell whether it belongs to the module. */
struct ss_loaded_module *ss_context_find_data(struct ss_unwind_context *ctx,
					      uint64_t address);

/* Reads a word of a stack or of a file. False: it was not copied; ctx->missing is its
   address. */
bool ss_context_read_word(struct ss_unwind_context *ctx, uint64_t address, uint64_t *ret);

/* Reads code or read-only data of a module. Returns the number of bytes that were read. */
size_t ss_context_read_code(struct ss_unwind_context *ctx, uint64_t address, void *bytes,
			    size_t size);

/* The start of the function that covers address, by its CFI. 0: not known. */
uint64_t ss_context_find_function(struct ss_unwind_context *ctx, uint64_t address);

/* The same, with its end. False: not known. */
bool ss_context_find_extent(struct ss_unwind_context *ctx, uint64_t address,
			    uint64_t *start, uint64_t *end);

/* Whether address is in an executable area. */
bool ss_context_is_code(struct ss_unwind_context *ctx, uint64_t address);

/* Whether pc is at the start of a signal trampoline. */
bool ss_context_is_sigreturn(struct ss_unwind_context *ctx, uint64_t pc);

/* Whether address is in code directly after a call, or is a signal trampoline, to
   which handlers return without a call. */
bool ss_context_is_return_address(struct ss_unwind_context *ctx, uint64_t address);

/* A return address without its pointer authentication code. */
uint64_t ss_context_strip(struct ss_unwind_context *ctx, uint64_t address);

/* Whether ctx->missing is where the copy of a stack was truncated. */
bool ss_context_was_truncated(const struct ss_unwind_context *ctx);

#endif
