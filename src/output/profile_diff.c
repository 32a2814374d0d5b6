#include "output/profile_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/idtable.h"
#include "profile/weights.h"

void ss_profile_diff_free(struct ss_profile_diff *diff)
{
	if (!diff)
		return;
	free(diff->functions);
	free(diff->stacks);
	free(diff->threads);
	free(diff);
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

double ss_profile_diff_change(const struct ss_profile_diff *diff,
			      const struct ss_set_counts *counts)
{
	return share(counts->of[SS_AFTER], diff->samples.of[SS_AFTER]) -
	       share(counts->of[SS_BEFORE], diff->samples.of[SS_BEFORE]);
}

static int compare_changes(const struct ss_profile_diff *diff,
			   const struct ss_set_counts *a, const struct ss_set_counts *b)
{
	double x = fabs(ss_profile_diff_change(diff, a));
	double y = fabs(ss_profile_diff_change(diff, b));

	return (x < y) - (x > y);
}

static int compare_functions(const void *a, const void *b, void *data)
{
	const struct ss_function_difference *x = a;
	const struct ss_function_difference *y = b;
	int order = compare_changes(data, &x->self, &y->self);

	if (order == 0)
		order = compare_changes(data, &x->total, &y->total);
	return order ? order : (x->function > y->function) - (x->function < y->function);
}

static int compare_stacks(const void *a, const void *b, void *data)
{
	const struct ss_stack_difference *x = a;
	const struct ss_stack_difference *y = b;
	int order = compare_changes(data, &x->samples, &y->samples);

	return order ? order : (x->node > y->node) - (x->node < y->node);
}

static int compare_threads(const void *a, const void *b)
{
	const struct ss_thread_difference *x = a;
	const struct ss_thread_difference *y = b;
	uint32_t first = x->thread[x->thread[SS_AFTER] == SS_ID_NONE ? 0 : 1];
	uint32_t second = y->thread[y->thread[SS_AFTER] == SS_ID_NONE ? 0 : 1];

	if (x->change != y->change)
		return x->change < y->change ? -1 : 1;
	return (first > second) - (first < second);
}

static unsigned set_of(const struct ss_profile *profile,
		       const struct ss_profile_thread *thread)
{
	return ss_profile_recording_of(profile, thread)->set ? SS_AFTER : SS_BEFORE;
}

/* Samples of each node as the innermost one. */
static struct ss_set_counts *count_nodes(struct ss_profile_diff *diff)
{
	const struct ss_profile *profile = diff->profile;
	struct ss_set_counts *nodes = calloc(profile->nodes.count + 1, sizeof(*nodes));

	for (size_t i = 0; i < profile->recordings.count; i++)
		diff->recordings.of[profile->recordings.items[i].set ? 1 : 0] +=
			1 + profile->recordings.items[i].more;
	for (size_t t = 0; nodes && t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		unsigned set = set_of(profile, thread);
		for (size_t r = 0; r < thread->runs.count; r++) {
			const struct ss_profile_run *run = &thread->runs.items[r];
			nodes[profile->node_of.items[run->call]].of[set] += run->count;
			diff->samples.of[set] += run->count;
		}
	}
	return nodes;
}

static void add(struct ss_set_counts *to, const struct ss_set_counts *counts)
{
	for (size_t i = 0; i < SS_SET_COUNT; i++)
		to->of[i] += counts->of[i];
}

static bool has_any(const struct ss_set_counts *counts)
{
	return counts->of[SS_BEFORE] || counts->of[SS_AFTER];
}

static bool find_stacks(struct ss_profile_diff *diff, const struct ss_set_counts *nodes)
{
	size_t count = diff->profile->nodes.count;

	diff->stacks = calloc(count + 1, sizeof(*diff->stacks));
	for (size_t i = 0; diff->stacks && i < count; i++) {
		if (has_any(&nodes[i]))
			diff->stacks[diff->stack_count++] =
				(struct ss_stack_difference){ (uint32_t)i, nodes[i] };
	}
	if (diff->stacks)
		qsort_r(diff->stacks, diff->stack_count, sizeof(*diff->stacks),
			compare_stacks, diff);
	return diff->stacks;
}

/* Changes nodes: samples of a node count for its callers, which have lower numbers. */
static bool find_functions(struct ss_profile_diff *diff, struct ss_set_counts *nodes)
{
	const struct ss_profile *profile = diff->profile;
	size_t count = profile->functions.count;
	struct ss_function_difference *all = calloc(count + 1, sizeof(*all));
	_cleanup_(ss_weights_cleanup) struct ss_weights *weights =
		ss_weights_new(profile);

	diff->functions = all;
	if (!all || !weights)
		return false;
	for (size_t i = 1; i < profile->nodes.count; i++)
		add(&all[ss_profile_node_at(profile, (uint32_t)i)->function].self,
		    &nodes[i]);
	for (size_t i = profile->nodes.count; i-- > 1;) {
		const struct ss_profile_node *node =
			ss_profile_node_at(profile, (uint32_t)i);
		add(&nodes[node->parent], &nodes[i]);
		if (has_any(&nodes[i]) && !weights->recursive[i])
			add(&all[node->function].total, &nodes[i]);
	}
	for (size_t i = 0; i < count; i++) {
		all[i].function = (uint32_t)i;
		if (has_any(&all[i].total))
			all[diff->function_count++] = all[i];
	}
	qsort_r(all, diff->function_count, sizeof(*all), compare_functions, diff);
	return true;
}

/* Texts are interned: equal ones have equal addresses. */
struct thread_key {
	const char *host;
	const char *name;
	const char *task;
	int64_t pid;
	int64_t tid;
};

static bool find_threads(struct ss_profile_diff *diff)
{
	const struct ss_profile *profile = diff->profile;
	struct ss_idtable keys = {};
	bool whole = true;

	diff->threads = calloc(profile->threads.count + 1, sizeof(*diff->threads));
	whole = diff->threads;
	for (size_t i = 0; whole && i < profile->threads.count; i++) {
		const struct ss_profile_thread *thread = &profile->threads.items[i];
		const struct ss_profile_process *process =
			&profile->processes.items[thread->process];
		const struct thread_key key = {
			ss_profile_recording_of(profile, thread)->host, thread->name,
			thread->task, process->pid, thread->tid
		};
		unsigned set = set_of(profile, thread);
		bool added = false;
		if (thread->runs.count == 0)
			continue;
		uint32_t number = ss_idtable_add(&keys, &key, sizeof(key), &added);
		whole = number != SS_ID_NONE;
		if (!whole)
			break;
		struct ss_thread_difference *d = &diff->threads[number];
		if (added)
			*d = (struct ss_thread_difference){ .thread = { SS_ID_NONE,
									SS_ID_NONE } };
		d->thread[set] = (uint32_t)i;
		d->node[set] =
			profile->node_of
				.items[thread->runs.items[thread->runs.count - 1].call];
	}
	diff->thread_count = keys.count;
	ss_idtable_deinit(&keys);
	return whole;
}

static void classify_threads(struct ss_profile_diff *diff)
{
	for (size_t i = 0; i < diff->thread_count; i++) {
		struct ss_thread_difference *d = &diff->threads[i];
		if (d->thread[SS_BEFORE] == SS_ID_NONE)
			d->change = SS_NEW;
		else if (d->thread[SS_AFTER] == SS_ID_NONE)
			d->change = SS_GONE;
		else
			d->change = d->node[SS_BEFORE] == d->node[SS_AFTER] ?
					    SS_UNCHANGED :
					    SS_MOVED;
		diff->changes[d->change]++;
	}
	if (diff->thread_count)
		qsort(diff->threads, diff->thread_count, sizeof(*diff->threads),
		      compare_threads);
}

struct ss_profile_diff *ss_profile_diff_new(const struct ss_profile *profile)
{
	_cleanup_(ss_profile_diff_cleanup) struct ss_profile_diff *diff =
		calloc(1, sizeof(*diff));

	if (!diff)
		return NULL;
	diff->profile = profile;
	_cleanup_free_ struct ss_set_counts *nodes = count_nodes(diff);
	if (!nodes || !find_stacks(diff, nodes) || !find_functions(diff, nodes) ||
	    !find_threads(diff))
		return NULL;
	classify_threads(diff);
	return take_ptr(diff);
}
