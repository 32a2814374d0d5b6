#include "cli/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text_stream.h"
#include "report/names.h"
#include "report/print.h"
#include "stacksnap/record.h"

#define HINT "  hint: "

/* Ignores write errors: there is no other place to report them. */
static void print_line(const char *prefix, const char *text)
{
	(void)fputs(prefix, stderr);
	ss_escape_write(text, NULL, stderr);
	(void)fputc('\n', stderr);
}

void ss_failure_print(const struct ss_error *error)
{
	if (!error)
		return;
	print_line("stacksnap: ", ss_error_message(error));
	if (ss_error_remedy(error))
		print_line(HINT, ss_error_remedy(error));
}

int ss_failure_status(const struct ss_error *error, int status)
{
	ss_failure_print(error);
	return error ? SS_STATUS_NOTHING : status;
}

static void print_formatted(const char *prefix, const char *format, va_list ap)
{
	_cleanup_free_ char *text = NULL;

	if (vasprintf(&text, format, ap) < 0)
		text = NULL; /* undefined after a failure */
	print_line(prefix, text ? text : "out of memory");
}

void ss_failure_warn(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print_formatted("stacksnap: ", format, ap);
	va_end(ap);
}

void ss_failure_list(const char *text)
{
	print_line("", text);
}

void ss_failure_hint(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print_formatted(HINT, format, ap);
	va_end(ap);
}

void ss_incomplete_print(const struct ss_snapshot *snapshot, size_t max_stack,
			 bool strict)
{
	struct ss_text_stream text;
	char *rest = NULL;

	if (!ss_text_stream_open(&text))
		return;
	ss_missing_write(snapshot, max_stack, strict, "", text.out);
	_cleanup_free_ char *lines = ss_text_stream_close(&text);
	for (char *line = lines ? strtok_r(lines, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		ss_failure_warn("%d: %s", ss_snapshot_process(snapshot)->pid, line);
}

/* Sets for each module whether a frame is in it, and whether one of these has no name. */
struct module_use {
	bool used;
	bool nameless;
};

static void mark_modules(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 struct module_use *ret)
{
	size_t count = thread->frame_count;

	for (size_t i = 0; i < count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->module_index < 0)
			continue;
		ret[frame->module_index].used = true;
		ret[frame->module_index].nameless |= !frame->symbol;
	}
}

/* Of a core file, also where another file gave the names: the one that was named on the
   command line is not used then. */
void ss_incomplete_print_modules(const struct ss_snapshot *snapshot)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t count = ss_snapshot_module_count(snapshot);
	_cleanup_free_ struct module_use *uses = calloc(count + 1, sizeof(*uses));

	if (!uses)
		return;
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		mark_modules(snapshot, ss_snapshot_task(snapshot, SS_TASK_THREAD, i),
			     uses);
	for (size_t i = 0; i < count; i++) {
		const struct ss_module *module = ss_snapshot_module(snapshot, i);
		if (module->problem &&
		    (uses[i].nameless || (uses[i].used && process->mode == SS_MODE_CORE)))
			ss_failure_warn(
				"%d: %s: %s%s", process->pid, module->path,
				module->problem,
				uses[i].nameless ? "; its functions have no names" : "");
	}
}

static const char *const names[] = {
	[SS_PHASE_OPEN] = "open",	  [SS_PHASE_CAPTURE] = "capture",
	[SS_PHASE_UNWIND] = "unwind",	  [SS_PHASE_SYMBOLIZE] = "symbolize",
	[SS_PHASE_DIAGNOSE] = "diagnose", [SS_PHASE_RENDER] = "render",
};

void ss_phases_enter(struct ss_phases *phases, enum ss_phase phase)
{
	uint64_t now = ss_now_ns();

	if (phases->current < SS_PHASE_COUNT)
		phases->spent_ns[phases->current] += now - phases->begun_ns;
	phases->current = phase;
	phases->begun_ns = now;
}

static void write_times(const struct ss_phases *phases, FILE *out)
{
	for (size_t i = 0; i < SS_PHASE_COUNT; i++)
		(void)fprintf(out, "%s%s %s", i ? ", " : "", names[i],
			      ss_quantity_time(phases->spent_ns[i]).text);
}

static void write_copied(const struct ss_process *process, size_t threads, FILE *out)
{
	(void)fprintf(out, "copied %s of the stacks of %zu thread%s, %u stopped",
		      ss_quantity_size(process->copied_bytes).text, threads,
		      threads == 1 ? "" : "s", process->threads_stopped);
}

static void print_modules(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_module_count(snapshot); i++) {
		const struct ss_module *module = ss_snapshot_module(snapshot, i);
		if (module->problem)
			ss_failure_warn("%s: %s", module->path, module->problem);
	}
}

void ss_phases_print(const struct ss_phases *phases, const struct ss_snapshot *snapshot)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	struct ss_text_stream text;

	if (!ss_text_stream_open(&text))
		return;
	write_times(phases, text.out);
	(void)fputs("; ", text.out);
	write_copied(process, ss_snapshot_task_count(snapshot, SS_TASK_THREAD), text.out);
	_cleanup_free_ char *line = ss_text_stream_close(&text);
	if (line)
		ss_failure_warn("%d: %s", process->pid, line);
	print_modules(snapshot);
}

static const double second = 1e9;

static void write_counts(const struct ss_recorder_summary *s, FILE *out)
{
	const struct {
		uint64_t count;
		const char *thing;
	} counts[] = { { s->samples, "sample" },
		       { s->threads, "thread" },
		       { s->stacks, "stack" } };

	(void)fprintf(out, "%.1f s, ", (double)s->duration_ns / second);
	for (size_t i = 0; i < SS_ARRAY_SIZE(counts); i++)
		(void)fprintf(out, "%s, ",
			      ss_quantity_things(counts[i].count, counts[i].thing).text);
	(void)fputs_unlocked(ss_quantity_size(s->size).text, out);
}

static void clear_line(void)
{
	if (isatty(STDERR_FILENO) == 1)
		(void)!write(STDERR_FILENO, "\r\x1b[K", 4);
}

static void warn_undropped(struct ss_record_report *report,
			   const struct ss_recorder_summary *summary)
{
	if (!summary->undropped || report->undropped)
		return;
	report->undropped = true;
	clear_line();
	ss_failure_warn("samples older than --last cannot be dropped, so the file grows: "
			"%s",
			strerror(summary->undropped));
}

void ss_record_report_progress(void *report, const struct ss_recorder_summary *summary)
{
	struct ss_text_stream text;

	warn_undropped(report, summary);
	if (isatty(STDERR_FILENO) != 1 || !ss_text_stream_open(&text))
		return;
	(void)fputs("\rrecording: ", text.out);
	write_counts(summary, text.out);
	(void)fprintf(text.out, ", %s missed\x1b[K",
		      ss_quantity_things(summary->missed, "tick").text);
	_cleanup_free_ char *line = ss_text_stream_close(&text);
	if (line)
		(void)!write(STDERR_FILENO, line, text.size); /* best effort */
}

/* How long the target was stopped. */
static void write_stops(const struct ss_recorder_summary *s, FILE *out)
{
	if (s->thread_stops == 0) {
		(void)fputs("no thread was stopped", out);
		return;
	}
	(void)fprintf(out,
		      "threads were stopped %s, for %s in total, %s each on average, %s "
		      "at most",
		      ss_quantity_things(s->thread_stops, "time").text,
		      ss_quantity_time(s->stopped_ns).text,
		      ss_quantity_time(s->stopped_ns / s->thread_stops).text,
		      ss_quantity_time(s->stopped_max_ns).text);
}

/* The recording says so, too, in the stacks of these samples. */
static void write_not_stopped(const struct ss_recorder_summary *s, FILE *out)
{
	(void)fprintf(out,
		      "%s of running threads have no stack: a thread is stopped for at "
		      "most 1 %% of its time, for at most 5 ms at once, and not if it "
		      "moves data in system calls",
		      ss_quantity_things(s->not_stopped, "sample").text);
}

static const char *hint(const struct ss_recorder_summary *s)
{
	switch (s->perf_errno) {
	case EMFILE:
		return "with a larger limit of open files (ulimit -Hn)";
	case ENOMEM:
		return "with more memory";
	case ENOSYS:
		return "with a kernel that has perf events (Linux 2.6.31 or later, "
		       "CONFIG_PERF_EVENTS)";
	default:
		return "with CAP_PERFMON, which root has outside of containers, or "
		       "with kernel.perf_event_paranoid=0";
	}
}

static const char *copy_hint(int errnum)
{
	switch (errnum) {
	case EPERM:
	case EACCES:
		return "CAP_BPF and CAP_PERFMON, which root has outside of "
		       "containers";
	case EMFILE:
		return "a larger limit of open files (ulimit -Hn)";
	case ENOMEM:
		return "512 KiB of memory for each CPU";
	default:
		return "Linux 5.11 or later";
	}
}

/* Says why functions are missing, or threads were stopped for them. */
static void write_copies(const struct ss_recorder_summary *s, const char *instead,
			 FILE *out)
{
	if (s->copy_errno)
		(void)fprintf(out, "; bpf(2) is not available (%s), so %s; it needs %s",
			      strerror(s->copy_errno), instead, copy_hint(s->copy_errno));
}

static void write_way_on_cpu(const struct ss_recorder_summary *s, FILE *out)
{
	if (s->sampled_cpus) {
		(void)fputs("the CPUs were sampled (perf events); no thread was stopped",
			    out);
		write_copies(s, "samples have no Python or JavaScript functions", out);
	} else {
		(void)fprintf(
			out,
			"perf events are not available (%s), so running threads were "
			"stopped, and short bursts of work are missing; they are seen %s",
			strerror(s->perf_errno), hint(s));
	}
}

static void write_way(const struct ss_recorder_summary *s, FILE *out)
{
	if (s->sampled_cpus) {
		(void)fputs("the kernel sampled running threads and reported loads of "
			    "modules (perf events)",
			    out);
		write_copies(s, "threads were stopped to read their functions", out);
	} else {
		(void)fprintf(out,
			      "perf events are not available (%s), so running threads "
			      "were stopped, and modules polled; the kernel samples and "
			      "reports them %s",
			      strerror(s->perf_errno), hint(s));
	}
}

static void write_ticks(const struct ss_recorder_summary *s, FILE *out)
{
	(void)fprintf(out, "%s, %s missed", ss_quantity_things(s->ticks, "tick").text,
		      ss_quantity_count(s->missed).text);
}

/* Ticks that were lost because the unwinder failed. */
static void write_losses(const struct ss_recorder_summary *s, FILE *out)
{
	(void)fprintf(out, "%s; %s lost", s->loss,
		      ss_quantity_things(s->lost, "tick").text);
}

static const char *end_text(enum ss_recording_end end)
{
	switch (end) {
	case SS_RECORDING_TARGET_END:
		return "the process has ended";
	case SS_RECORDING_DURATION:
		return "the duration has elapsed";
	case SS_RECORDING_STOPPED:
		return "stopped";
	default:
		return "aborted";
	}
}

static void print(void (*write_line)(const struct ss_recorder_summary *, FILE *),
		  const struct ss_recorder_summary *summary, const char *before)
{
	struct ss_text_stream text;

	if (!ss_text_stream_open(&text))
		return;
	write_line(summary, text.out);
	_cleanup_free_ char *line = ss_text_stream_close(&text);
	if (line)
		ss_failure_warn("%s%s", before, line);
}

void ss_record_report_end(const struct ss_recorder_summary *summary, const char *path,
			  struct ss_record_report *report)
{
	clear_line();
	warn_undropped(report, summary);
	ss_failure_warn("%s, %s", end_text(summary->end),
			path ? path : "standard output");
	print(write_counts, summary, "");
	print(write_ticks, summary, "");
	print(report->on_cpu ? write_way_on_cpu : write_way, summary, "");
	if (!report->on_cpu || !summary->sampled_cpus)
		print(write_stops, summary, "");
	if (summary->not_stopped)
		print(write_not_stopped, summary, "");
	if (summary->loss)
		print(write_losses, summary, "");
	if (summary->left_out)
		ss_failure_warn("some children were not recorded: too many open files; "
				"raise the limit (ulimit -Hn)");
}
