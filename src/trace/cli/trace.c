/*
 * stacksnap trace [OPTIONS] PID -p FUNCTION...: reports calls of functions as they happen.
 */
#include <argp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/search.h"
#include "base/vector.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/targets.h"
#include "report/print.h"
#include "process/spawn.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"
#include "trace/cli/format.h"
#include "trace/trace.h"

enum {
	READ_MS = 20,
	STACK_BYTES = 16 << 10,
	STACK_RATE = 5000,
	ALLOC_BYTES = 512 << 10,
	ALLOC_ROWS = 20,
	ROWS_MAX = 1000000,
};

struct trace {
	struct ss_target_options process;
	struct ss_trace_options options;
	SS_VECTOR(const char *) specs;
	const char *format_name; /* NULL: the default, or none */
	const struct ss_trace_format *format;
	const char *path;		    /* NULL: standard output */
	bool recording;			    /* path is that of a recording */
	struct ss_output *file;		    /* NULL: not open yet */
	struct ss_trace_recorder *recorder; /* with recording */
	struct ss_error *error;		    /* of the recorder */
	bool list;
	bool verbose;
	uint64_t duration_ns;
	struct ss_growth growth; /* with --alloc */
	uint64_t count;
	uint64_t seen; /* hits, for count */
	struct ss_trace_output output;
	struct ss_trace *trace;
	struct ss_target *target;
};

static void trace_deinit(struct trace *trace)
{
	ss_trace_recorder_free(trace->recorder);
	ss_output_close(trace->file);
	ss_error_free(trace->error);
	ss_trace_free(trace->trace);
	ss_target_close(trace->target);
	ss_target_options_deinit(&trace->process);
	ss_vector_free(&trace->specs);
	free(trace->output.durations);
	free(trace->output.slow);
	ss_idtable_deinit(&trace->output.caller_ids);
	ss_vector_free(&trace->output.callers);
	ss_vector_free(&trace->output.weights);
	ss_growth_deinit(&trace->growth);
}

static void add_spec(struct trace *trace, const char *spec)
{
	if (!*spec)
		ss_usage_fail("-p: expected the name of a function");
	ss_argument_add(ss_vector_push(&trace->specs), spec);
}

/* --alloc, or the options that need it. */
static void check_alloc(struct trace *trace)
{
	const struct ss_trace_options *o = &trace->options;

	if (!o->faults && (trace->growth.held_only || trace->growth.rows))
		ss_usage_fail("--leaks and --rows need --alloc");
	if (!o->faults)
		return;
	if (trace->recording && trace->growth.held_only)
		ss_usage_fail("--leaks cannot be recorded: what is held is known at "
			      "the end only");
	if (trace->specs.count || trace->list || o->scopes || o->args || o->every ||
	    o->max_rate)
		ss_usage_fail("--alloc cannot be used with functions and their "
			      "options");
	if (trace->growth.rows && (trace->recording || trace->format != &ss_growth_text))
		ss_usage_fail("--rows can be used only with --format=text: other "
			      "formats, and recordings, have all stacks");
	trace->growth.rows = trace->growth.rows ? trace->growth.rows : ALLOC_ROWS;
}

static void set_format(struct trace *trace)
{
	const char *name = trace->format_name ? trace->format_name : "text";

	trace->format = ss_trace_format_find(name, trace->options.faults > 0,
					     &trace->output.profile);
	if (!trace->format)
		ss_usage_fail_format(name, "text, json, folded, pprof");
	if (trace->format == &ss_trace_text && (trace->verbose || trace->options.args))
		trace->format = &ss_trace_text_verbose;
	if (trace->output.profile && trace->output.profile->binary &&
	    ss_output_is_stdout(trace->path) && isatty(STDOUT_FILENO) == 1)
		ss_usage_fail("--format=%s is binary and cannot be written to a "
			      "terminal: use -o FILE",
			      name);
}

static bool is_prime(uint64_t number)
{
	for (uint64_t i = 2; i * i <= number; i++) {
		if (number % i == 0)
			return false;
	}
	return true;
}

/* Samples stand for whole pages, and for a prime number of them: a program that touches, say, 64
   pages here and 64 there in turns would have each sample of 128 pages at the same place. */
static void take_alloc(void *input, const char *arg)
{
	struct trace *trace = input;
	const uint64_t bytes = arg ? ss_argument_number("alloc", arg, 1, UINT32_MAX) :
				     ALLOC_BYTES;

	trace->options.faults = SS_MAX(bytes / ss_trace_page_size(), UINT64_C(1));
	while (!is_prime(trace->options.faults))
		trace->options.faults--;
	trace->growth.sample_bytes = trace->options.faults * ss_trace_page_size();
}

static void check(void *input)
{
	struct trace *trace = input;

	ss_target_options_require(&trace->process);
	trace->recording = trace->path && !trace->format_name;
	set_format(trace);
	check_alloc(trace);
	if (trace->specs.count == 0 && !trace->options.faults)
		ss_usage_fail("expected -p FUNCTION: what to trace");
	if (trace->recording && ss_output_is_stdout(trace->path))
		ss_usage_fail("-o: a recording must be a file");
	if (trace->format->wants_stacks)
		trace->options.max_stack = STACK_BYTES;
	trace->output.whole_stacks = trace->options.max_stack > 0;
	trace->options.callers = trace->format == &ss_trace_text && !trace->recording &&
				 !trace->options.max_stack;
	/* Each stack takes some 0.1 ms to unwind. */
	if (trace->options.max_stack && !trace->options.max_rate &&
	    !trace->options.faults)
		trace->options.max_rate = STACK_RATE;
	trace->options.specs = trace->specs.items;
	trace->options.spec_count = trace->specs.count;
}

static void take_probe(void *input, const char *arg)
{
	add_spec(input, arg);
}

static void take_args(void *args, const char *arg)
{
	*(unsigned *)args =
		arg ? (unsigned)ss_argument_number("args", arg, 1, SS_TRACE_ARGS) :
		      SS_TRACE_ARGS;
}

static void take_stack(void *input, const char *arg)
{
	struct trace *trace = input;

	(void)arg;
	trace->options.max_stack = STACK_BYTES;
}

static void take_output(void *path, const char *arg)
{
	ss_usage_check(ss_output_check(arg));
	*(const char **)path = arg;
}

static bool take_argument(void *input, char **argv, bool quoted)
{
	struct trace *trace = input;

	(void)quoted;
	if (ss_target_options_count(&trace->process) == 0)
		ss_target_options_add(&trace->process, *argv);
	else
		add_spec(trace, *argv);
	return false;
}

static const struct ss_option table[] = {
	{ "probe", 'p', "FUNCTION",
	  "Report calls of FUNCTION; also MODULE:FUNCTION, MODULE+0xOFFSET, FILE:LINE, "
	  "PROVIDER:PROBE (USDT), with wildcards; may be repeated",
	  0, .take = take_probe },
	{ "list", 0, NULL, "List what matches, without setting probes", 0,
	  SS_SETS_FLAG(struct trace, list) },
	{ "scope", 0, NULL,
	  "Also report returns: durations, nesting, and calls that are still open at the "
	  "end",
	  0, SS_SETS_FLAG(struct trace, options.scopes) },
	{ "args", 0, "N",
	  "Show the first N integer arguments that are passed in registers, at most 6 "
	  "(default: 6); implies -v",
	  0, OPTION_ARG_OPTIONAL, .take = take_args,
	  .offset = offsetof(struct trace, options.args) },
	{ "stack", 0, NULL,
	  "Show stacks, not only callers (sets --max-rate to 5000 unless it is given)", 0,
	  .take = take_stack },
	{ "verbose", 'v', NULL, "As text: show each hit, not only the summary", 0,
	  SS_SETS_FLAG(struct trace, verbose) },
	{ "every", 0, "N",
	  "Report only every N-th hit of a thread on each CPU; with --scope, every N-th "
	  "entry (default: 1)",
	  0, SS_SETS_NUMBER(struct trace, options.every, 1, UINT32_MAX) },
	{ "max-rate", 0, "N",
	  "Report at most N hits a second; only count the others (default: no limit)", 0,
	  SS_SETS_NUMBER(struct trace, options.max_rate, 1, UINT32_MAX) },
	{ "count", 0, "N", "End after N hits (default: no limit)", 0,
	  SS_SETS_NUMBER(struct trace, count, 1, UINT32_MAX) },
	{ "duration", 'd', "TIME",
	  "End after TIME, for instance 10s or 500ms (default: until Ctrl-C, or the end "
	  "of "
	  "the process)",
	  0, SS_SETS_DURATION(struct trace, duration_ns) },
	{ "output", 'o', "FILE",
	  "Write to a new FILE, without -f as a recording for stacksnap report; %p is "
	  "the pid, %t the time, %% a percent sign",
	  0, .take = take_output, .offset = offsetof(struct trace, path) },
	{ "alloc", 0, "BYTES",
	  "Instead of calls, show which stacks touch new memory, with one sample per "
	  "BYTES (default: 524288)",
	  0, OPTION_ARG_OPTIONAL, .take = take_alloc },
	{ "leaks", 0, NULL,
	  "With --alloc: only memory that the process still holds at the end", 0,
	  SS_SETS_FLAG(struct trace, growth.held_only) },
	{ "rows", 0, "N", "With --alloc, as text: show N stacks (default: 20)", 0,
	  SS_SETS_NUMBER(struct trace, growth.rows, 1, ROWS_MAX) },
	{ "debug-dir", 0, "DIRECTORY",
	  "Directory of separate debug files (default: /usr/lib/debug)", 0,
	  SS_SETS_TEXT(struct trace, options.debug_dir) },
	{},
};

static const struct ss_option_child children[] = {
	{ &ss_format_name_group, offsetof(struct trace, format_name) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "PID|NAME -p FUNCTION...\nPID|NAME --alloc",
	.doc = "Report calls of functions of a running process as they happen, by the "
	       "kernel's uprobes. The process is not stopped. Needs root; --alloc needs "
	       "CAP_PERFMON.\v"
	       "Formats: text, json; folded and pprof, which imply --stack.\n\n"
	       "Exit status: 0 every hit was reported, 1 some were lost, or a function "
	       "was "
	       "not found, 2 nothing could be traced, 64 wrong usage.",
	.argument = take_argument,
	.end = check,
};

static void take_event(void *data, const struct ss_trace_event *event)
{
	struct trace *trace = data;
	bool begins = event->kind == SS_TRACE_HIT || event->kind == SS_TRACE_ENTER;

	if (begins && trace->count && trace->seen >= trace->count)
		return;
	trace->seen += begins;
	if (event->kind == SS_TRACE_EXIT)
		ss_durations_add(&trace->output.durations[event->probe],
				 event->duration_ns);
	if (!trace->recorder)
		trace->format->event(&trace->output, event);
	else if (!trace->error)
		trace->error = ss_trace_recorder_add(trace->recorder, event);
}

static bool is_over(const struct trace *trace, uint64_t end_ns)
{
	return (end_ns && ss_now_ns() >= end_ns) ||
	       (trace->count && trace->seen >= trace->count) ||
	       ss_trace_summary(trace->trace)->ended || ferror(trace->output.out) ||
	       trace->error;
}

/* After the probes were set: nothing is left of a file without them. */
static struct ss_error *open_file(struct trace *trace)
{
	int fd = -1;
	struct ss_error *error =
		ss_output_open(trace->path, ss_target_pid(trace->target), &trace->file);

	if (!error)
		trace->output.out = ss_output_file(trace->file);
	if (!error && trace->recording)
		error = ss_output_duplicate(trace->file, &fd);
	if (!error && trace->recording)
		error = ss_trace_recorder_new(trace->trace, trace->target, fd,
					      &trace->recorder);
	/* What is recorded until it is killed can be read. */
	return error ? error : ss_output_publish(trace->file);
}

static struct ss_error *complete_recording(const struct trace *trace, uint64_t end_ns)
{
	enum ss_recording_end end =
		ss_trace_summary(trace->trace)->ended ? SS_RECORDING_TARGET_END :
		end_ns && ss_now_ns() >= end_ns	      ? SS_RECORDING_DURATION :
							SS_RECORDING_STOPPED;

	return ss_trace_recorder_finish(trace->recorder, end);
}

static struct ss_error *follow(struct trace *trace)
{
	_cleanup_close_ int fd = ss_signals_watch();
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct ss_error *error = ss_trace_start(trace->trace);
	uint64_t end_ns = trace->duration_ns ? ss_now_ns() + trace->duration_ns : 0;

	if (!error && !ss_output_is_stdout(trace->path))
		error = open_file(trace);
	if (error)
		return error;
	trace->output.begin_ns = ss_now_ns();
	if (!trace->recording && trace->format->begin)
		trace->format->begin(&trace->output);
	(void)fflush(trace->output.out); /* checked at the end */
	if (trace->format == &ss_trace_text && !trace->recording && !end_ns &&
	    isatty(STDERR_FILENO) == 1)
		(void)fputs(
			"stacksnap: tracing; Ctrl-C ends it and shows the summary, -v "
			"shows each hit\n",
			stderr);
	while (!error && !is_over(trace, end_ns) && poll(&pollfd, 1, READ_MS) <= 0) {
		error = ss_trace_read(trace->trace, take_event, trace);
		(void)fflush(trace->output.out); /* likewise */
	}
	if (!error)
		error = ss_trace_end(trace->trace, take_event, trace);
	if (!error)
		error = take_ptr(trace->error);
	if (!error && trace->recorder)
		error = complete_recording(trace, end_ns);
	return error;
}

static bool has_probe(const struct trace *trace, size_t spec)
{
	for (size_t i = 0; i < ss_trace_probe_count(trace->trace); i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(trace->trace, i);
		if (probe->spec == spec && probe->set)
			return true;
	}
	return false;
}

/* Says what should be known about the specs. Returns whether each of them selects a probe. */
static bool report_specs(const struct trace *trace)
{
	bool all = true;

	for (size_t i = 0; i < trace->specs.count; i++) {
		bool noted = false;
		for (size_t k = 0; k < ss_trace_note_count(trace->trace); k++) {
			const struct ss_trace_note *note = ss_trace_note(trace->trace, k);
			if (note->spec != i)
				continue;
			ss_failure_warn("%s: %s: %s", trace->specs.items[i], note->module,
					note->text);
			noted = true;
		}
		bool found = has_probe(trace, i);
		all &= found;
		if (!found && !noted)
			ss_failure_warn(
				"%s: no such function in the modules of the process",
				trace->specs.items[i]);
		if (!found && !noted)
			ss_failure_hint(
				"wildcards search, as in --list -p '*%s*'; stripped "
				"programs need their debug files",
				trace->specs.items[i]);
	}
	for (size_t i = 0; trace->options.scopes && !trace->list &&
			   i < ss_trace_probe_count(trace->trace);
	     i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(trace->trace, i);
		if (probe->set && !probe->returns)
			ss_failure_warn("%s: its returns are not known (no size, or code "
					"that cannot be decoded): only hits are reported",
					probe->name);
	}
	return all;
}

static bool has_any(const struct trace *trace)
{
	return ss_any(trace->specs.count, i, has_probe(trace, i));
}

static struct ss_error *open_trace(struct trace *trace)
{
	struct ss_error *error = trace->list || trace->options.faults ? NULL :
									ss_trace_check();

	if (!error)
		error = ss_target_open(ss_target_options_pid(&trace->process),
				       &trace->target);
	if (!error)
		error = ss_trace_new(trace->target, &trace->options, &trace->trace);
	if (error)
		return error;
	trace->growth.pid = ss_target_pid(trace->target);
	const size_t probes = ss_trace_probe_count(trace->trace) + 1;
	trace->output.out = stdout;
	trace->output.trace = trace->trace;
	trace->output.growth = &trace->growth;
	trace->output.durations = calloc(probes, sizeof(*trace->output.durations));
	trace->output.slow = calloc(probes, sizeof(*trace->output.slow));
	return trace->output.durations && trace->output.slow ? NULL :
							       ss_error_no_memory();
}

static int status_of(const struct trace *trace, bool all)
{
	const struct ss_trace_summary *summary = ss_trace_summary(trace->trace);

	return all && !summary->lost ? SS_STATUS_WHOLE : SS_STATUS_PARTIAL;
}

static void warn_lost(const struct trace *trace)
{
	uint64_t lost = ss_trace_summary(trace->trace)->lost;

	if (lost)
		ss_failure_warn("%" PRIu64 " hits were lost: they came faster than they "
				"were read",
				lost);
}

static void warn_of_huge_pages(const struct ss_trace *trace)
{
	const char *setting = ss_trace_huge_pages_file(trace);

	if (!setting)
		return;
	ss_failure_warn("transparent huge pages are always used (%s): each counts as one "
			"page, so sizes may be far too low",
			setting);
	ss_failure_hint("echo madvise | sudo tee %s", setting);
}

static void report_recording(const struct trace *trace)
{
	const struct ss_trace_summary *summary = ss_trace_summary(trace->trace);

	(void)fprintf(stderr, "stacksnap: %s: %s recorded, %s lost, %s\n",
		      ss_output_path(trace->file),
		      ss_quantity_things(trace->seen, "hit").text,
		      ss_quantity_count(summary->lost).text,
		      ss_quantity_size(ss_trace_recorder_size(trace->recorder)).text);
}

/* Whether nobody reads what was not written yet. */
static bool is_broken_pipe(void)
{
	struct pollfd pollfd = { .fd = STDOUT_FILENO };

	return (fflush(stdout) != 0 || ferror(stdout)) && poll(&pollfd, 1, 0) > 0 &&
	       (pollfd.revents & POLLERR);
}

static struct ss_error *end_output(struct trace *trace)
{
	trace->output.elapsed_ns = ss_now_ns() - trace->output.begin_ns;
	trace->format->end(&trace->output);
	return trace->file ? ss_output_flush(trace->file) : NULL;
}

/* Leaves SIGPIPE ignored. broken: result: standard output is a pipe without a reader. */
static int run_trace(int argc, char **argv, bool *broken)
{
	_cleanup_(trace_deinit) struct trace trace = {
		.process.single = true,
		.options.size = sizeof(trace.options),
	};

	if (!ss_usage_parse(&ss_command_trace, argc, argv, 0, &trace) ||
	    !ss_target_options_resolve(&trace.process))
		return SS_STATUS_NOTHING;
	/* The definition of the probes is removed first. */
	(void)signal(SIGPIPE, SIG_IGN); /* cannot fail: a valid signal */
	_cleanup_error_ struct ss_error *error = open_trace(&trace);
	bool all = !error && report_specs(&trace);
	bool any = !error && (trace.options.faults || has_any(&trace));
	if (any && !trace.list)
		error = follow(&trace);
	if (error)
		return ss_failure_status(error, 0);
	if (trace.list)
		ss_trace_write_probes(trace.trace, stdout);
	else if (any && trace.recorder)
		report_recording(&trace);
	else if (any)
		error = end_output(&trace);
	if (error)
		return ss_failure_status(error, 0);
	if (trace.output.failed) {
		ss_failure_warn("not enough memory for the result");
		return SS_STATUS_NOTHING;
	}
	if (any && !trace.list && !trace.recorder)
		warn_lost(&trace);
	if (any && trace.options.faults)
		warn_of_huge_pages(trace.trace);
	*broken = is_broken_pipe();
	return any ? status_of(&trace, all) : SS_STATUS_NOTHING;
}

static int run(int argc, char **argv)
{
	bool broken = false;

	struct sigaction before;

	(void)sigaction(SIGPIPE, NULL, &before); /* cannot fail: a valid signal */
	int status = run_trace(argc, argv, &broken);
	(void)sigaction(SIGPIPE, &before, NULL); /* likewise */
	if (broken)
		(void)raise(SIGPIPE); /* likewise */
	return status;
}

const struct ss_command ss_command_trace = {
	.name = "trace",
	.formats = "text json folded pprof",
	.summary = "report calls of functions of a process as they happen",
	.options = &group,
	.run = run,
};
