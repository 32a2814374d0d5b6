/*
 * Runs a function in a child process that can do next to nothing but compute: what it
 * interprets may be made to break it, and the worst that comes of it is then that this
 * child dies. It inherits the memory of its parent as it is, hands back what it wrote,
 * and nothing that it says is believed unseen.
 */
#ifndef SS_CLI_SANDBOX_H
#define SS_CLI_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/confine.h"

enum { SS_SANDBOX_RESULTS = 2 };

/* What child and parent share, and nobody else. It belongs to one run at a time. */
struct ss_sandbox_board {
	volatile uint32_t step;		     /* what it is doing: an index of steps */
	volatile int32_t module;	     /* that it is reading, or -1 */
	uint64_t result[SS_SANDBOX_RESULTS]; /* for the caller; hostile */
	/* Set by the sandbox itself: */
	uint32_t finished; /* work has returned, and all was written */
	uint32_t refused;  /* enum ss_confine_refused */
	uint32_t error_code;
	char error_message[1024];
	char error_remedy[1024];
};

/* NULL: no memory. */
struct ss_sandbox_board *ss_sandbox_board_new(void);
void ss_sandbox_board_free(struct ss_sandbox_board *board);

SS_DEFINE_CLEANUP(struct ss_sandbox_board, ss_sandbox_board, ss_sandbox_board_free)

/* What runs in the child. It writes to out, and what it tells goes to stderr as usual;
   both are held back until it has ended well. An error is handed to the caller, except
   that NO_MEMORY is a death. */
typedef struct ss_error *ss_sandbox_work(void *data, struct ss_sandbox_board *board,
					 FILE *out);

struct ss_sandbox {
	ss_sandbox_work *work;
	void *data;
	struct ss_sandbox_board *board; /* is cleared first; NULL: one for this run */
	const char *const *steps;	/* what it may be doing: "looking up names" */
	size_t step_count;
	unsigned timeout_ms; /* then it is killed */
	struct ss_confinement confinement;
};

struct ss_sandbox_outcome {
	char *death;  /* "crashed (SIGSEGV) while ..."; NULL: it ended well. Owned. */
	int output;   /* files of what it wrote, */
	int messages; /* and told, for ss_relay_write(); owned */
	struct ss_error *error;	       /* of work; owned */
	struct ss_sandbox_board board; /* as it was at the end */
};

#define SS_SANDBOX_NO_OUTCOME                                                            \
	{                                                                                \
		.output = -1, .messages = -1                                             \
	}

/* Errors: SYSTEM, NO_MEMORY: the child could not be made. */
struct ss_error *ss_sandbox_run(const struct ss_sandbox *sandbox,
				struct ss_sandbox_outcome *ret);
void ss_sandbox_outcome_deinit(struct ss_sandbox_outcome *outcome);

#endif
