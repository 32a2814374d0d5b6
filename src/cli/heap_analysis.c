#include "cli/heap_analysis.h"

#include "base/clock.h"
#include "cli/failure.h"
#include "capture/late_reader.h"
#include "data/heap.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"

SS_DEFINE_CLEANUP(struct ss_heap, heap, ss_heap_free)

static bool is_partial(const struct ss_heap *heap)
{
	bool partial = heap->classes_truncated;

	for (size_t i = 0; i < heap->arena_count; i++)
		partial |= heap->arenas[i].problem != NULL;
	return partial;
}

static struct ss_error *print(const struct ss_heap_analysis *analysis,
			      const struct ss_sandbox_attempt *attempt,
			      const struct ss_heap_input *input, const char *problem)
{
	const struct ss_common_options *common = &analysis->options->common;
	const struct ss_format_options options = {
		.size = sizeof(options),
		.color = ss_options_want_color(common),
		.problem = problem,
	};
	FILE *out = NULL;
	struct ss_error *error = ss_analysis_open(attempt, &out);

	if (error)
		return error;
	error = common->format->write_heap(input, &options, out);
	return ss_analysis_close(out, error);
}

static struct ss_error *read_heap(const struct ss_heap_analysis *analysis,
				  const struct ss_sandbox_attempt *attempt,
				  struct ss_heap **ret)
{
	ss_sandbox_enter(attempt, SS_SANDBOX_UNWIND);
	return ss_heap_read(analysis->capture, attempt->session, ss_sandbox_read,
			    ss_drop_const(attempt), ret);
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct ss_heap_analysis *analysis = data;
	_cleanup_(heap_cleanup) struct ss_heap *before = NULL;
	_cleanup_(heap_cleanup) struct ss_heap *heap = NULL;
	bool names = attempt->level == SS_SANDBOX_NAMES;
	struct ss_error *error = read_heap(analysis, attempt, &before);
	uint64_t begin_ns = ss_now_ns();

	if (!error)
		error = read_heap(analysis, attempt, &heap);
	uint64_t read_ns = ss_now_ns() - begin_ns;
	ss_sandbox_enter(attempt, SS_SANDBOX_SYMBOLIZE);
	if (!error && names)
		error = ss_heap_symbolize(heap, attempt->session);
	if (error)
		return error;
	_cleanup_free_ char *problem = ss_interpret_problem(
		attempt->failures, attempt->failure_count, attempt->level,
		attempt->no_waits, false, NULL, NULL);
	const struct ss_heap_input input = { .before = before,
					     .heap = heap,
					     .read_ns = read_ns,
					     .sizes = analysis->sizes,
					     .classes = analysis->classes };
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	error = print(analysis, attempt, &input, problem);
	ss_sandbox_set_value(attempt, is_partial(heap) || problem);
	return error;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct ss_heap_analysis *analysis = data;

	return ss_late_reader_read(analysis->reader, address, bytes, size);
}

struct ss_error *ss_heap_analysis_run(struct ss_heap_analysis *analysis, bool *ret)
{
	struct ss_file_requests none = {};
	struct ss_session_options session;
	struct ss_analysis sandboxed = {
		.work = work,
		.data = analysis,
		.color = ss_options_want_color(&analysis->options->common),
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	ss_analysis_configure(&sandboxed, &session, analysis->options, &analysis->owner,
			      1, &none);
	sandboxed.options.last_level = SS_SANDBOX_RAW;
	sandboxed.options.read = read_memory;
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	if (!error)
		error = ss_analysis_copy(&sandboxed, result, analysis->output);
	if (!error)
		*ret = result->value != 0;
	return error;
}
