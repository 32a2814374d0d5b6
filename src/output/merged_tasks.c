#include "output/merged_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/idtable.h"
#include "output/merged.h"
#include "output/task_group.h"

struct work {
	const struct ss_snapshots *snapshots;
	struct ss_merged_tasks *merged;
	struct ss_idtable groups; /* keys are those of write_key() */
	SS_VECTOR(struct ss_merged_task) items;
	struct ss_buffer key; /* scratch */
};

static void items_free(struct ss_merged_task *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ss_vector_free(&items[i].members);
	free(items);
}

static void work_deinit(struct work *work)
{
	items_free(work->items.items, work->items.count);
	ss_idtable_deinit(&work->groups);
	ss_buffer_deinit(&work->key);
}

void ss_merged_tasks_free(struct ss_merged_tasks *merged)
{
	if (!merged)
		return;
	items_free(merged->items, merged->count);
	free(merged);
}

static void write_key(struct work *work, const struct ss_snapshot *snapshot,
		      const struct ss_async_task *task)
{
	const char *type = task->awaited_type ? task->awaited_type : "";
	const bool awaits = task->awaited_count > 0;

	work->key.size = 0;
	ss_buffer_add(&work->key, &task->status, sizeof(task->status));
	ss_buffer_add(&work->key, &task->tid, sizeof(task->tid));
	ss_buffer_add(&work->key, &awaits, sizeof(awaits));
	ss_buffer_add(&work->key, type, strlen(type) + 1);
	for (size_t i = 0; i < task->frame_count; i++)
		ss_merged_add_frame(&work->key,
				    ss_snapshot_async_task_frame(snapshot, task, i),
				    false);
}

/* Tasks in the same places. Others may have the same coroutines, in other places. */
static bool add_group(struct work *work, size_t index, const struct ss_task_group *group)
{
	bool added = false;

	write_key(work, work->snapshots->items[index], *group->members);
	uint32_t id = work->key.failed ? SS_ID_NONE :
					 ss_idtable_add(&work->groups, work->key.bytes,
							work->key.size, &added);
	if (id == SS_ID_NONE || (added && !ss_vector_push(&work->items)))
		return false;
	struct ss_merged_task *item = &work->items.items[id];
	if (ss_presence_see(&item->presence, index))
		item->members.count = 0;
	for (size_t i = 0; i < group->count; i++) {
		const struct ss_async_task **slot = ss_vector_push(&item->members);
		if (!slot)
			return false;
		*slot = group->members[i];
	}
	return true;
}

static bool add_snapshot(struct work *work, size_t index)
{
	const struct ss_snapshot *snapshot = work->snapshots->items[index];
	const char *problem = ss_snapshot_async_tasks_problem(snapshot);
	struct ss_merged_tasks *merged = work->merged;
	_cleanup_(ss_task_grouping_cleanup) struct ss_task_grouping *grouping =
		ss_task_grouping_new(snapshot, true);

	if (!grouping)
		return false;
	merged->problem = problem ? problem : merged->problem;
	merged->changed =
		SS_MAX(merged->changed, ss_snapshot_async_tasks_changed(snapshot));
	merged->unread = SS_MAX(merged->unread, ss_snapshot_async_tasks_unread(snapshot));
	for (size_t i = 0; i < grouping->count; i++) {
		if (!add_group(work, index, &grouping->groups[i]))
			return false;
	}
	for (size_t i = 0; i < work->items.count; i++) {
		struct ss_merged_task *item = &work->items.items[i];
		ss_presence_count(&item->presence, index, item->members.count,
				  index == 0);
	}
	return true;
}

/* Tasks of a snapshot are in an array that is ascending by name. */
static int compare_members(const void *a, const void *b)
{
	const struct ss_async_task *x = *(const struct ss_async_task *const *)a;
	const struct ss_async_task *y = *(const struct ss_async_task *const *)b;

	return (x > y) - (x < y);
}

static int compare(const void *a, const void *b)
{
	const struct ss_merged_task *x = a;
	const struct ss_merged_task *y = b;

	if (x->presence.most != y->presence.most)
		return x->presence.most > y->presence.most ? -1 : 1;
	if (x->presence.snapshots != y->presence.snapshots)
		return x->presence.snapshots > y->presence.snapshots ? -1 : 1;
	if (x->presence.last != y->presence.last)
		return x->presence.last > y->presence.last ? -1 : 1;
	return compare_members(x->members.items, y->members.items);
}

struct ss_merged_tasks *ss_merged_tasks_new(const struct ss_snapshots *snapshots)
{
	_cleanup_(ss_merged_tasks_cleanup) struct ss_merged_tasks *merged =
		calloc(1, sizeof(*merged));
	__attribute__((cleanup(work_deinit))) struct work work = { .snapshots = snapshots,
								   .merged = merged };

	if (!merged)
		return NULL;
	for (size_t i = 0; i < snapshots->count; i++) {
		if (!add_snapshot(&work, i))
			return NULL;
	}
	merged->count = work.items.count;
	merged->items = take_ptr(work.items.items);
	work.items.count = 0;
	for (size_t i = 0; i < merged->count; i++) {
		struct ss_merged_task *item = &merged->items[i];
		ss_presence_end(&item->presence, snapshots->count);
		qsort(item->members.items, item->members.count,
		      sizeof(*item->members.items), compare_members);
	}
	if (merged->count > 1)
		qsort(merged->items, merged->count, sizeof(*merged->items), compare);
	return take_ptr(merged);
}
