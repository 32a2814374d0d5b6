#include "report/profile_load.h"

#include <stdlib.h>
#include <string.h>

#include "stacksnap/record.h"

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_snapshot(const struct ss_recording *recording)
{
	const struct ss_recording_info *info = ss_recording_info(recording);

	return info->end == SS_RECORDING_SNAPSHOT && !info->period_ns && !info->problem &&
	       ss_recording_process_count(recording) == 1;
}

/* Whether the snapshot was taken after all ticks of a recording of snapshots. */
static bool continues(const struct ss_profile *profile,
		      const struct ss_profile_recording *series, unsigned set,
		      const struct ss_recording_info *info)
{
	size_t count = series->ticks.count;

	return !series->period_ns && !series->problem && series->set == set &&
	       is_same(series->host, info->host) &&
	       is_same(series->boot_id, info->boot_id) && count > 0 &&
	       profile->start_ns + series->ticks.items[count - 1] <= info->begin_ns;
}

static uint32_t find_process(const struct ss_profile *profile,
			     const struct ss_recording *recording, unsigned set)
{
	const struct ss_recording_info *info = ss_recording_info(recording);
	const struct ss_recorded_process *wanted = ss_recording_process(recording, 0);

	for (size_t i = 0; i < profile->processes.count; i++) {
		const struct ss_profile_process *process = &profile->processes.items[i];
		if (process->pid == wanted->pid && is_same(process->name, wanted->name) &&
		    is_same(process->executable, wanted->executable) &&
		    continues(profile, &profile->recordings.items[process->recording],
			      set, info))
			return (uint32_t)i;
	}
	return SS_ID_NONE;
}

struct ss_series ss_series_find(const struct ss_profile *profile,
				const struct ss_recording *recording, unsigned set)
{
	struct ss_series series = { .is_snapshot = is_snapshot(recording),
				    .process = SS_ID_NONE };

	if (series.is_snapshot)
		series.process = find_process(profile, recording, set);
	if (series.process == SS_ID_NONE)
		return series;
	while (series.first_lifetime < profile->lifetimes.count &&
	       profile->lifetimes.items[series.first_lifetime].process != series.process)
		series.first_lifetime++;
	return series;
}

/* Modules are in the same order as before, unless some came or went. */
bool ss_series_has_module(const struct ss_profile *profile,
			  const struct ss_series *series, size_t index, uint32_t module,
			  uint64_t base)
{
	if (index >= profile->lifetimes.count - series->first_lifetime)
		return false;
	const struct ss_profile_lifetime *lifetime =
		&profile->lifetimes.items[series->first_lifetime + index];
	return lifetime->process == series->process && lifetime->module == module &&
	       lifetime->base == base;
}

void ss_series_drop_waits(struct ss_profile *profile, const struct ss_series *series)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		struct ss_profile_thread *thread = &profile->threads.items[i];
		if (thread->process != series->process)
			continue;
		free(take_ptr(thread->wait));
		thread->owner = 0;
		thread->in_cycle = thread->in_wait_graph = false;
	}
}

/* Of the CPU time. Less is of no interest. */
#define SHARE_MIN 0.02

/* Of what a recording may claim; added to all of its threads. */
#define COUNTED_MAX_NS 1e18
enum { RUNS_MAX = 1 << 20 };

/* CPU time of a thread or recording, in ticks. */
struct balance {
	uint64_t samples;
	double counted;	 /* by the scheduler */
	double missing;	 /* from the samples of threads that have too few */
	double variance; /* of the number of samples */
};

/* The CPU time that a sample stands for: the time between two ticks. */
static double tick_ns(const struct ss_profile_recording *recording)
{
	size_t count = recording->ticks.count;
	uint64_t first = recording->ticks.items[0];
	uint64_t last = recording->ticks.items[count - 1];

	return count > 1 && last > first ? (double)(last - first) / (double)(count - 1) :
					   (double)recording->period_ns;
}

static struct balance balance_of(const struct ss_profile_thread *thread, double tick)
{
	struct balance ret = {};

	for (size_t i = 0; i < thread->runs.count; i++) {
		ret.samples += thread->runs.items[i].count;
		ret.counted += (double)thread->runs.items[i].cpu_ns / tick;
	}
	ret.missing = SS_MAX(ret.counted - (double)ret.samples, 0.0);
	return ret;
}

/* Each tick finds a thread on a CPU or does not: the number of samples is binomial. One that is
   always on a CPU has a sample at each tick. CPU time is read up to a tick after the sample. */
static double variance_of(uint64_t samples, size_t ticks)
{
	const double count = (double)samples;

	return count * SS_MAX(1 - count / (double)ticks, 0.0) + 1;
}

static struct balance balance_all(const struct ss_profile *profile, uint32_t recording,
				  size_t first_thread, double tick)
{
	const size_t ticks = profile->recordings.items[recording].ticks.count;
	struct balance ret = {};

	for (size_t i = first_thread; i < profile->threads.count; i++) {
		const struct ss_profile_thread *thread = &profile->threads.items[i];
		if (profile->processes.items[thread->process].recording != recording)
			continue;
		struct balance part = balance_of(thread, tick);
		ret.samples += part.samples;
		ret.counted += part.counted;
		ret.missing += part.missing;
		if (part.samples)
			ret.variance += variance_of(part.samples, ticks);
	}
	return ret;
}

/* The ticks that are missing from all threads, less what chance explains (the estimator of
   James and Stein). Without the latter, a recording of a few hundred samples in which
   nothing is missing would have several percent too many; and if they counted only from two
   standard deviations on, such a recording in which several percent are missing would have none. */
static double count_missing(const struct balance *all)
{
	double missing = all->counted - (double)all->samples;

	if (missing <= 0)
		return 0;
	missing -= all->variance / missing;
	return missing >= SHARE_MIN * all->counted ? missing : 0;
}

/* What is added to a recording. */
struct addition {
	double tick;   /* the CPU time of one */
	uint32_t call; /* their stack */
	size_t runs;
	uint64_t ticks;
};

/* Added runs of a thread, each before one of its own. */
struct inserts {
	SS_VECTOR(struct ss_profile_run) runs;
	SS_VECTOR(size_t) before;
	uint64_t ticks;
};

static void inserts_deinit(struct inserts *inserts)
{
	ss_vector_free(&inserts->runs);
	ss_vector_free(&inserts->before);
}

/* Adds up to count ticks in the gap before a run. False without memory. */
static bool fill_gap(struct inserts *inserts, const struct ss_profile_thread *thread,
		     size_t index, uint64_t count, const struct addition *addition)
{
	const struct ss_profile_run *run = &thread->runs.items[index];
	uint64_t end = index ? (uint64_t)run[-1].tick + run[-1].count : 0;
	uint64_t gap = run->tick > end ? run->tick - end : 0;

	count = SS_MIN(count, gap);
	if (count == 0)
		return true;
	struct ss_profile_run *own = ss_vector_push(&inserts->runs);
	size_t *before = own ? ss_vector_push(&inserts->before) : NULL;
	if (!before)
		return false;
	*before = index;
	*own = (struct ss_profile_run){ .tick = run->tick - (uint32_t)count,
					.count = (uint32_t)count,
					.call = addition->call,
					.wait = SS_ID_NONE,
					.cpu_ns = (uint64_t)((double)count *
							     addition->tick),
					.state = 'R' };
	inserts->ticks += count;
	return true;
}

/* Merges them into the runs, from the end. */
static bool merge(struct ss_profile_thread *thread, const struct inserts *inserts)
{
	size_t from = thread->runs.count;
	size_t to = from + inserts->runs.count;

	if (!ss_vector_reserve(&thread->runs, to))
		return false;
	thread->runs.count = to;
	for (size_t i = inserts->runs.count; i-- > 0;) {
		while (from > inserts->before.items[i])
			thread->runs.items[--to] = thread->runs.items[--from];
		thread->runs.items[--to] = inserts->runs.items[i];
	}
	return true;
}

/* Spreads ticks over a thread, evenly over its CPU time, of which they take their part. */
static bool spread(struct ss_profile_thread *thread, double ticks,
		   struct addition *addition)
{
	_cleanup_(inserts_deinit) struct inserts inserts = {};
	struct balance balance = balance_of(thread, addition->tick);
	double counted = 0;

	for (size_t i = 0; i < thread->runs.count; i++) {
		counted += (double)thread->runs.items[i].cpu_ns / addition->tick;
		uint64_t due = (uint64_t)(ticks * counted / balance.counted);
		if (addition->runs + inserts.runs.count >= RUNS_MAX)
			break;
		if (due > inserts.ticks &&
		    !fill_gap(&inserts, thread, i, due - inserts.ticks, addition))
			return false;
	}
	double rest = 1 - (double)inserts.ticks / balance.counted;
	for (size_t i = 0; i < thread->runs.count; i++) {
		struct ss_profile_run *run = &thread->runs.items[i];
		run->cpu_ns = (uint64_t)((double)run->cpu_ns * rest);
	}
	addition->runs += inserts.runs.count;
	addition->ticks += inserts.ticks;
	return merge(thread, &inserts);
}

bool ss_unsampled_add(struct ss_profile *profile, uint32_t number, size_t first_thread,
		      uint32_t call)
{
	struct ss_profile_recording *recording = &profile->recordings.items[number];
	struct addition addition = { .tick = tick_ns(recording), .call = call };
	struct balance all = balance_all(profile, number, first_thread, addition.tick);
	double missing = count_missing(&all);

	for (size_t i = first_thread; missing > 0 && i < profile->threads.count; i++) {
		struct ss_profile_thread *thread = &profile->threads.items[i];
		struct balance balance = balance_of(thread, addition.tick);
		if (profile->processes.items[thread->process].recording != number ||
		    balance.missing == 0)
			continue;
		double ticks = missing * balance.missing / all.missing;
		if (!spread(thread, ticks + 0.5, &addition))
			return false;
	}
	recording->unsampled = addition.ticks;
	profile->samples += addition.ticks;
	return true;
}

bool ss_unsampled_has(const struct ss_profile *profile, uint32_t number,
		      size_t first_thread)
{
	const struct ss_profile_recording *recording = &profile->recordings.items[number];

	if (recording->scope != SS_SCOPE_CPUS || recording->ticks.count == 0 ||
	    recording->period_ns == 0)
		return false;
	struct balance all =
		balance_all(profile, number, first_thread, tick_ns(recording));
	return all.counted * tick_ns(recording) < COUNTED_MAX_NS &&
	       count_missing(&all) > 0;
}
