#include "profile/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

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

static int compare(const void *a, const void *b)
{
	const struct ss_series_thread *x = a;
	const struct ss_series_thread *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static bool add_threads(struct ss_series *series)
{
	const struct ss_profile *profile = series->profile;

	for (size_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *thread = &profile->threads.items[i];
		if (thread->process != series->process || !ss_profile_is_thread(thread))
			continue;
		struct ss_series_thread *slot = ss_vector_push(&series->threads);
		if (!slot)
			return false;
		*slot = (struct ss_series_thread){ .tid = thread->tid,
						   .thread = (uint32_t)i };
	}
	if (series->threads.count)
		qsort(series->threads.items, series->threads.count,
		      sizeof(*series->threads.items), compare);
	return true;
}

static bool add_lifetimes(struct ss_series *series)
{
	const struct ss_profile *profile = series->profile;

	for (size_t i = 0; i < profile->lifetimes.count; i++) {
		if (profile->lifetimes.items[i].process != series->process)
			continue;
		size_t *slot = ss_vector_push(&series->lifetimes);
		if (!slot)
			return false;
		*slot = i;
	}
	return true;
}

bool ss_series_find(struct ss_profile *profile, const struct ss_recording *recording,
		    unsigned set, struct ss_series *ret)
{
	struct ss_series series = { .profile = profile };

	*ret = (struct ss_series){};
	if (!is_snapshot(recording))
		return true;
	series.process = find_process(profile, recording, set);
	if (series.process == SS_ID_NONE)
		return true;
	if (add_threads(&series) && add_lifetimes(&series)) {
		*ret = series;
		return true;
	}
	ss_series_deinit(&series);
	return false;
}

void ss_series_deinit(struct ss_series *series)
{
	ss_vector_free(&series->threads);
	ss_vector_free(&series->lifetimes);
}

uint32_t ss_series_thread(const struct ss_series *series, pid_t tid)
{
	size_t at = ss_lower_bound(series->threads.count, i,
				   series->threads.items[i].tid < tid);

	return at < series->threads.count && series->threads.items[at].tid == tid ?
		       series->threads.items[at].thread :
		       SS_ID_NONE;
}

/* Modules are in the same order as before, unless some came or went. */
bool ss_series_has_module(const struct ss_series *series, size_t index, uint32_t module,
			  uint64_t base)
{
	if (index >= series->lifetimes.count)
		return false;
	const struct ss_profile_lifetime *lifetime =
		&series->profile->lifetimes.items[series->lifetimes.items[index]];
	return lifetime->module == module && lifetime->base == base;
}

void ss_series_drop_waits(const struct ss_series *series)
{
	struct ss_profile *profile = series->profile;
	size_t kept = 0;

	for (size_t i = 0; i < profile->edges.count; i++) {
		uint32_t thread = profile->edges.items[i].thread;
		if (profile->threads.items[thread].process != series->process)
			profile->edges.items[kept++] = profile->edges.items[i];
	}
	profile->edges.count = kept;
	for (size_t i = 0; i < series->threads.count; i++) {
		struct ss_profile_thread *thread =
			&profile->threads.items[series->threads.items[i].thread];
		free(take_ptr(thread->wait));
	}
}
