/*
 * stacksnap heap PID: what a process has allocated with glibc's malloc.
 */
#include "base/clock.h"
#include "cli/interpret.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/targets.h"
#include "data/pipeline.h"
#include "data/heap.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"

enum {
	DEFAULT_ROWS = 20,
	ROWS_MAX = 1000000,
	DEFAULT_TIMEOUT_S = 60,
	TIMEOUT_MAX_S = 24 * 3600,
	MS_PER_S = 1000,
};

/* Stacks are not wanted. */
enum { STACK_BYTES = 4096 };

struct heap {
	struct ss_options options;
	struct ss_target_options process;
	unsigned sizes;
	unsigned classes;
};

static void heap_deinit(struct heap *heap)
{
	ss_target_options_deinit(&heap->process);
	ss_options_deinit(&heap->options);
}

static const struct ss_option table[] = {
	{ "sizes", 0, "N",
	  "text: show the N sizes with the most bytes; 0: all (default: 20)", 1,
	  SS_SETS_NUMBER(struct heap, sizes, 0, ROWS_MAX) },
	{ "classes", 0, "N",
	  "text: show the N classes with the most bytes; 0: all (default: 20)", 1,
	  SS_SETS_NUMBER(struct heap, classes, 0, ROWS_MAX) },
	{ "timeout", 0, "S", "Limit the time for reading and for output (default: 60)", 4,
	  SS_SETS_NUMBER(struct heap, options.interpret_ms, 1, TIMEOUT_MAX_S,
			 .unit = MS_PER_S) },
	{},
};

static void check(void *input)
{
	const struct heap *heap = input;

	ss_target_options_require(&heap->process);
}

static const struct ss_option_child children[] = {
	{ &ss_format_group, offsetof(struct heap, options.common) },
	{ &ss_common_group, offsetof(struct heap, options.common) },
	{ &ss_target_group, offsetof(struct heap, process) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "PID|NAME",
	.doc = "Print what a process has allocated with the malloc of the GNU C library: "
	       "bytes and counts by arena, size and C++ class. The process is not "
	       "stopped.\vExit status: 0 complete, 1 something is missing, 2 the heap "
	       "could not be read, 64 wrong usage.",
	.end = check,
};

/* Of the sandbox: what was counted. */
#define MORE_MEMORY ((uint64_t)256 << 20)

/* Owned by one run of the command. */
struct process {
	const struct heap *heap;
	struct ss_target *target;
	struct ss_capture *capture;
	struct ss_late_reader *reader;
	struct ss_interpret_options options;
	struct ss_output *output;
};

static void process_deinit(struct process *process)
{
	ss_late_reader_free(process->reader);
	ss_output_close(process->output);
	ss_capture_free(process->capture);
	ss_target_close(process->target);
}

/* In the sandbox ---------------------------------------------------------------- */

static bool is_partial(const struct ss_heap *heap)
{
	bool partial = heap->classes_truncated;

	for (size_t i = 0; i < heap->arena_count; i++)
		partial |= heap->arenas[i].problem != NULL;
	return partial;
}

static struct ss_error *print(const struct process *process,
			      const struct ss_sandbox_attempt *attempt,
			      const struct ss_heap_input *input, const char *problem)
{
	const struct ss_common_options *common = &process->heap->options.common;
	const struct ss_format_options options = {
		.size = sizeof(options),
		.color = ss_options_want_color(common),
		.problem = problem,
	};
	FILE *out = NULL;
	struct ss_error *error = ss_stream_open(attempt->output, &out);

	if (error)
		return error;
	error = common->format->write_heap(input, &options, out);
	return ss_stream_close(out, error);
}

static struct ss_error *read_heap(const struct process *process,
				  const struct ss_sandbox_attempt *attempt,
				  struct ss_heap **ret)
{
	ss_sandbox_enter(attempt, SS_SANDBOX_HEAP);
	return ss_heap_read(process->capture, attempt->session, ss_sandbox_read,
			    ss_sandbox_read_ranges, ss_drop_const(attempt), ret);
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct process *process = data;
	_cleanup_(ss_heap_cleanup) struct ss_heap *before = NULL;
	_cleanup_(ss_heap_cleanup) struct ss_heap *heap = NULL;
	bool names = attempt->level == SS_SANDBOX_NAMES;
	struct ss_error *error = read_heap(process, attempt, &before);
	uint64_t begin_ns = ss_now_ns();

	if (!error)
		error = read_heap(process, attempt, &heap);
	uint64_t read_ns = ss_now_ns() - begin_ns;
	ss_sandbox_enter(attempt, SS_SANDBOX_SYMBOLIZE);
	if (!error && names)
		error = ss_heap_symbolize(heap, attempt->session);
	if (error)
		return error;
	_cleanup_free_ char *problem = ss_interpret_problem(attempt, false, NULL, NULL);
	const struct ss_heap_input input = { .before = before,
					     .heap = heap,
					     .read_ns = read_ns,
					     .sizes = process->heap->sizes,
					     .classes = process->heap->classes };
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	error = print(process, attempt, &input, problem);
	ss_sandbox_set_value(attempt, is_partial(heap) || problem);
	return error;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct process *process = data;

	return ss_late_reader_read(process->reader, address, bytes, size);
}

/* Reads the heap twice, and prints the second census. *ret: whether anything is missing. */
static struct ss_error *print_census(struct process *process, bool *ret)
{
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;
	struct ss_error *error = ss_work_run(&process->options, work, &result);

	if (!error)
		error = ss_work_copy(
			result, &process->heap->options.common,
			ss_options_want_color(&process->heap->options.common),
			process->output);
	if (!error)
		*ret = result->value != 0;
	return error;
}

/* The process ------------------------------------------------------------------- */

/* Where modules and areas are, and how to read. */
static struct ss_error *open_process(const struct heap *heap, struct process *process)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_NO_STOP,
						    .max_stack = STACK_BYTES,
						    .no_waits = true };
	pid_t pid = ss_target_options_pid(&heap->process);
	struct ss_error *error = ss_target_open(pid, &process->target);

	if (!error)
		error = ss_capture_take(process->target, &options, &process->capture);
	if (!error)
		error = ss_late_reader_new(process->capture, process->target,
					   &process->reader);
	if (error)
		return error;
	ss_late_reader_read_all(process->reader, heap->options.interpret_ms);
	process->options = ss_work_options(NULL, NULL, process);
	process->options.timeout_ms = heap->options.interpret_ms;
	process->options.more_memory = MORE_MEMORY;
	process->options.read = read_memory;
	ss_interpret_as_owner(process->target, &process->options);
	return NULL;
}

static struct ss_error *print_heap(const struct heap *heap, bool *missing)
{
	_cleanup_(process_deinit) struct process process = { .heap = heap };
	struct ss_error *error = open_process(heap, &process);

	if (!error)
		error = ss_output_open(heap->options.common.output,
				       ss_target_options_pid(&heap->process),
				       &process.output);
	return error ? error : print_census(&process, missing);
}

static int run(int argc, char **argv)
{
	_cleanup_(heap_deinit) struct heap heap = { .process.single = true,
						    .sizes = DEFAULT_ROWS,
						    .classes = DEFAULT_ROWS };
	bool missing = false;

	ss_options_init(&heap.options);
	heap.options.common.input = SS_FORMAT_HEAP;
	heap.options.interpret_ms = DEFAULT_TIMEOUT_S * MS_PER_S;
	if (!ss_usage_parse(&ss_command_heap, argc, argv, 0, &heap) ||
	    !ss_target_options_resolve(&heap.process))
		return SS_STATUS_NOTHING;
	if (heap.options.common.verbose)
		heap.sizes = heap.classes = 0; /* all */
	_cleanup_error_ struct ss_error *error = print_heap(&heap, &missing);
	return ss_failure_status(error, missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE);
}

const struct ss_command ss_command_heap = {
	.name = "heap",
	.input = SS_FORMAT_HEAP,
	.summary = "count the allocations of a process by size and C++ class",
	.options = &group,
	.run = run,
};
