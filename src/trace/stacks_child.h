/*
 * The side of stacks.c that runs in a confined child: it unwinds one stack at a time, and names its
 * frames. The child is a fork of the tracer, so structs are sent as they are in memory.
 */
#ifndef SS_TRACE_STACKS_CHILD_H
#define SS_TRACE_STACKS_CHILD_H

#include "data/capture.h"
#include "sandbox/worker.h"

/* A request is this and the bytes of the stack. */
struct ss_stack_question {
	struct ss_regs regs;
	uint64_t pc;	  /* one of regs */
	uint64_t address; /* of the first byte */
	uint32_t size;
	uint32_t truncated;
};

enum { SS_STACK_FRAMES_MAX = 4096, SS_STACK_TEXT_MAX = 4096, SS_STACK_WORDS_MAX = 2048 };

/*
 * The answer is this, word_count times uint32_t, the offset of a word of the stack that unwinding
 * has read, and then struct ss_stack_answer. complete: the frames depend on nothing else.
 */
struct ss_stack_words {
	uint32_t word_count;
	uint32_t complete;
};

/* This is followed by a struct ss_stack_frame and its texts for each frame. */
struct ss_stack_answer {
	uint32_t frame_count;
	uint32_t end; /* enum ss_end */
};

struct ss_stack_frame {
	uint64_t pc;
	uint64_t offset;
	int32_t module; /* of the capture, or -1 */
	uint32_t inlined;
	uint32_t line;
	uint32_t symbol_size; /* 0: not known */
	uint32_t file_size;   /* likewise */
	uint16_t source;      /* enum ss_frame_source */
	uint8_t caller;	      /* pc is a return address */
	uint8_t signal_frame;
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

#endif
