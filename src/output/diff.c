#include "output/diff.h"

#include <stdlib.h>
#include <string.h>

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

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Functions of runtimes have neither a module nor an offset. */
static int compare_functions(const struct ss_frame *a, const struct ss_frame *b)
{
	int order = compare_texts(a->symbol, b->symbol);

	if (order || (order = compare_texts(a->file, b->file)))
		return order;
	return compare_numbers(a->line, b->line);
}

int ss_diff_compare_frames(const struct ss_frame *a, const struct ss_frame *b)
{
	int order = compare_numbers(a->kind, b->kind);

	if (order || a->kind != SS_FRAME_NATIVE)
		return order ? order : compare_functions(a, b);
	order = compare_texts(a->module ? a->module->path : a->area,
			      b->module ? b->module->path : b->area);
	if (order || (order = (a->module != NULL) - (b->module != NULL)))
		return order;
	order = compare_texts(a->symbol, b->symbol);
	if (order || (order = a->inlined - b->inlined) || a->inlined)
		return order;
	return a->module ? compare_numbers(a->offset, b->offset) :
			   compare_numbers(a->area_offset, b->area_offset);
}

/* One thread of either side. */
struct entry {
	const struct ss_diff_side *side;
	const struct ss_thread *thread;
	bool matched;
};

static const struct ss_frame *frame_of(const struct entry *entry, size_t from_outermost)
{
	size_t count = entry->thread->frame_count;

	return ss_snapshot_frame(entry->side->snapshot, entry->thread,
				 count - 1 - from_outermost);
}

static size_t count_common(const struct entry *a, const struct entry *b)
{
	size_t count = SS_MIN(a->thread->frame_count, b->thread->frame_count);
	size_t common = 0;

	while (common < count &&
	       ss_diff_compare_frames(frame_of(a, common), frame_of(b, common)) == 0)
		common++;
	return common;
}

static int compare_stacks(const struct entry *a, const struct entry *b)
{
	size_t count = SS_MIN(a->thread->frame_count, b->thread->frame_count);
	size_t common = count_common(a, b);

	if (common < count)
		return ss_diff_compare_frames(frame_of(a, common), frame_of(b, common));
	return compare_numbers(a->thread->frame_count, b->thread->frame_count);
}

/* Matching ---------------------------------------------------------------- */

typedef int comparison(const void *a, const void *b);

static int by_tid(const void *a, const void *b)
{
	const struct entry *x = a;
	const struct entry *y = b;

	return (x->thread->tid > y->thread->tid) - (x->thread->tid < y->thread->tid);
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a;
	const struct entry *y = b;

	return strcmp(x->thread->name, y->thread->name);
}

static int by_name_and_stack(const void *a, const void *b)
{
	int order = by_name(a, b);

	return order ? order : compare_stacks(a, b);
}

struct matching {
	struct ss_diff *diff;
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

static struct entry *list(const struct ss_diff_side *side, size_t *ret_count)
{
	size_t count = ss_snapshot_thread_count(side->snapshot);
	struct entry *entries = calloc(count + 1, sizeof(*entries));

	*ret_count = count;
	for (size_t i = 0; entries && i < count; i++)
		entries[i] =
			(struct entry){ .side = side,
					.thread = ss_snapshot_thread(side->snapshot, i) };
	return entries;
}

static const struct ss_wait *wait_of(const struct ss_diff_side *side,
				     const struct ss_thread *thread)
{
	size_t index = (size_t)(thread - ss_snapshot_thread(side->snapshot, 0));

	return side->waits ? side->waits[index] : thread->wait;
}

static void add(struct matching *matching, const struct entry *before,
		const struct entry *after)
{
	const struct ss_diff_input *input = matching->input;
	const struct entry *shown = after ? after : before;
	struct ss_thread_change change = {
		.before = before ? before->thread : NULL,
		.after = after ? after->thread : NULL,
		.wait = wait_of(shown->side, shown->thread),
		.change = before ? SS_GONE : SS_NEW,
	};

	if (before && after) {
		change.common = count_common(before, after);
		change.change =
			change.common == before->thread->frame_count &&
					change.common == after->thread->frame_count &&
					before->thread->end == after->thread->end &&
					(change.common > 0 ||
					 after->thread->end == SS_END_ROOT) ?
				SS_UNCHANGED :
				SS_MOVED;
	}
	change.class = ss_group_class_of(shown->thread->state, change.wait);
	if (after && input->progress)
		change.progress = ss_progress_thread(
			input->progress,
			(size_t)(after->thread -
				 ss_snapshot_thread(after->side->snapshot, 0)));
	matching->diff->counts[change.change]++;
	matching->diff->items[matching->diff->count++] = change;
}

/* Matches the threads that are equal, each once. */
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

static int compare_changes(const void *a, const void *b)
{
	const struct ss_thread_change *x = a;
	const struct ss_thread_change *y = b;
	const struct ss_thread *t = x->after ? x->after : x->before;
	const struct ss_thread *u = y->after ? y->after : y->before;

	if (x->change != y->change)
		return x->change < y->change ? -1 : 1;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return (t->tid > u->tid) - (t->tid < u->tid);
}

static bool is_same_process(const struct ss_diff_input *input)
{
	const struct ss_process *a = ss_snapshot_process(input->before.snapshot);
	const struct ss_process *b = ss_snapshot_process(input->after.snapshot);

	return a->pid == b->pid && compare_texts(a->executable, b->executable) == 0;
}

struct ss_diff *ss_diff_new(const struct ss_diff_input *input)
{
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff = calloc(1, sizeof(*diff));
	__attribute__((cleanup(matching_deinit))) struct matching matching = {
		.diff = diff, .input = input
	};

	if (!diff)
		return NULL;
	matching.before = list(&input->before, &matching.before_count);
	matching.after = list(&input->after, &matching.after_count);
	diff->items = calloc(matching.before_count + matching.after_count + 1,
			     sizeof(*diff->items));
	if (!matching.before || !matching.after || !diff->items)
		return NULL;
	diff->same_process = is_same_process(input);
	if (diff->same_process) {
		match(&matching, by_tid);
	} else {
		match(&matching, by_name_and_stack);
		match(&matching, by_name);
	}
	add_rest(&matching);
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
