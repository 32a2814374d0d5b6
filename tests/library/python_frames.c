/*
 * A gather plan made by hand: the Python functions of each thread of a CPython 3.11
 * process, as they were while its running threads stood still. It proves that
 * plans can describe an interpreter: lists, pointers at offsets, thread pointers, bytes at
 * the end of a structure, and strings with a length.
 *
 *	python_frames PID ADDRESS-OF-_PyRuntime [chunks]
 *
 * With "chunks" it copies the stacks on which the interpreter keeps its frames, as wholes,
 * instead of following the list of frames. Prints a line for each thread: its id, whether
 * the interpreter's id for it is its thread pointer (-: not known), and the functions, the
 * innermost first.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/gather.h"
#include "data/pipeline.h"
#include "stacksnap.h"

/* Offsets of CPython 3.11, x86-64. */
enum {
	RUNTIME_INTERPRETERS = 40,
	INTERPRETER_NEXT = 0,
	INTERPRETER_THREADS = 16,
	THREAD_NEXT = 8,
	THREAD_CFRAME = 56,
	THREAD_ID = 152, /* pthread_self() */
	THREAD_NATIVE_ID = 160,
	THREAD_CHUNK = 296,
	CFRAME_FRAME = 8,
	FRAME_CODE = 32,
	FRAME_PREVIOUS = 48,
	CODE_NAME = 120,
	CHUNK_PREVIOUS = 0,
	CHUNK_SIZE = 8,
	STRING_LENGTH = 16,
	STRING_TEXT = 48,
	TCB_SELF = 16, /* of glibc: what pthread_self() returns */
};

enum {
	INTERPRETERS = 4,
	THREADS = 1000,
	FRAMES = 2000,
	CHUNKS = 64,
	CHUNK_BYTES = 64 << 10,
	NAME = 100,
};

/* Appends a step; returns its number. */
static uint32_t add(struct ss_gather_plan *plan, struct ss_gather_step step)
{
	step.mask = UINT64_MAX;
	if (step.max_nodes == 0)
		step.max_nodes = 1;
	plan->steps[plan->step_count] = step;
	return plan->step_count++;
}

/* What the pointer at an offset in each node of a step points to. */
static uint32_t add_pointer(struct ss_gather_plan *plan, uint32_t parent, uint32_t field,
			    uint32_t size)
{
	return add(plan, (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						  .parent = parent,
						  .field = field,
						  .size = size });
}

static uint32_t add_list(struct ss_gather_plan *plan, uint32_t parent, uint32_t field,
			 uint32_t size, uint32_t next, uint32_t max_nodes)
{
	uint32_t step = add_pointer(plan, parent, field, size);

	plan->steps[step].next = next;
	plan->steps[step].max_nodes = max_nodes;
	return step;
}

/* Bytes of each node of a step from an offset on, as many as a number in the node says. */
static void add_bytes(struct ss_gather_plan *plan, uint32_t parent, int64_t offset,
		      uint32_t count_field, uint32_t max)
{
	(void)add(plan, (struct ss_gather_step){ .base = SS_GATHER_NODE,
						 .parent = parent,
						 .offset = offset,
						 .size = max,
						 .count_size = sizeof(uint64_t),
						 .count_field = count_field,
						 .element = 1 });
}

static struct ss_gather_plan make_plan(uint64_t runtime, bool chunks)
{
	struct ss_gather_plan plan = { .size = sizeof(plan),
				       .max_nodes = 1 << 16,
				       .max_bytes = 32 << 20,
				       .max_reads = 4096 };
	uint32_t head = add(
		&plan, (struct ss_gather_step){ .base = SS_GATHER_ADDRESS,
						.address = runtime + RUNTIME_INTERPRETERS,
						.size = sizeof(uint64_t) });
	uint32_t interpreter = add_list(&plan, head, 0, INTERPRETER_THREADS + 8,
					INTERPRETER_NEXT, INTERPRETERS);
	uint32_t thread = add_list(&plan, interpreter, INTERPRETER_THREADS,
				   THREAD_CHUNK + 8, THREAD_NEXT, THREADS);
	uint32_t cframe = add_pointer(&plan, thread, THREAD_CFRAME, CFRAME_FRAME + 8);

	/* Also what only the C library knows of a thread. */
	(void)add(&plan, (struct ss_gather_step){ .base = SS_GATHER_THREAD_POINTER,
						  .offset = TCB_SELF,
						  .size = sizeof(uint64_t) });
	if (chunks) {
		uint32_t chunk = add_list(&plan, thread, THREAD_CHUNK, CHUNK_SIZE + 8,
					  CHUNK_PREVIOUS, CHUNKS);
		add_bytes(&plan, chunk, 0, CHUNK_SIZE, CHUNK_BYTES);
		return plan;
	}
	uint32_t frame = add_list(&plan, cframe, CFRAME_FRAME, FRAME_PREVIOUS + 8,
				  FRAME_PREVIOUS, FRAMES);
	uint32_t code = add_pointer(&plan, frame, FRAME_CODE, CODE_NAME + 8);
	uint32_t name = add_pointer(&plan, code, CODE_NAME, STRING_TEXT);
	add_bytes(&plan, name, STRING_TEXT, STRING_LENGTH, NAME);
	return plan;
}

/* A word of the process; 0: it was not copied. */
static uint64_t word(const struct ss_capture *capture, uint64_t address)
{
	uint64_t value;

	return ss_capture_read(capture, address, &value, sizeof(value)) == sizeof(value) ?
		       value :
		       0;
}

static void print_function(const struct ss_capture *capture, uint64_t frame)
{
	char text[NAME + 1] = "";
	uint64_t code = word(capture, frame + FRAME_CODE);
	uint64_t name = word(capture, code + CODE_NAME);
	uint64_t length = word(capture, name + STRING_LENGTH);

	if (!name) /* the code was not asked for */
		printf(" 0x%" PRIx64, code);
	else if (length <= NAME &&
		 ss_capture_read(capture, name + STRING_TEXT, text, length) == length)
		printf(" %s", text);
}

static void print_threads(const struct ss_capture *capture, uint64_t runtime)
{
	uint64_t interpreter = word(capture, runtime + RUNTIME_INTERPRETERS);
	uint64_t thread = word(capture, interpreter + INTERPRETER_THREADS);

	for (int i = 0; thread && i < THREADS; i++) {
		uint64_t id = word(capture, thread + THREAD_ID);
		uint64_t self = word(capture, id + TCB_SELF);
		uint64_t cframe = word(capture, thread + THREAD_CFRAME);
		uint64_t frame = word(capture, cframe + CFRAME_FRAME);
		printf("%" PRIu64 " %s", word(capture, thread + THREAD_NATIVE_ID),
		       !self	  ? "-" :
		       self == id ? "same" :
				    "different");
		for (int f = 0; frame && f < FRAMES; f++) {
			print_function(capture, frame);
			frame = word(capture, frame + FRAME_PREVIOUS);
		}
		printf("\n");
		thread = word(capture, thread + THREAD_NEXT);
	}
}

static int report(struct ss_error *error)
{
	fprintf(stderr, "%s\n", ss_error_message(error));
	ss_error_free(error);
	return 1;
}

int main(int argc, char **argv)
{
	struct ss_target *target = NULL;
	struct ss_capture *capture = NULL;

	if (argc < 3)
		return 64;
	uint64_t runtime = strtoull(argv[2], NULL, 0);
	const struct ss_gather_plan plan = make_plan(runtime, argc > 3);
	const struct ss_capture_options options = { .size = sizeof(options),
						    .no_waits = true,
						    .plan = &plan };
	struct ss_error *error =
		ss_target_open((pid_t)strtol(argv[1], NULL, 10), &target);
	if (!error)
		error = ss_capture_take(target, &options, &capture);
	if (capture)
		print_threads(capture, runtime);
	ss_capture_free(capture);
	ss_target_close(target);
	return error ? report(error) : 0;
}
