#include "cli/run_report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/vector.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/output.h"
#include "crash/supervisor.h"
#include "interpret/interpret.h"

struct report {
	pid_t pid;
	bool traced;
	pid_t writer; /* 0: it is not being written yet */
	struct ss_target *target;
	struct ss_process_source *source;
};

static void report_deinit(struct report *report)
{
	ss_process_source_free(report->source);
	ss_target_close(report->target);
}

struct ss_run_reports {
	const struct ss_options *options;
	struct ss_selection_run selection;
	struct ss_output *output; /* of all reports, if there is one; or NULL */
	bool separate;		  /* something was written to it */
	SS_VECTOR(struct report) queue;
};

static const struct ss_target_argument any_thread;

struct ss_error *ss_run_reports_new(const struct ss_options *options,
				    struct ss_run_reports **ret)
{
	struct ss_run_reports *reports = calloc(1, sizeof(*reports));

	if (!reports)
		return ss_error_no_memory();
	reports->options = options;
	reports->selection = (struct ss_selection_run){ .selection = &options->selection,
							.argument = &any_thread };
	*ret = reports;
	return NULL;
}

void ss_run_reports_free(struct ss_run_reports *reports)
{
	if (!reports)
		return;
	for (size_t i = 0; i < reports->queue.count; i++)
		report_deinit(&reports->queue.items[i]);
	ss_vector_free(&reports->queue);
	ss_output_close(reports->output);
	free(reports);
}

/* Capture -------------------------------------------------------------------- */

static struct ss_error *capture(struct ss_run_reports *reports,
				struct ss_supervisor *supervisor, struct report *report)
{
	struct ss_reading reading = { .options = reports->options };
	struct ss_capture_options options = ss_options_capture(reports->options);
	struct ss_process_source_options source = ss_reading_source(&reading, &options);
	struct ss_error *error =
		report->traced ?
			ss_supervisor_hold(supervisor, report->pid, &report->target) :
			ss_target_open(report->pid, &report->target);

	if (error)
		return error;
	if (ss_selection_run_is_active(&reports->selection)) {
		options.filter = ss_selection_run_filter;
		options.filter_data = &reports->selection;
	}
	source.target = report->target;
	source.held = report->traced;
	source.watch = NULL;
	source.warn = NULL;
	return ss_process_source_new(report->pid, &source, &report->source);
}

struct ss_error *ss_run_reports_add(struct ss_run_reports *reports,
				    struct ss_supervisor *supervisor, pid_t pid,
				    bool traced)
{
	struct report *report = ss_vector_push(&reports->queue);
	struct ss_error *error = NULL;

	if (report) {
		*report = (struct report){ .pid = pid, .traced = traced };
		error = capture(reports, supervisor, report);
		if (!error)
			return NULL;
		report_deinit(report);
		reports->queue.count--;
	}
	ss_supervisor_release(supervisor, pid);
	return error ? error : ss_error_no_memory();
}

bool ss_run_reports_has(const struct ss_run_reports *reports, pid_t pid)
{
	for (size_t i = 0; i < reports->queue.count; i++) {
		if (reports->queue.items[i].pid == pid)
			return true;
	}
	return false;
}

/* Writing, in a child -------------------------------------------------------- */

static bool write_report(struct ss_run_reports *reports, struct report *report)
{
	const struct ss_options *options = reports->options;
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = options,
		.run = &reports->selection,
		.output = reports->output,
		.separate = reports->separate,
		.color = !options->common.output && isatty(STDERR_FILENO) == 1 &&
			 ss_options_want_color(&options->common),
	};
	struct ss_interpret_options interpret;
	bool missing = false;

	ss_reading_configure(&reading, NULL, &interpret);
	ss_interpret_as_owner(report->target, &interpret);
	interpret.cache = NULL;
	interpret.stops = 0;
	ss_row_source_init(&reading.rows, &options->common.rows);
	_cleanup_error_ struct ss_error *error = ss_reading_show(
		&reading, ss_process_source_last(report->source), &interpret, &missing);

	if (error)
		ss_failure_print(error);
	return error == NULL;
}

/* The output of the first report, or of each one. */
static struct ss_error *open_output(struct ss_run_reports *reports, pid_t pid)
{
	const char *pattern = reports->options->common.output;

	if (ss_output_is_per_target(pattern)) {
		ss_output_close(take_ptr(reports->output));
		reports->separate = false;
	}
	if (reports->output)
		return NULL;
	return pattern ? ss_output_open(pattern, pid, &reports->output) :
			 ss_output_open_stderr(&reports->output);
}

/* In the child. */
static int write_first(void *data, int channel)
{
	struct ss_run_reports *reports = data;

	(void)channel; /* none */
	return write_report(reports, &reports->queue.items[0]) ? EXIT_SUCCESS :
								 EXIT_FAILURE;
}

/* The supervisor sees the end of the child. The signals of the command are blocked here. */
static void start(struct ss_run_reports *reports)
{
	const struct ss_child_options options = { .death_signal = SIGKILL };
	struct report *report = &reports->queue.items[0];
	struct ss_child child = SS_NO_CHILD;
	_cleanup_error_ struct ss_error *error = open_output(reports, report->pid);

	if (!error)
		error = ss_child_start(&options, write_first, reports, &child);
	if (error)
		ss_failure_print(error);
	reports->separate |= !error;
	report->writer = error ? -1 : child.pid;
}

static void remove_first(struct ss_run_reports *reports, struct ss_supervisor *supervisor)
{
	struct report first = reports->queue.items[0];

	reports->queue.count--;
	memmove(reports->queue.items, reports->queue.items + 1,
		reports->queue.count * sizeof(first));
	if (first.traced)
		ss_supervisor_release(supervisor, first.pid);
	report_deinit(&first);
}

void ss_run_reports_start(struct ss_run_reports *reports,
			  struct ss_supervisor *supervisor)
{
	while (reports->queue.count > 0 && reports->queue.items[0].writer == 0) {
		start(reports);
		if (reports->queue.items[0].writer > 0)
			return;
		remove_first(reports, supervisor);
	}
}

void ss_run_reports_end(struct ss_run_reports *reports, struct ss_supervisor *supervisor,
			pid_t child)
{
	if (reports->queue.count > 0 && reports->queue.items[0].writer == child)
		remove_first(reports, supervisor);
}

bool ss_run_reports_are_pending(const struct ss_run_reports *reports)
{
	return reports->queue.count > 0;
}

void ss_run_reports_drop(struct ss_run_reports *reports, struct ss_supervisor *supervisor)
{
	/* The one that is being written is abandoned: its end is not waited for. */
	while (reports->queue.count > 0)
		remove_first(reports, supervisor);
}
