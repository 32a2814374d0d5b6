/*
 * Ways to find the caller of a frame. Each is one constant struct; walk.c has the table
 * that says which one is tried when. They use registers, memory and the unwind tables
 * of files, never a live process: stacks of any processor can be unwound on any
 * machine.
 *
 * To add one: write its struct ss_unwinder, declare it below, add it to the table in walk.c.
 */
#ifndef SS_UNWIND_UNWINDER_H
#define SS_UNWIND_UNWINDER_H

#include "base/hash.h"
#include "base/vector.h"
#include "elf/cfi_table.h"
#include "elf/image.h"
#include "data/capture.h"
#include "data/session.h"
#include "runtime/runtimes.h"

/*
 * The ELF images of a session, one for each file, and the CFI rows that were read from
 * them. Captures of the same program share them.
 */

struct ss_cached_row;

/* Rows that were found, see unwind/cfi.c. Zeroed, it is empty. */
struct ss_cfi_rows {
	struct ss_hash table; /* of cached */
	SS_VECTOR(struct ss_cached_row) cached;
	uint32_t last; /* index of the last row found, which is usually needed again */
};

struct ss_images {
	SS_VECTOR(struct ss_image *) items;
	struct ss_cfi_rows rows;
	const struct ss_session *session; /* where debug files are; NULL: nowhere */
};

/* NULL without memory. */
struct ss_images *ss_images_new(const struct ss_session *session);
void ss_images_free(struct ss_images *images);

/*
 * The unwind information of JIT code (jit.c). Compilers such as LLVM's put an .eh_frame into
 * memory and tell libgcc by __register_frame(). libgcc keeps lists of what was registered, whose
 * heads are in its data, without symbols. Others, such as qemu's, tell debuggers: a list from
 * __jit_debug_descriptor on has ELF images in memory. A gather plan copies the lists.
 */

/* An ELF image that describes code. */
struct ss_jit_image {
	uint64_t start; /* of the code, in the process */
	uint64_t end;
	struct ss_module_impl *module; /* has its bytes; one reference */
	struct ss_cfi_index *frames;   /* its .debug_frame; or NULL */
};

struct ss_registered {
	bool opened;
	/* Addresses of the .eh_frame sections that were registered and are in the capture */
	SS_VECTOR(uint64_t) sections;
	SS_VECTOR(struct ss_jit_image) images;
};

/* Reads what the capture has of them, once. False without memory. */
bool ss_registered_open(struct ss_registered *registered,
			const struct ss_capture *capture,
			const struct ss_session *session);
/* Adds the images of a list: descriptor is the address of the struct jit_descriptor. */
bool ss_registered_add_images(struct ss_registered *registered,
			      const struct ss_memory *memory, uint64_t descriptor);
void ss_registered_deinit(struct ss_registered *registered);

/* Adds the names that images have, as a perf map. False without memory. */
bool ss_registered_add_names(const struct ss_registered *registered,
			     struct ss_snapshot *snapshot);

/*
 * What unwinders know about a process: the copied stacks of one thread, the mapped
 * files, and which areas are code. They never read a live process.
 */

/* A module of the capture with its image. */
struct ss_loaded_module {
	struct ss_module_impl *module; /* the capture's */
	struct ss_image *image;	       /* the session's; NULL: no bytes */
	uint64_t bias;
	struct ss_cfi_table table; /* empty: none */
	bool skipped;		   /* its unwind information must not be read */
	bool opened;		   /* the image was searched for */
};

/* By how much a function moves the stack pointer, see frame_pointer.c. */
struct ss_stack_move {
	uint64_t start; /* of the function; 0: none */
	uint64_t moved;
	bool known;
};

/* What the code at an address of the process is. Many threads have the same frames. */
struct ss_code_fact {
	uint64_t address;		    /* 0: none */
	const struct ss_sigframe *sigframe; /* or NULL */
	bool return_address;
};

/* Whether the call before a return address leads to the code of an inner frame. */
enum ss_reach {
	SS_REACH_NO,
	/* A call through a register or a slot, a jump to anywhere, or code that was not searched */
	SS_REACH_UNKNOWN,
	SS_REACH_MODULE, /* to a stub for a function of another module, as the inner one is */
	SS_REACH_YES, /* to that function, by calls and jumps that say where they lead */
};

/* Whether a call of callee leads to pc. */
struct ss_call_answer {
	uint64_t callee;
	uint64_t pc;
	enum ss_reach reach;
	bool known;
};

enum {
	SS_STACK_MOVES = 64,
	SS_CODE_FACTS = 256,
	SS_CALL_ANSWERS = 1024,
	/* That code is searched for calls and jumps in a process: half a second. */
	SS_CALL_STEPS = 256 << 20,
};

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
	struct {
		uint64_t steps_left;				/* of SS_CALL_STEPS */
		struct ss_call_answer answers[SS_CALL_ANSWERS]; /* by a hash of both */
	} calls;
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

/* What the signal trampoline that starts at pc removes. NULL: none starts there. */
const struct ss_sigframe *ss_context_find_sigframe(struct ss_unwind_context *ctx,
						   uint64_t pc);

/* Whether address is in code directly after a call, or is a signal trampoline, to
   which handlers return without a call. */
bool ss_context_is_return_address(struct ss_unwind_context *ctx, uint64_t address);

/* A return address without its pointer authentication code. */
uint64_t ss_context_strip(struct ss_unwind_context *ctx, uint64_t address);

/* Whether ctx->missing is where the copy of a stack was truncated. */
bool ss_context_was_truncated(const struct ss_unwind_context *ctx);

enum ss_step {
	SS_STEP_OK,	  /* the frame is the caller's now */
	SS_STEP_ROOT,	  /* this is the outermost frame */
	SS_STEP_NO_INFO,  /* no unwind information covers the pc */
	SS_STEP_BAD,	  /* unwind information that cannot be interpreted */
	SS_STEP_COMPLEX,  /* unwind information that this unwinder does not support */
	SS_STEP_MISSING,  /* memory that is needed was not copied: see ctx->missing */
	SS_STEP_REGISTER, /* the value of a register that is needed is not known */
	SS_STEP_SKIP,	  /* not applicable: the previous result stands */
};

/* A frame as unwinders see it. */
struct ss_unwind_frame {
	struct ss_regs regs;
	bool call;	 /* pc is a return address */
	bool signal;	 /* pc is in a signal trampoline */
	bool new_thread; /* the thread has not run in user space yet */
	unsigned links;	 /* consecutive frame records followed to get here */
};

struct ss_unwinder {
	const char *name;
	enum ss_frame_source source; /* source of the frames that it finds */
	bool searches; /* it takes what may be a caller: nothing says where that is */

	/* What it keeps for a session. Both NULL: nothing. new() returns NULL without
	   memory. */
	void *(*new)(void);
	void (*free)(void *state);

	/* Turns the frame into its caller's. Unless it returns OK, the frame is
	   unchanged. */
	enum ss_step (*step)(void *state, struct ss_unwind_context *ctx,
			     struct ss_unwind_frame *frame);
};

extern const struct ss_unwinder ss_unwinder_cfi;	/* tables of ELF files */
extern const struct ss_unwinder ss_unwinder_registered; /* CFI of JIT code */
extern const struct ss_unwinder ss_unwinder_known_fp;	/* CFI, fp found */
extern const struct ss_unwinder ss_unwinder_missing_fp; /* CFI, fp searched for */
extern const struct ss_unwinder ss_unwinder_libunwind;	/* CFI of every kind */
extern const struct ss_unwinder ss_unwinder_go;		/* Go's runtime tables */
extern const struct ss_unwinder ss_unwinder_new_thread; /* the root of a new one */
extern const struct ss_unwinder ss_unwinder_bad_call;	/* a call through a bad pointer */
extern const struct ss_unwinder ss_unwinder_link_register; /* a leaf without CFI */
extern const struct ss_unwinder ss_unwinder_frame_pointer; /* frame records */
extern const struct ss_unwinder ss_unwinder_scan; /* return addresses on the stack */

/* Whether the call before a return address leads to the code at pc. */
enum ss_reach ss_call_reaches(struct ss_unwind_context *ctx, uint64_t return_address,
			      uint64_t pc);

/* Whether a frame that the scan has found is certain enough for what follows: its call leads to
   inner, and nothing in the next frames, by CFI, contradicts that. */
bool ss_guess_is_confirmed(struct ss_unwind_context *ctx,
			   const struct ss_unwind_frame *frame, uint64_t inner);

/* The address to look up the frame's function and row with: a call may be the last
   instruction of a function. */
static inline uint64_t ss_unwind_lookup_pc(const struct ss_unwind_context *ctx,
					   const struct ss_unwind_frame *frame)
{
	return ss_regs_pc(ctx->arch, &frame->regs) - (frame->call && !frame->signal);
}

#endif
