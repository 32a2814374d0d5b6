#include "cli/interpret.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "report/advice.h"
#include "report/names.h"
#include "cli/output.h"
#include "cli/failure.h"
#include "cli/process.h"
#include "diagnose/wait_table.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"

enum { BUFFER_SIZE = 64 << 10 };

static void warn_text(const char *text)
{
	ss_failure_warn("%s", text);
}

struct ss_error *ss_debuginfod_open(const struct ss_symbol_options *symbols,
				    struct ss_debuginfod **ret)
{
	return symbols->debuginfod ? ss_debuginfod_new(warn_text, ret) : NULL;
}

void ss_reading_deinit(struct ss_reading *reading)
{
	ss_file_requests_deinit(&reading->requests);
	ss_row_source_deinit(&reading->rows);
}

static const struct ss_format *format_of(const struct ss_reading *reading)
{
	return reading->format ? reading->format : reading->options->common.format;
}

/* The confined process --------------------------------------------------------- */

/* If it ended with the status of a sanitizer: copies its messages to standard error and ends this
   process with that status, so that the finding is not lost. */
#if defined(__SANITIZE_ADDRESS__)
static void pass_on_finding(const struct ss_sandbox_result *result)
{
	enum { SANITIZER_STATUS = 99 };

	for (size_t i = 0; i < result->failure_count; i++) {
		if (result->failures[i].cause != SS_SANDBOX_EXIT ||
		    result->failures[i].code != SANITIZER_STATUS)
			continue;
		_cleanup_error_ struct ss_error *error =
			ss_escaped_copy(result->messages, false, stderr);
		(void)fflush(stderr);
		_exit(SANITIZER_STATUS);
	}
}
#else
static void pass_on_finding(const struct ss_sandbox_result *result)
{
	(void)result;
}
#endif

static struct ss_error *copy_messages(const struct ss_sandbox_result *result,
				      const struct ss_common_options *common)
{
	struct ss_error *error = ss_escaped_copy(result->messages, false, stderr);

	if (!error && common->verbose && result->partial)
		ss_failure_warn("the kernel refused part of the sandbox");
	return error;
}

static struct ss_error *copy_output(const struct ss_sandbox_result *result,
				    const struct ss_format *format, bool color,
				    struct ss_output *output)
{
	FILE *out = ss_output_file(output);
	struct ss_error *error = format && format->binary ?
					 ss_plain_copy(result->output, out) :
					 ss_escaped_copy(result->output, color, out);

	return error ? error : ss_output_flush(output);
}

struct ss_error *ss_stream_open(int fd, FILE **ret)
{
	_cleanup_close_ int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (!out)
		return ss_error_no_memory();
	(void)take_fd(copy);			       /* the stream owns it */
	(void)setvbuf(out, NULL, _IOFBF, BUFFER_SIZE); /* best effort */
	*ret = out;
	return NULL;
}

struct ss_error *ss_stream_close(FILE *out, struct ss_error *error)
{
	bool failed = ferror(out) != 0;
	int closed = fclose(out);
	int errnum = errno;

	if (error || (!failed && closed == 0))
		return error;
	return ss_error_new_errno(failed ? EIO : errnum, "cannot write the result");
}

static void print_slow(void *data, enum ss_sandbox_step step)
{
	(void)data;
	if (isatty(STDERR_FILENO) == 1)
		ss_failure_warn("%s...", ss_sandbox_step_name(step));
}

struct ss_interpret_options ss_work_options(const struct ss_symbol_options *symbols,
					    struct ss_file_requests *files, void *data)
{
	return (struct ss_interpret_options){
		.size = sizeof(struct ss_interpret_options),
		.raw = symbols && symbols->raw,
		.debug_dir = symbols ? symbols->debug_dir : NULL,
		.sysroot = symbols ? symbols->sysroot : NULL,
		.last_level = SS_SANDBOX_RAW, /* no file is read with privileges */
		.files = files,
		.data = data,
		.slow = print_slow,
	};
}

struct ss_error *ss_work_run(const struct ss_interpret_options *options,
			     ss_sandbox_work *work, struct ss_sandbox_result **ret)
{
	struct ss_error *error = ss_interpret_work(options, work, ret);

	if (!error)
		pass_on_finding(*ret);
	return error;
}

struct ss_error *ss_work_copy(const struct ss_sandbox_result *result,
			      const struct ss_common_options *common, bool color,
			      struct ss_output *output)
{
	struct ss_error *error =
		output ? copy_output(result, common->format, color, output) : NULL;

	return error ? error : copy_messages(result, common);
}

/* Options --------------------------------------------------------------------- */

static bool is_interrupted(void *data)
{
	const struct ss_reading *reading = data;

	return ss_signals_are_pending(reading->until);
}

char *ss_reading_advice(const struct ss_options *options, bool privileged,
			const struct ss_snapshot *snapshot, struct ss_session *session)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct ss_advice_options advice = {
		.privileged = privileged,
		.debuginfod = options->symbols.debuginfod,
		/* The files of a container are those of its own packages. */
		.packages = !options->symbols.sysroot &&
			    (!process->inner_pid || process->inner_pid == process->pid),
		.session = session,
	};

	return ss_advice_new(snapshot, &advice);
}

static char *advise(void *data, const struct ss_snapshot *snapshot,
		    struct ss_session *session)
{
	const struct ss_reading *reading = data;

	return ss_reading_advice(reading->options, reading->privileged, snapshot,
				 session);
}

/* Formats that need the capture, or files of its modules, are written where those are read. */
static struct ss_error *
write_confined(void *data, const struct ss_interpreted *interpreted, uint64_t *ret_value);

void ss_reading_configure(struct ss_reading *reading, struct ss_interpret_options *ret)
{
	const struct ss_options *options = reading->options;
	const struct ss_format *format = format_of(reading);

	reading->privileged = geteuid() == 0;
	reading->phases.current = SS_PHASE_COUNT;
	*ret = (struct ss_interpret_options){
		.size = sizeof(*ret),
		.max_frames = options->common.max_frames,
		/* A report decides whether it shows them. */
		.native = options->native || format->unsymbolized || format->native,
		.tasks = options->tasks > 0,
		.goroutines = options->goroutines > 0 &&
			      !(reading->run && ss_selection_run_is_active(reading->run)),
		.raw = options->symbols.raw,
		.no_waits = options->no_waits,
		.may_be_empty = reading->run &&
				ss_selection_run_may_be_empty(reading->run),
		.for_recording = format->unsymbolized,
		.symbolize_flags = options->symbols.flags,
		.waits = options->waits,
		.debug_dir = options->symbols.debug_dir,
		.sysroot = options->symbols.sysroot,
		.cache = options->cache,
		.timeout_ms = options->interpret_ms,
		.more_memory = ss_options_max_total(options),
		.stops = options->mode == SS_MODE_AUTO ? SS_INTERPRET_STOPS : 0,
		.data = reading,
		.write = format->confined ? write_confined : NULL,
		.advise = format == &ss_format_text && !options->symbols.raw ? advise :
									       NULL,
		.files = &reading->requests,
		.stop = reading->until ? is_interrupted : NULL,
		.slow = print_slow,
	};
}

/* Capturing -------------------------------------------------------------------- */

static void watch(void *data, pid_t pid, bool begin)
{
	const struct ss_reading *reading = data;

	if (begin)
		ss_watchdog_begin(pid, reading->options->timeout_ms);
	else
		ss_watchdog_end();
}

static void warn(void *data, const struct ss_error *error)
{
	const struct ss_reading *reading = data;

	if (reading->options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
}

/* Prints a refusal. */
static void captured(void *data, const struct ss_target *target,
		     const struct ss_error *refusal)
{
	struct ss_reading *reading = data;
	const struct ss_row_arguments *rows = &reading->options->common.rows;

	ss_phases_enter(&reading->phases, SS_PHASE_COUNT);
	if (refusal && !reading->refused)
		ss_failure_print(refusal);
	reading->refused = refusal;
	ss_row_source_deinit(&reading->rows);
	ss_row_source_init(&reading->rows, rows);
	ss_row_source_add(&reading->rows, rows, target);
}

static struct ss_error *nothing_selected(pid_t pid)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID,
			     "the selection matches no thread of process %d", pid),
		"stacksnap %d shows all threads", pid);
}

/* Whether the format shows threads of a snapshot, and their owners are known. */
static bool selects_late(const struct ss_reading *reading)
{
	return reading->owners && ss_selection_run_is_active(reading->run) &&
	       !format_of(reading)->confined && !reading->options->no_waits;
}

/* It may be a name that Python or Java gives to a thread: all threads are needed to know that.
   Otherwise those that are not selected are left alone. */
static bool needs_all(const void *data)
{
	const struct ss_selection_run *selection = data;

	return ss_selection_run_has_names(selection) &&
	       ss_selection_run_is_empty(selection);
}

struct ss_process_source_options ss_reading_source(struct ss_reading *reading,
						   struct ss_selection_run *selection,
						   struct ss_capture_options *capture)
{
	*capture = ss_options_capture(reading->options);
	if (selection && ss_selection_run_is_active(selection)) {
		capture->filter = ss_selection_run_filter;
		capture->filter_data = selection;
		capture->may_be_empty = ss_selection_run_may_be_empty(selection);
	}
	return (struct ss_process_source_options){
		.size = sizeof(struct ss_process_source_options),
		.capture = capture,
		.no_related = reading->options->no_waits,
		.owners = selects_late(reading),
		.needs_all = selects_late(reading) ? needs_all : NULL,
		.watch = watch,
		.warn = warn,
		.captured = captured,
		.data = reading,
	};
}

static struct ss_error *check_selection(const struct ss_reading *reading,
					const struct ss_selection_run *selection,
					struct ss_error *error)
{
	if (!ss_selection_run_is_empty(selection) ||
	    (selects_late(reading) && needs_all(selection)))
		return error;
	ss_error_free(error);
	return nothing_selected(selection->argument->pid);
}

struct ss_error *ss_reading_capture(struct ss_reading *reading,
				    struct ss_selection_run *selection, bool list,
				    struct ss_process_source **ret)
{
	struct ss_capture_options capture;
	struct ss_process_source_options options =
		ss_reading_source(reading, selection, &capture);
	_cleanup_(ss_process_source_cleanup) struct ss_process_source *source = NULL;

	options.no_list = !list;
	ss_phases_enter(&reading->phases, SS_PHASE_CAPTURE);
	struct ss_error *error = check_selection(
		reading, selection,
		ss_process_source_new(selection->argument->pid, &options, &source));
	ss_phases_enter(&reading->phases, SS_PHASE_COUNT);
	if (!error)
		*ret = take_ptr(source);
	return error;
}

struct ss_error *ss_reading_begin_series(struct ss_reading *reading,
					 struct ss_selection_run *selection,
					 struct ss_interpret_options *options,
					 struct ss_process_source **ret)
{
	_cleanup_(ss_process_source_cleanup) struct ss_process_source *source = NULL;
	struct ss_error *error = ss_reading_capture(reading, selection, false, &source);

	if (error)
		return ss_reading_list(reading, selection->argument->pid, error);
	ss_interpret_as_owner(ss_process_source_target(source), options);
	error = ss_process_source_begin_series(source, options);
	if (!error)
		*ret = take_ptr(source);
	return error;
}

/* Writing ----------------------------------------------------------------------- */

static struct ss_format_options format_options(const struct ss_reading *reading, bool raw,
					       const char *problem, const char *advice,
					       const struct ss_capture *capture)
{
	const struct ss_options *options = reading->options;

	return (struct ss_format_options){
		.size = sizeof(struct ss_format_options),
		.raw = raw,
		.no_group = options->no_group,
		.native = options->native,
		/* Threads that the user selected are shown, whatever they do. */
		.all = options->all ||
		       (reading->run && ss_selection_run_is_active(reading->run)),
		.verbose = options->common.verbose,
		.color = reading->color,
		.groups = { [SS_TASK_GOROUTINE] = options->goroutines,
			    [SS_TASK_ASYNCIO] = options->tasks },
		.max_stack = options->common.max_stack,
		.environment = options->environment,
		.strict = options->strict,
		.row_options = &reading->rows.options,
		.capture = capture,
		.max_size = reading->max_output / 4 * 3, /* room for the rest */
		.problem = problem,
		.advice = advice,
	};
}

struct ss_format_options ss_reading_format_options(const struct ss_reading *reading,
						   const struct ss_interpretation *result)
{
	return format_options(reading, result->sandbox->level != SS_SANDBOX_NAMES,
			      result->problem, result->advice, NULL);
}

static struct ss_error *
write_confined(void *data, const struct ss_interpreted *interpreted, uint64_t *ret_value)
{
	const struct ss_reading *reading = data;
	const struct ss_format *format = format_of(reading);
	const struct ss_snapshot *last = interpreted->snapshots[interpreted->count - 1];
	_cleanup_free_ char *wait_functions = NULL;
	struct ss_format_options options = format_options(
		reading, interpreted->level != SS_SANDBOX_NAMES, interpreted->problem,
		NULL, interpreted->captures[interpreted->count - 1]);
	const struct ss_snapshots snapshots = {
		.items = interpreted->snapshots,
		.count = interpreted->count,
		.period_ns = reading->period_ns,
	};
	FILE *out = NULL;
	struct ss_error *error =
		ss_wait_table_added(reading->options->waits, &wait_functions);

	options.wait_functions = wait_functions;
	if (!error)
		error = ss_stream_open(interpreted->output, &out);
	if (error)
		return error;
	error = snapshots.count > 1 || reading->period_ns ?
			format->write_snapshots(&snapshots, &options, out) :
			format->write_snapshot(last, &options, out);
	*ret_value = ss_reading_report(reading, interpreted->snapshots,
				       interpreted->count, interpreted->problem, NULL);
	return ss_stream_close(out, error);
}

struct ss_error *ss_reading_open(FILE **ret)
{
	int fd = ss_io_create_unnamed();
	int errnum = errno;
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!out) {
		close_cleanup(&fd);
		return ss_error_new_errno(errnum, "cannot create a file for the output");
	}
	*ret = out;
	return NULL;
}

struct ss_error *ss_reading_close(const struct ss_reading *reading, FILE *out,
				  struct ss_error *error)
{
	if (!error && (fflush(out) != 0 || ferror(out)))
		error = ss_error_new_errno(errno, "cannot write the result");
	if (!error && reading->max_output && (uint64_t)ftello(out) > reading->max_output)
		error = ss_error_new(SS_ERROR_SYSTEM,
				     "the result is larger than %" PRIu64 " KiB",
				     reading->max_output >> 10);
	if (!error)
		error = ss_escaped_copy(fileno(out), reading->color,
					ss_output_file(reading->output));
	(void)fclose(out);
	return error ? error : ss_output_flush(reading->output);
}

static struct ss_error *pass_on_messages(const struct ss_reading *reading,
					 const struct ss_interpretation *result)
{
	pass_on_finding(result->sandbox);
	return copy_messages(result->sandbox, &reading->options->common);
}

struct ss_error *ss_reading_interpret(const struct ss_reading *reading,
				      struct ss_source *source,
				      const struct ss_interpret_options *options,
				      struct ss_interpretation **ret)
{
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	struct ss_error *error = ss_interpret(source, options, &result);

	if (!error)
		error = pass_on_messages(reading, result);
	if (!error)
		*ret = take_ptr(result);
	return error;
}

static void add_times(struct ss_phases *phases, const uint64_t *spent_ns)
{
	phases->spent_ns[SS_PHASE_CAPTURE] += spent_ns[SS_STEP_CAPTURE];
	phases->spent_ns[SS_PHASE_UNWIND] += spent_ns[SS_STEP_UNWIND];
	phases->spent_ns[SS_PHASE_SYMBOLIZE] += spent_ns[SS_STEP_SYMBOLIZE];
	phases->spent_ns[SS_PHASE_DIAGNOSE] += spent_ns[SS_STEP_DIAGNOSE];
	phases->spent_ns[SS_PHASE_RENDER] += spent_ns[SS_STEP_FINISH];
}

bool ss_reading_report(const struct ss_reading *reading,
		       const struct ss_snapshot *const *snapshots, size_t count,
		       const char *problem, const struct ss_phases *phases)
{
	const struct ss_options *options = reading->options;
	const struct ss_format *format = format_of(reading);
	const struct ss_snapshot *last = snapshots[count - 1];
	pid_t pid = ss_snapshot_process(last)->pid;
	size_t missing = reading->run ? ss_selection_run_report(reading->run, last) : 0;
	size_t incomplete = 0;

	for (size_t i = 0; i < count; i++)
		incomplete += ss_missing_count(snapshots[i], options->strict) > 0;
	if (problem)
		ss_failure_warn("%d: %s", pid, problem);
	if (count > 1 && incomplete)
		ss_failure_warn("%d: %zu of %zu snapshots have incomplete stacks", pid,
				incomplete, count);
	else if (count == 1 && !format->explains)
		ss_incomplete_print(last, options->common.max_stack, options->strict);
	if (!options->symbols.raw && !format->unsymbolized)
		ss_incomplete_print_modules(last);
	if (options->common.verbose && phases)
		ss_phases_print(phases, last);
	return missing + incomplete > 0 || problem;
}

static struct ss_error *write_snapshot(struct ss_reading *reading,
				       const struct ss_interpretation *result,
				       const struct ss_snapshot *snapshot)
{
	const struct ss_format *format = format_of(reading);
	const struct ss_format_options options =
		ss_reading_format_options(reading, result);
	FILE *out = NULL;
	struct ss_error *error = ss_reading_open(&out);

	if (error)
		return error;
	if (reading->separate && format->separator)
		(void)fputs(format->separator, out);
	error = format->write_snapshot(snapshot, &options, out);
	return ss_reading_close(reading, out, error);
}

struct ss_error *ss_reading_copy(const struct ss_reading *reading,
				 const struct ss_interpretation *result)
{
	return copy_output(result->sandbox, format_of(reading), reading->color,
			   reading->output);
}

/* Leaves only the selected threads to be shown. */
static struct ss_error *select_threads(const struct ss_reading *reading,
				       struct ss_snapshot *snapshot)
{
	struct ss_selection_run run = *reading->run;

	run.seen = run.named = 0;
	if (!ss_snapshot_select(snapshot, ss_selection_run_filter, &run))
		return ss_error_no_memory();
	return ss_selection_run_is_empty(&run) ? nothing_selected(run.argument->pid) :
						 NULL;
}

/* Writes a snapshot, or what was written in place of it. */
static struct ss_error *show(struct ss_reading *reading,
			     const struct ss_interpretation *result,
			     struct ss_snapshot *snapshot, bool *ret)
{
	struct ss_error *error = NULL;

	add_times(&reading->phases, result->spent_ns);
	if (!snapshot) {
		*ret = result->sandbox->value != 0;
		return ss_reading_copy(reading, result);
	}
	if (selects_late(reading))
		error = select_threads(reading, snapshot);
	if (error)
		return error;
	ss_phases_enter(&reading->phases, SS_PHASE_RENDER);
	error = write_snapshot(reading, result, snapshot);
	ss_phases_enter(&reading->phases, SS_PHASE_COUNT);
	if (error)
		return error;
	*ret = ss_reading_report(reading, (const struct ss_snapshot *const *)&snapshot, 1,
				 result->problem, &reading->phases);
	return NULL;
}

struct ss_error *ss_reading_show(struct ss_reading *reading, struct ss_source *source,
				 const struct ss_interpret_options *options, bool *ret)
{
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	struct ss_error *error = ss_reading_interpret(reading, source, options, &result);

	return error ? error :
		       show(reading, result, result->count ? result->snapshots[0] : NULL,
			    ret);
}

struct ss_error *ss_reading_snapshot(struct ss_reading *reading,
				     struct ss_selection_run *selection, bool *ret)
{
	struct ss_capture_options capture;
	struct ss_pipeline pipeline = {};
	const struct ss_snapshot_options options = { .size = sizeof(options),
						     .pipeline = &pipeline };
	struct ss_snapshot *snapshot = NULL;

	ss_reading_configure(reading, &pipeline.interpret);
	pipeline.source = ss_reading_source(reading, selection, &capture);
	ss_phases_enter(&reading->phases, SS_PHASE_CAPTURE);
	struct ss_error *error = check_selection(
		reading, selection,
		ss_snapshot_take(selection->argument->pid, &options, &snapshot));
	if (!error)
		error = pass_on_messages(reading, pipeline.result);
	if (!error)
		error = show(reading, pipeline.result, snapshot, ret);
	ss_snapshot_free(snapshot);
	ss_interpretation_free(pipeline.result);
	return error;
}

struct ss_error *ss_reading_list(struct ss_reading *reading, pid_t pid,
				 struct ss_error *error)
{
	static const struct ss_selection all;
	const struct ss_target_argument argument = { .pid = pid };
	struct ss_selection_run run = { .selection = &all, .argument = &argument };
	bool missing;

	reading->format = NULL; /* a series may have another one */
	if (!ss_error_is_refusal(error) || !format_of(reading)->write_snapshot)
		return error;
	reading->refused = true; /* the caller prints it */
	ss_error_free(ss_reading_snapshot(reading, &run, &missing));
	return error;
}
