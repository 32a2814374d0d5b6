#include "cli/record_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/failure.h"
#include "report/quantity.h"
#include "stacksnap/record.h"

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
	char *text = NULL;
	size_t size = 0;

	warn_undropped(report, summary);
	if (isatty(STDERR_FILENO) != 1)
		return;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return;
	(void)fputs("\rrecording: ", out);
	write_counts(summary, out);
	(void)fprintf(out, ", %s missed\x1b[K",
		      ss_quantity_things(summary->missed, "tick").text);
	if (fclose(out) == 0)
		(void)!write(STDERR_FILENO, text, size); /* best effort */
	free(text);
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
		      "the recording thinned itself: %s of running threads have no "
		      "stack, since a thread is stopped for at most 1 %% of its time, "
		      "and 5 ms at once",
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
		return "with a kernel that has perf events";
	default:
		return "as root, with CAP_PERFMON or with kernel.perf_event_paranoid=0";
	}
}

static const char *copy_hint(int errnum)
{
	switch (errnum) {
	case EPERM:
	case EACCES:
		return "root, or CAP_BPF and CAP_PERFMON";
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
		(void)fprintf(out,
			      "; programs in the kernel are not available (bpf: %s), so "
			      "%s: they need %s",
			      strerror(s->copy_errno), instead, copy_hint(s->copy_errno));
}

static void write_way_on_cpu(const struct ss_recorder_summary *s, FILE *out)
{
	if (s->sampled_cpus) {
		(void)fputs("the CPUs were sampled (perf events); no thread was stopped",
			    out);
		write_copies(s, "samples have no functions of Python and JavaScript",
			     out);
	} else {
		(void)fprintf(out,
			      "perf events are not available (%s), so running threads "
			      "were stopped: short bursts of work are missing; %s "
			      "they are seen",
			      strerror(s->perf_errno), hint(s));
	}
}

static void write_way(const struct ss_recorder_summary *s, FILE *out)
{
	if (s->sampled_cpus) {
		(void)fputs("the kernel sampled running threads and reported loads of "
			    "modules (perf events)",
			    out);
		write_copies(s, "threads were stopped for their functions", out);
	} else {
		(void)fprintf(out,
			      "perf events are not available (%s), so running threads "
			      "were stopped, and modules polled; %s the kernel samples "
			      "and reports them",
			      strerror(s->perf_errno), hint(s));
	}
}

static void write_ticks(const struct ss_recorder_summary *s, FILE *out)
{
	(void)fprintf(out, "%s, %s missed; the recorder's tables took %s",
		      ss_quantity_things(s->ticks, "tick").text,
		      ss_quantity_count(s->missed).text,
		      ss_quantity_size(s->memory).text);
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
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	write_line(summary, out);
	if (fclose(out) == 0)
		ss_failure_warn("%s%s", before, text);
	free(text);
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
		ss_failure_warn("some children were not recorded: too few files may be "
				"open; raise the limit (ulimit -Hn)");
}
