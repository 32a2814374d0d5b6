#include <string.h>

#include "report/text.h"
#include "view/escape.h"
#include "view/quantity.h"
#include "view/style.h"

static const struct {
	char letter;
	const char *word;
} states[] = {
	{ 'R', "running, or waiting for a processor" },
	{ 'S', "sleeping" },
	{ 'D', "sleeping, not to be interrupted" },
	{ 'T', "stopped" },
	{ 't', "stopped by a tracer" },
	{ 'I', "idle" },
	{ 'Z', "ended" },
	{ 'X', "ended" },
};

struct row {
	uint32_t index;
	uint64_t samples;
	uint64_t running;
	uint64_t cpu_ns;
};

static int compare(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	if (x->running != y->running)
		return x->running < y->running ? 1 : -1;
	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

static void heading(const char *text, const struct ss_report_options *options, FILE *out)
{
	(void)fputc('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fputs(text, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputc('\n', out);
}

typedef void run_visitor(void *data, size_t thread, const struct ss_profile_run *run);

static void each_run(const struct ss_profile *profile, run_visitor *visit, void *data)
{
	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++)
			visit(data, t, &thread->runs.items[r]);
	}
}

static void count_state(void *data, size_t thread, const struct ss_profile_run *run)
{
	uint64_t *counts = data;

	(void)thread;
	counts[(unsigned char)run->state] += run->count;
}

static void write_states(const struct ss_profile *profile,
			 const struct ss_report_options *options, FILE *out)
{
	uint64_t counts[256] = {};
	uint64_t rest = profile->samples;

	each_run(profile, count_state, counts);
	heading("States", options, out);
	for (size_t i = 0; i < SS_ARRAY_SIZE(states); i++) {
		uint64_t count = counts[(unsigned char)states[i].letter];
		rest -= count;
		if (!count)
			continue;
		ss_report_write_share(count, profile->samples, out);
		(void)fprintf(out, "  %c  %s\n", states[i].letter, states[i].word);
	}
	if (rest) {
		ss_report_write_share(rest, profile->samples, out);
		(void)fputs("  ?  not known\n", out);
	}
}

static void count_wait(void *data, size_t thread, const struct ss_profile_run *run)
{
	struct row *rows = data;

	(void)thread;
	if (run->wait != SS_NUMBER_NOT && run->state != 'R')
		rows[run->wait].running += run->count;
}

/* Who waits on what: the calls of the system that threads slept in. */
static bool write_waits(const struct ss_profile *profile,
			const struct ss_report_options *options, FILE *out)
{
	size_t count = profile->waits.count;
	_cleanup_free_ struct row *rows = calloc(count + 1, sizeof(*rows));

	if (!rows)
		return false;
	for (uint32_t i = 0; i < count; i++)
		rows[i].index = i;
	each_run(profile, count_wait, rows);
	qsort(rows, count, sizeof(*rows), compare);
	if (count && rows[0].running)
		heading("Waits, by system call", options, out);
	for (size_t i = 0; i < count && rows[i].running; i++) {
		if (i == options->rows && !options->verbose)
			break;
		ss_report_write_share(rows[i].running, profile->samples, out);
		(void)fputs("  ", out);
		ss_escape_write(profile->waits.items[rows[i].index], NULL, out);
		(void)fputc('\n', out);
	}
	return true;
}

static void count_thread(void *data, size_t thread, const struct ss_profile_run *run)
{
	struct row *row = (struct row *)data + thread;

	row->samples += run->count;
	row->cpu_ns += run->cpu_ns;
	if (run->state == 'R')
		row->running += run->count;
}

static void write_thread(const struct ss_profile *profile, const struct row *row,
			 FILE *out)
{
	const struct ss_profile_thread *thread = &profile->threads.items[row->index];

	ss_report_write_share(row->running, row->samples, out);
	(void)fprintf(out, " of %8llu  ", (unsigned long long)row->samples);
	ss_escape_write(thread->name, NULL, out);
	(void)fprintf(out, " %d", thread->tid);
	if (profile->processes.count > 1) {
		const struct ss_profile_process *process =
			&profile->processes.items[thread->process];
		(void)fputs(" (", out);
		ss_escape_write(process->name, NULL, out);
		(void)fprintf(out, " %d)", process->pid);
	}
	if (row->cpu_ns) {
		(void)fputs(", on a processor for ", out);
		ss_quantity_write_time(row->cpu_ns, out);
	}
	(void)fputc('\n', out);
}

static bool write_threads(const struct ss_profile *profile,
			  const struct ss_report_options *options, FILE *out)
{
	size_t count = profile->threads.count;
	_cleanup_free_ struct row *rows = calloc(count + 1, sizeof(*rows));

	if (!rows)
		return false;
	for (uint32_t i = 0; i < count; i++)
		rows[i].index = i;
	each_run(profile, count_thread, rows);
	qsort(rows, count, sizeof(*rows), compare);
	heading("Threads: share of their samples in which they ran", options, out);
	for (size_t i = 0; i < count; i++) {
		if (i == options->rows && !options->verbose) {
			(void)fprintf(out, "  and %zu more (-v lists them)\n", count - i);
			break;
		}
		write_thread(profile, &rows[i], out);
	}
	return true;
}

bool ss_report_write_breakdown(const struct ss_profile *profile,
			       const struct ss_report_options *options, FILE *out)
{
	write_states(profile, options, out);
	return write_waits(profile, options, out) && write_threads(profile, options, out);
}
