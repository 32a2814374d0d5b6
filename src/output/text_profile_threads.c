#include <string.h>

#include "profile/hottest.h"
#include "output/text_profile.h"
#include "output/escape.h"
#include "output/quantity.h"
#include "output/state.h"

enum { READY_MIN_NS = 1000 * 1000 };

struct row {
	uint32_t index;
	uint64_t samples;
	uint64_t running;
	uint64_t cpu_ns;
	uint64_t ready_ns;
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

struct breakdown {
	const struct ss_condensed *condensed;
	const struct ss_profile *profile;
	const struct ss_format_options *options;
	struct ss_hottest *hottest;
	FILE *out;
};

/* "; 60 % in net_real_write (mariadbd)": of the samples in the set, which is emptied. */
static void write_hottest(const struct breakdown *b, uint64_t samples)
{
	uint32_t function = 0;
	uint64_t count = ss_hottest_take(b->hottest, &function);

	if (!count || !samples)
		return;
	(void)fprintf(b->out, "; %.0f %% in ", 100.0 * (double)count / (double)samples);
	ss_text_profile_function(b->condensed, function,
				 &b->condensed->functions[function], b->options, b->out);
}

/* Counts the samples in a state, and adds them to the set of b->hottest. */
static uint64_t count_state(const struct breakdown *b, char state)
{
	uint64_t count = 0;

	for (size_t t = 0; t < b->profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &b->profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			const struct ss_profile_run *run = &thread->runs.items[r];
			if (run->state != state)
				continue;
			count += run->count;
			ss_hottest_add(b->hottest, run);
		}
	}
	return count;
}

static void count_thread(const struct ss_profile_thread *thread, struct row *row)
{
	for (size_t r = 0; r < thread->runs.count; r++) {
		const struct ss_profile_run *run = &thread->runs.items[r];
		row->samples += run->count;
		row->cpu_ns += run->cpu_ns;
		row->ready_ns += run->ready_ns;
		if (run->state == 'R')
			row->running += run->count;
	}
}

/* Of the samples of threads in state R, how many found them waiting for a CPU: a sample
   does not say it, so they are divided like the time that a thread ran and waited. In
   samples of CPUs all of them ran. */
static uint64_t count_waiting(const struct breakdown *b)
{
	double waiting = 0;

	for (size_t t = 0; t < b->profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &b->profile->threads.items[t];
		struct row row = {};
		count_thread(thread, &row);
		uint64_t time_ns = row.cpu_ns + row.ready_ns;
		if (time_ns &&
		    ss_profile_recording_of(b->profile, thread)->scope != SS_SCOPE_CPUS)
			waiting += (double)row.running * (double)row.ready_ns /
				   (double)time_ns;
	}
	return (uint64_t)(waiting + 0.5);
}

/* See ss_unsampled_add(). */
static void write_unsampled(const struct breakdown *b)
{
	uint64_t count = 0;

	for (size_t i = 0; i < b->profile->recordings.count; i++)
		count += b->profile->recordings.items[i].unsampled;
	if (!count)
		return;
	ss_text_profile_share(count, b->profile->samples, b->out);
	(void)fputs(
		"     CPU time that is in no sample, [not sampled]: mostly switches of "
		"threads, which the CPU clock does not interrupt\n",
		b->out);
}

static void write_waiting(const struct breakdown *b, uint64_t count)
{
	uint64_t waiting = SS_MIN(count_waiting(b), count);

	if (!waiting)
		return;
	ss_text_profile_share(count - waiting, b->profile->samples, b->out);
	(void)fputs("     on a CPU\n", b->out);
	ss_text_profile_share(waiting, b->profile->samples, b->out);
	(void)fputs("     waiting for a CPU\n", b->out);
}

static void write_states(const struct breakdown *b)
{
	uint64_t rest = b->profile->samples;

	ss_text_profile_heading("States", b->options, b->out);
	for (const char *state = SS_STATE_LETTERS; *state; state++) {
		uint64_t count = count_state(b, *state);
		rest -= count;
		if (!count)
			continue;
		ss_text_profile_share(count, b->profile->samples, b->out);
		(void)fprintf(b->out, "  %c  %s", *state, ss_state_name(*state));
		write_hottest(b, count);
		(void)fputc('\n', b->out);
		if (*state != 'R')
			continue;
		write_waiting(b, count);
		write_unsampled(b);
	}
	if (rest) {
		ss_text_profile_share(rest, b->profile->samples, b->out);
		(void)fputs("  ?  unknown\n", b->out);
	}
}

/* Where it runs, or, if it never ran, where it waits. */
static void write_thread_hottest(const struct breakdown *b, const struct row *row)
{
	const struct ss_profile_thread *thread = &b->profile->threads.items[row->index];

	for (size_t r = 0; r < thread->runs.count; r++) {
		if (!row->running || thread->runs.items[r].state == 'R')
			ss_hottest_add(b->hottest, &thread->runs.items[r]);
	}
	write_hottest(b, row->running ? row->running : row->samples);
}

static void write_thread(const struct breakdown *b, const struct row *row)
{
	const struct ss_profile *profile = b->profile;
	const struct ss_profile_thread *thread = &profile->threads.items[row->index];

	ss_text_profile_share(row->running, row->samples, b->out);
	(void)fputs(" of ", b->out);
	(void)fprintf(b->out, "%8llu  ", (unsigned long long)row->samples);
	ss_escape_write(thread->name, NULL, b->out);
	if (thread->task) {
		(void)fputc(' ', b->out);
		ss_escape_write(thread->task, NULL, b->out);
	} else {
		(void)fprintf(b->out, " %d", thread->tid);
	}
	if (profile->processes.count > 1) {
		const struct ss_profile_process *process =
			&profile->processes.items[thread->process];
		(void)fputs(" (", b->out);
		ss_escape_write(process->name, NULL, b->out);
		(void)fprintf(b->out, " %d)", process->pid);
	}
	if (row->cpu_ns) {
		(void)fputs(", CPU time ", b->out);
		ss_quantity_write_time(row->cpu_ns, b->out);
	}
	if (row->ready_ns >= READY_MIN_NS) {
		(void)fputs(", waited for a CPU ", b->out);
		ss_quantity_write_time(row->ready_ns, b->out);
	}
	write_thread_hottest(b, row);
	(void)fputc('\n', b->out);
}

static bool write_threads(const struct breakdown *b)
{
	size_t count = b->profile->threads.count;
	_cleanup_free_ struct row *rows = calloc(count + 1, sizeof(*rows));

	if (!rows)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		rows[i].index = i;
		count_thread(&b->profile->threads.items[i], &rows[i]);
	}
	qsort(rows, count, sizeof(*rows), compare);
	ss_text_profile_heading(
		"Threads, by the share of their samples in which they ran", b->options,
		b->out);
	for (size_t i = 0; i < count; i++) {
		if (i == b->options->rows && !b->options->verbose) {
			(void)fprintf(b->out, "  and %zu more (-v lists them)\n",
				      count - i);
			break;
		}
		write_thread(b, &rows[i]);
	}
	return true;
}

bool ss_text_profile_threads(const struct ss_condensed *condensed,
			     const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_hottest_cleanup) struct ss_hottest *hottest =
		ss_hottest_new(condensed);
	const struct breakdown b = { condensed, &condensed->profile, options, hottest,
				     out };

	if (!hottest)
		return false;
	write_states(&b);
	return write_threads(&b);
}
