#include "output/merged_goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "base/idtable.h"
#include "output/merged.h"

struct work {
	const struct ss_snapshots *snapshots;
	struct ss_merged_goroutines *merged;
	struct ss_idtable groups; /* keys are those of write_key() */
	SS_VECTOR(struct ss_merged_goroutine) items;
	struct ss_buffer key; /* scratch */
};

static void items_free(struct ss_merged_goroutine *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ss_vector_free(&items[i].members);
		ss_vector_free(&items[i].first);
	}
	free(items);
}

static void work_deinit(struct work *work)
{
	items_free(work->items.items, work->items.count);
	ss_idtable_deinit(&work->groups);
	ss_buffer_deinit(&work->key);
}

void ss_merged_goroutines_free(struct ss_merged_goroutines *merged)
{
	if (!merged)
		return;
	items_free(merged->items, merged->count);
	free(merged);
}

static void write_key(struct work *work, const struct ss_snapshot *snapshot,
		      const struct ss_goroutine *goroutine)
{
	const char *words = ss_goroutine_words(goroutine);
	const char *runtime =
		work->merged->several && goroutine->runtime ? goroutine->runtime : "";

	work->key.size = 0;
	ss_buffer_add(&work->key, &goroutine->on_thread, sizeof(goroutine->on_thread));
	ss_buffer_add(&work->key, &goroutine->end, sizeof(goroutine->end));
	ss_buffer_add(&work->key, words, strlen(words) + 1);
	ss_buffer_add(&work->key, runtime, strlen(runtime) + 1);
	for (size_t i = 0; i < goroutine->frame_count; i++)
		ss_merged_add_frame(&work->key,
				    ss_snapshot_goroutine_frame(snapshot, goroutine, i),
				    false);
}

static bool add_members(struct ss_merged_goroutine *item, bool first,
			const struct ss_goroutine_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct ss_goroutine **slot = ss_vector_push(&item->members);
		uint64_t *id = first ? ss_vector_push(&item->first) : NULL;
		if (!slot || (first && !id))
			return false;
		*slot = group->members[i];
		if (id)
			*id = group->members[i]->id;
	}
	return true;
}

/* Goroutines of equal stacks. Others may have the same functions, in other places. */
static bool add_group(struct work *work, size_t index,
		      const struct ss_goroutine_group *group)
{
	bool added = false;

	write_key(work, work->snapshots->items[index], *group->members);
	uint32_t id = work->key.failed ? SS_ID_NONE :
					 ss_idtable_add(&work->groups, work->key.bytes,
							work->key.size, &added);
	if (id == SS_ID_NONE || (added && !ss_vector_push(&work->items)))
		return false;
	struct ss_merged_goroutine *item = &work->items.items[id];
	if (ss_presence_see(&item->presence, index))
		item->members.count = 0;
	return add_members(item, index == work->merged->first_read, group);
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int compare_members(const void *a, const void *b)
{
	const struct ss_goroutine *x = *(const struct ss_goroutine *const *)a;
	const struct ss_goroutine *y = *(const struct ss_goroutine *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

static void count_members(struct work *work, size_t index)
{
	bool first = index == work->merged->first_read;

	for (size_t i = 0; i < work->items.count; i++) {
		struct ss_merged_goroutine *item = &work->items.items[i];
		ss_presence_count(&item->presence, index, item->members.count, first);
		if (item->presence.last != index)
			continue;
		qsort(item->members.items, item->members.count,
		      sizeof(*item->members.items), compare_members);
		if (first)
			qsort(item->first.items, item->first.count,
			      sizeof(*item->first.items), compare_ids);
	}
}

static bool add_snapshot(struct work *work, size_t index)
{
	const struct ss_snapshot *snapshot = work->snapshots->items[index];
	const char *problem = ss_snapshot_goroutine_problem(snapshot);
	struct ss_merged_goroutines *merged = work->merged;

	merged->problem = problem ? problem : merged->problem;
	if (ss_snapshot_goroutine_count(snapshot) == 0)
		return true;
	_cleanup_(ss_goroutine_grouping_cleanup) struct ss_goroutine_grouping *grouping =
		ss_goroutine_grouping_new(snapshot, true);

	if (!grouping)
		return false;
	if (merged->read++ == 0)
		merged->first_read = index;
	merged->last_read = index;
	merged->unread = SS_MAX(merged->unread, ss_snapshot_goroutines_unread(snapshot));
	for (size_t i = 0; i < grouping->count; i++) {
		if (!add_group(work, index, &grouping->groups[i]))
			return false;
	}
	count_members(work, index);
	return true;
}

/* After the last snapshot. */
static void count_same(struct ss_merged_goroutine *item)
{
	size_t k = 0;

	for (size_t i = 0; i < item->presence.after && k < item->first.count;) {
		uint64_t id = item->members.items[i]->id;
		uint64_t first = item->first.items[k];
		item->same += id == first;
		i += id <= first;
		k += first <= id;
	}
}

static int compare(const void *a, const void *b)
{
	const struct ss_merged_goroutine *x = a;
	const struct ss_merged_goroutine *y = b;
	const struct ss_goroutine *first = x->members.items[0];
	const struct ss_goroutine *second = y->members.items[0];

	if (first->on_thread != second->on_thread)
		return first->on_thread ? 1 : -1;
	if (x->presence.most != y->presence.most)
		return x->presence.most > y->presence.most ? -1 : 1;
	if (first->id != second->id)
		return first->id > second->id ? 1 : -1;
	return ss_goroutine_compare_runtimes(first, second);
}

struct ss_merged_goroutines *
ss_merged_goroutines_new(const struct ss_snapshots *snapshots)
{
	_cleanup_(ss_merged_goroutines_cleanup) struct ss_merged_goroutines *merged =
		calloc(1, sizeof(*merged));
	__attribute__((cleanup(work_deinit))) struct work work = { .snapshots = snapshots,
								   .merged = merged };

	if (!merged)
		return NULL;
	for (size_t i = 0; i < snapshots->count; i++)
		merged->several |= ss_goroutines_of_several(snapshots->items[i]);
	for (size_t i = 0; i < snapshots->count; i++) {
		if (!add_snapshot(&work, i))
			return NULL;
	}
	merged->count = work.items.count;
	merged->items = take_ptr(work.items.items);
	work.items.count = 0;
	for (size_t i = 0; i < merged->count; i++) {
		struct ss_merged_goroutine *item = &merged->items[i];
		ss_presence_end(&item->presence, merged->read);
		merged->own_count += !item->members.items[0]->on_thread;
		count_same(item);
	}
	if (merged->count > 1)
		qsort(merged->items, merged->count, sizeof(*merged->items), compare);
	return take_ptr(merged);
}

const char *ss_merged_goroutines_denial(const struct ss_merged_goroutines *merged)
{
	if (merged->read != 1)
		return NULL;
	return merged->first_read == 0 ? "goroutines are not compared: they were not "
					 "read in the second snapshot" :
					 "goroutines are not compared: they were not "
					 "read in the first snapshot";
}

const char *ss_merged_goroutine_change(const struct ss_merged_goroutine *group)
{
	const size_t before = group->presence.before;
	const size_t after = group->presence.after;

	if (before == after)
		return before ? "unchanged" : "passing";
	if (before == 0)
		return "new";
	if (after == 0)
		return "gone";
	return before < after ? "grown" : "shrunk";
}
