#include "report/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/search.h"
#include "report/profile_condense.h"
#include "diagnose/progress.h"

const char *ss_change_name(enum ss_change change)
{
	static const char *const names[] = {
		[SS_UNCHANGED] = "unchanged",
		[SS_MOVED] = "moved",
		[SS_NEW] = "new",
		[SS_GONE] = "gone",
	};

	return (size_t)change < SS_ARRAY_SIZE(names) ? names[change] : "unknown";
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Functions of runtimes have neither a module nor an offset. */
static int compare_functions(const struct ss_frame *a, const struct ss_frame *b)
{
	return compare_texts(a->symbol, b->symbol)     ?:
		       compare_texts(a->file, b->file) ?:
							 SS_COMPARE(a->line, b->line);
}

/* Orders frames by place: the module and the offset in it, not the address. Of an inlined function
   only the name counts, of one of a runtime its name, file and line. */
static int diff_compare_frames(const struct ss_frame *a, const struct ss_frame *b)
{
	int order = SS_COMPARE(a->kind, b->kind);

	if (order || a->kind != SS_FRAME_NATIVE)
		return order ?: compare_functions(a, b);
	order = compare_texts(a->module ? a->module->path : a->area, b->module ? b->module->path : b->area) ?:
			(a->module != NULL) - (b->module != NULL) ?:
			compare_texts(a->symbol, b->symbol)	  ?:
								    a->inlined - b->inlined;
	if (order || a->inlined)
		return order;
	return a->module ? SS_COMPARE(a->offset, b->offset) :
			   SS_COMPARE(a->area_offset, b->area_offset);
}

/* One task of either side. */
struct entry {
	const struct ss_diff_side *side;
	const struct ss_task *task;
	bool matched;
};

static const struct ss_frame *frame_of(const struct entry *entry, size_t from_outermost)
{
	size_t count = entry->task->frame_count;

	return ss_snapshot_frame(entry->side->snapshot, entry->task,
				 count - 1 - from_outermost);
}

static size_t count_common(const struct entry *a, const struct entry *b)
{
	size_t count = SS_MIN(a->task->frame_count, b->task->frame_count);
	size_t common = 0;

	while (common < count &&
	       diff_compare_frames(frame_of(a, common), frame_of(b, common)) == 0)
		common++;
	return common;
}

static int compare_stacks(const struct entry *a, const struct entry *b)
{
	size_t count = SS_MIN(a->task->frame_count, b->task->frame_count);
	size_t common = count_common(a, b);

	if (common < count)
		return diff_compare_frames(frame_of(a, common), frame_of(b, common));
	return SS_COMPARE(a->task->frame_count, b->task->frame_count);
}

/* Matching ---------------------------------------------------------------- */

typedef int comparison(const void *a, const void *b);

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a;
	const struct entry *y = b;

	return strcmp(x->task->name, y->task->name);
}

SS_DEFINE_COMPARE(by_id, struct entry, task->id)

/* A task of asyncio with another name is another one. */
static int by_id_and_name(const void *a, const void *b)
{
	return by_id(a, b) ?: by_name(a, b);
}

static int by_name_and_stack(const void *a, const void *b)
{
	return by_name(a, b) ?: compare_stacks(a, b);
}

struct matching {
	struct ss_diff *diff;
	const struct ss_diff *threads; /* NULL: these are matched */
	const struct ss_diff_input *input;
	struct entry *before;
	struct entry *after;
	size_t before_count;
	size_t after_count;
};

static void matching_deinit(struct matching *matching)
{
	free(matching->before);
	free(matching->after);
}

static struct entry *list(const struct ss_diff_side *side, enum ss_task_kind kind,
			  size_t *ret_count)
{
	size_t count = ss_snapshot_task_count(side->snapshot, kind);
	struct entry *entries = calloc(count + 1, sizeof(*entries));

	*ret_count = count;
	for (size_t i = 0; entries && i < count; i++)
		entries[i] = (struct entry){
			.side = side, .task = ss_snapshot_task(side->snapshot, kind, i)
		};
	return entries;
}

static size_t index_of(const struct entry *entry)
{
	return (size_t)(entry->task -
			ss_snapshot_task(entry->side->snapshot, entry->task->kind, 0));
}

static bool is_thread_unchanged(const struct ss_diff *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->items[i].after && threads->items[i].after->tid == tid)
			return threads->items[i].change == SS_UNCHANGED;
	}
	return false;
}

/* What a task of asyncio does besides being in its coroutines. */
static bool does_same(const struct matching *matching, const struct ss_task *before,
		      const struct ss_task *after)
{
	const bool runs = after->status == SS_STATUS_RUNNING;

	if ((before->status == SS_STATUS_RUNNING) != runs)
		return false;
	if (runs)
		return before->tid == after->tid &&
		       is_thread_unchanged(matching->threads, after->tid);
	return !before->wait_reason || !after->wait_reason ||
	       strcmp(before->wait_reason, after->wait_reason) == 0;
}

static bool is_unchanged(const struct matching *matching, const struct ss_task *before,
			 const struct ss_task *after, size_t common)
{
	return common == before->frame_count && common == after->frame_count &&
	       before->end == after->end &&
	       (common > 0 || ss_end_is_outermost(after->end)) &&
	       (!matching->threads || does_same(matching, before, after));
}

static void add(struct matching *matching, const struct entry *before,
		const struct entry *after)
{
	const struct ss_diff_input *input = matching->input;
	const struct entry *shown = after ? after : before;
	const bool thread = !matching->threads;
	struct ss_task_change change = {
		.before = before ? before->task : NULL,
		.after = after ? after->task : NULL,
		.wait = shown->task->wait,
		.change = before ? SS_GONE : SS_NEW,
	};

	if (before && after) {
		change.common = count_common(before, after);
		change.change =
			is_unchanged(matching, before->task, after->task, change.common) ?
				SS_UNCHANGED :
				SS_MOVED;
	}
	change.class = ss_group_class_of(shown->task->state, change.wait);
	if (thread && after && input->progress)
		change.progress = ss_progress_thread(input->progress, index_of(after));
	matching->diff->counts[change.change]++;
	matching->diff->items[matching->diff->count++] = change;
}

/* Matches the tasks that are equal, each once. */
static void match(struct matching *matching, comparison *compare)
{
	struct entry *before = matching->before;
	struct entry *after = matching->after;
	size_t i = 0;
	size_t k = 0;

	qsort(before, matching->before_count, sizeof(*before), compare);
	qsort(after, matching->after_count, sizeof(*after), compare);
	while (i < matching->before_count && k < matching->after_count) {
		int order = before[i].matched ? -1 :
			    after[k].matched  ? 1 :
						compare(&before[i], &after[k]);
		if (order == 0) {
			add(matching, &before[i], &after[k]);
			before[i].matched = after[k].matched = true;
		}
		i += order <= 0;
		k += order >= 0;
	}
}

static void add_rest(struct matching *matching)
{
	for (size_t i = 0; i < matching->after_count; i++) {
		if (!matching->after[i].matched)
			add(matching, NULL, &matching->after[i]);
	}
	for (size_t i = 0; i < matching->before_count; i++) {
		if (!matching->before[i].matched)
			add(matching, &matching->before[i], NULL);
	}
}

/* Of one change, both are in the array of one snapshot. */
static int compare_changes(const void *a, const void *b)
{
	const struct ss_task_change *x = a;
	const struct ss_task_change *y = b;
	const struct ss_task *t = ss_change_task(x);
	const struct ss_task *u = ss_change_task(y);

	return SS_COMPARE(x->change, y->change)	      ?:
		       SS_COMPARE(x->class, y->class) ?:
							SS_COMPARE(t, u);
}

static bool is_same_process(const struct ss_diff_input *input)
{
	const struct ss_process *a = ss_snapshot_process(input->before.snapshot);
	const struct ss_process *b = ss_snapshot_process(input->after.snapshot);

	return a->pid == b->pid && compare_texts(a->executable, b->executable) == 0;
}

/* Why tasks of asyncio are not compared; or NULL. */
static const char *find_problem(const struct ss_diff_input *input, bool same_process)
{
	const struct ss_task_coverage *before =
		ss_snapshot_task_coverage(input->before.snapshot, SS_TASK_ASYNCIO);
	const struct ss_task_coverage *after =
		ss_snapshot_task_coverage(input->after.snapshot, SS_TASK_ASYNCIO);
	const char *problem = after->problem ? after->problem : before->problem;

	if (problem || (!before->known && !after->known))
		return problem;
	if (!same_process)
		return "asyncio tasks are not compared: the snapshots are of two "
		       "processes";
	if (before->known && after->known)
		return NULL;
	return before->known ? "asyncio tasks are not compared: they were not read in "
			       "the second snapshot" :
			       "asyncio tasks are not compared: they were not read in "
			       "the first snapshot";
}

struct ss_diff *ss_diff_new(const struct ss_diff_input *input, enum ss_task_kind kind,
			    const struct ss_diff *threads)
{
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff = calloc(1, sizeof(*diff));
	__attribute__((cleanup(matching_deinit))) struct matching matching = {
		.diff = diff, .threads = threads, .input = input
	};

	if (!diff)
		return NULL;
	diff->kind = kind;
	diff->same_process = is_same_process(input);
	matching.before = list(&input->before, kind, &matching.before_count);
	matching.after = list(&input->after, kind, &matching.after_count);
	diff->items = calloc(matching.before_count + matching.after_count + 1,
			     sizeof(*diff->items));
	if (!matching.before || !matching.after || !diff->items)
		return NULL;
	diff->problem = threads ? find_problem(input, diff->same_process) : NULL;
	if (diff->problem)
		return take_ptr(diff);
	if (threads) {
		match(&matching, by_id_and_name);
	} else if (diff->same_process) {
		match(&matching, by_id);
	} else {
		match(&matching, by_name_and_stack);
		match(&matching, by_name);
	}
	add_rest(&matching);
	/* cppcheck-suppress nullPointer; take_ptr() above returns */
	qsort(diff->items, diff->count, sizeof(*diff->items), compare_changes);
	return take_ptr(diff);
}

void ss_diff_free(struct ss_diff *diff)
{
	if (!diff)
		return;
	free(diff->items);
	free(diff);
}

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

static int compare_profile_changes(const struct ss_profile_diff *diff,
				   const struct ss_set_counts *a,
				   const struct ss_set_counts *b)
{
	double x = fabs(ss_profile_diff_change(diff, a));
	double y = fabs(ss_profile_diff_change(diff, b));

	return SS_COMPARE(y, x);
}

static int compare_profile_functions(const void *a, const void *b, void *data)
{
	const struct ss_function_difference *x = a;
	const struct ss_function_difference *y = b;

	return compare_profile_changes(data, &x->self, &y->self)	   ?:
		       compare_profile_changes(data, &x->total, &y->total) ?:
		       SS_COMPARE(x->function, y->function);
}

static int compare_profile_stacks(const void *a, const void *b, void *data)
{
	const struct ss_stack_difference *x = a;
	const struct ss_stack_difference *y = b;

	return compare_profile_changes(data, &x->samples, &y->samples) ?:
		       SS_COMPARE(x->node, y->node);
}

static int compare_threads(const void *a, const void *b)
{
	const struct ss_thread_difference *x = a;
	const struct ss_thread_difference *y = b;
	uint32_t first = x->thread[x->thread[SS_AFTER] == SS_ID_NONE ? 0 : 1];
	uint32_t second = y->thread[y->thread[SS_AFTER] == SS_ID_NONE ? 0 : 1];

	return SS_COMPARE(x->change, y->change) ?: SS_COMPARE(first, second);
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

static void add_value(struct ss_set_counts *to, const struct ss_set_counts *counts)
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
			compare_profile_stacks, diff);
	return diff->stacks;
}

/* Changes nodes: samples of a node count for its callers, which have lower numbers. */
static bool find_functions(struct ss_profile_diff *diff, struct ss_set_counts *nodes)
{
	const struct ss_profile *profile = diff->profile;
	size_t count = profile->functions.count;
	struct ss_function_difference *all = calloc(count + 1, sizeof(*all));
	_cleanup_(ss_weights_cleanup) struct ss_weights *weights =
		ss_weights_new(profile, SS_SAMPLES_ALL);

	diff->functions = all;
	if (!all || !weights)
		return false;
	for (size_t i = 1; i < profile->nodes.count; i++)
		add_value(&all[ss_profile_node_at(profile, (uint32_t)i)->function].self,
			  &nodes[i]);
	for (size_t i = profile->nodes.count; i-- > 1;) {
		const struct ss_profile_node *node =
			ss_profile_node_at(profile, (uint32_t)i);
		add_value(&nodes[node->parent], &nodes[i]);
		if (has_any(&nodes[i]) && !weights->recursive[i])
			add_value(&all[node->function].total, &nodes[i]);
	}
	for (size_t i = 0; i < count; i++) {
		all[i].function = (uint32_t)i;
		if (has_any(&all[i].total))
			all[diff->function_count++] = all[i];
	}
	qsort_r(all, diff->function_count, sizeof(*all), compare_profile_functions, diff);
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
