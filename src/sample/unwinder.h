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

#include "base/buffer.h"
#include "capture/stacks.h"
#include "data/capture.h"
#include "sandbox/worker.h"
#include "sample/address_space.h"
#include "sample/gathers.h"
#include "sample/module_set.h"
#include "sample/thread_list.h"
#include "sample/recorder_wire.h"

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
