#include "report/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/search.h"

/* After each snapshot, how many members a group has in it. first: it is the first one. */
static void presence_count(struct ss_presence *presence, size_t count, bool first)
{
	presence->most = SS_MAX(presence->most, count);
	presence->least = count && presence->snapshots == 1 ?
				  count :
				  SS_MIN(presence->least, count);
	if (first)
		presence->before = count;
	presence->after = count;
}

/* The key of a task in a group. */
struct membership {
	uint64_t id;
	uint64_t group;
};

struct work {
	const struct ss_snapshots *snapshots;
	struct ss_merged *merged;
	struct ss_idtable groups; /* keys are those of write_key() */
	struct ss_idtable memberships;
	struct ss_idtable tids;
	SS_VECTOR(uint32_t) places; /* by membership: index in the members of the group */
	SS_VECTOR(struct ss_merged_group) items;
	struct ss_buffer key; /* scratch */
};

static void items_free(struct ss_merged_group *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ss_vector_free(&items[i].members);
		ss_vector_free(&items[i].tasks);
	}
	free(items);
}

static void work_deinit(struct work *work)
{
	items_free(work->items.items, work->items.count);
	ss_vector_free(&work->places);
	ss_idtable_deinit(&work->groups);
	ss_idtable_deinit(&work->memberships);
	ss_idtable_deinit(&work->tids);
	ss_buffer_deinit(&work->key);
}

void ss_merged_free(struct ss_merged *merged)
{
	if (!merged)
		return;
	items_free(merged->items, merged->count);
	for (size_t i = 0; i < merged->grouping_count; i++)
		ss_grouping_free(merged->groupings[i]);
	free(merged->groupings);
	free(merged);
}

static void add_text(struct ss_buffer *key, const char *text)
{
	ss_buffer_add(key, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* Adds what tells frames apart: the function, and its file if it is of a runtime; without a name
   its address. */
static void add_frame(struct ss_buffer *key, const struct ss_frame *frame,
		      bool with_module)
{
	const char *place = frame->module ? frame->module->path : frame->area;
	uint64_t offset = frame->module ? frame->offset : frame->area_offset;

	add_text(key, frame->symbol);
	if (!frame->symbol) {
		add_text(key, place);
		ss_buffer_add(key, &offset, sizeof(offset));
	} else if (frame->kind != SS_FRAME_NATIVE) {
		/* Functions of runtimes have no module; many files have one of that name. */
		add_text(key, frame->file);
	} else {
		add_text(key, with_module ? place : NULL);
	}
}

static void write_key(struct work *work, const struct ss_snapshot *snapshot,
		      const struct ss_group *group)
{
	const struct ss_task *task = *group->members;
	const bool waits = task->status == SS_STATUS_WAITING;
	/* Of goroutines that is found out only in moments in which no thread runs. */
	const bool with_endless = task->kind != SS_TASK_GOROUTINE ||
				  work->snapshots->kind == SS_SNAPSHOTS_ONE;
	const uint32_t numbers[] = {
		group->interprets || task->kind == SS_TASK_ASYNCIO ? (uint32_t)task->tid :
								     0,
		task->end,
		task->status,
		task->on_thread,
		task->awaited_count > 0,
		with_endless ? task->endless : 0,
	};

	work->key.size = 0;
	ss_buffer_add(&work->key, numbers, sizeof(numbers));
	add_text(&work->key, waits ? task->wait_reason : NULL);
	add_text(&work->key, waits ? task->object : NULL);
	add_text(&work->key, work->merged->several ? task->runtime : NULL);
	for (size_t i = 0; i < task->frame_count; i++)
		add_frame(&work->key, ss_snapshot_frame(snapshot, task, i),
			  work->snapshots->kind == SS_SNAPSHOTS_PROCESSES);
}

/* False without memory. */
static bool add_task(struct work *work, size_t index, uint32_t group,
		     const struct ss_task *task)
{
	const struct membership membership = { .id = task->id, .group = group };
	struct ss_merged_group *item = &work->items.items[group];
	const struct ss_task **slot = ss_vector_push(&item->tasks);
	bool added = false;

	if (!slot)
		return false;
	*slot = task;
	item->times++;
	item->states[task->state & 0x7f]++;
	if (work->snapshots->kind == SS_SNAPSHOTS_ONE)
		return true;
	uint32_t id = ss_idtable_add(&work->memberships, &membership, sizeof(membership),
				     &added);
	if (id == SS_ID_NONE)
		return false;
	if (task->kind == SS_TASK_THREAD &&
	    ss_idtable_add(&work->tids, &task->tid, sizeof(task->tid), NULL) ==
		    SS_ID_NONE)
		return false;
	if (added) {
		uint32_t *place = ss_vector_push(&work->places);
		struct ss_merged_member *member = ss_vector_push(&item->members);
		if (!place || !member)
			return false;
		*place = (uint32_t)item->members.count - 1;
		member->first = index == work->merged->first_read;
	}
	struct ss_merged_member *member = &item->members.items[work->places.items[id]];
	member->task = task;
	member->last = index;
	member->snapshots++;
	return true;
}

static bool add_group(struct work *work, size_t index, const struct ss_group *group)
{
	uint32_t id = (uint32_t)work->items.count;
	bool added = true;

	if (work->snapshots->kind != SS_SNAPSHOTS_ONE) {
		write_key(work, work->snapshots->items[index], group);
		id = work->key.failed ? SS_ID_NONE :
					ss_idtable_add(&work->groups, work->key.bytes,
						       work->key.size, &added);
	}
	if (id == SS_ID_NONE || (added && !ss_vector_push(&work->items)))
		return false;
	struct ss_merged_group *item = &work->items.items[id];
	if (added || group->class < item->class)
		item->class = group->class;
	if (added || item->presence.last != index) {
		item->presence.last = index;
		item->presence.snapshots++;
		item->tasks.count = 0;
	}
	item->group = group;
	for (size_t i = 0; i < group->count; i++) {
		if (!add_task(work, index, id, group->members[i]))
			return false;
	}
	return true;
}

/* Tasks of a snapshot are in an array. */
static int compare_tasks(const void *a, const void *b)
{
	const struct ss_task *x = *(const struct ss_task *const *)a;
	const struct ss_task *y = *(const struct ss_task *const *)b;

	return SS_COMPARE(x, y);
}

static void count_members(struct work *work, size_t index)
{
	const struct ss_merged *merged = work->merged;

	for (size_t i = 0; i < work->items.count; i++) {
		struct ss_merged_group *item = &work->items.items[i];
		bool seen = item->presence.last == index;
		presence_count(&item->presence, seen ? item->tasks.count : 0,
			       index == merged->first_read);
		if (seen)
			qsort(item->tasks.items, item->tasks.count,
			      sizeof(*item->tasks.items), compare_tasks);
	}
}

static bool add_snapshot(struct work *work, size_t index, bool merge)
{
	const struct ss_snapshot *snapshot = work->snapshots->items[index];
	struct ss_merged *merged = work->merged;
	const enum ss_task_kind kind = merged->kind;
	const struct ss_task_coverage *coverage =
		ss_snapshot_task_coverage(snapshot, kind);

	merged->problem = coverage->problem ? coverage->problem : merged->problem;
	merged->changed = SS_MAX(merged->changed, coverage->changed);
	merged->unread = SS_MAX(merged->unread, coverage->unread);
	if (kind != SS_TASK_THREAD && !coverage->known &&
	    ss_snapshot_task_count(snapshot, kind) == 0)
		return true;
	struct ss_grouping *grouping = ss_grouping_new(snapshot, kind, merge);
	if (!grouping)
		return false;
	merged->groupings[merged->grouping_count++] = grouping;
	if (merged->read++ == 0)
		merged->first_read = index;
	merged->last_read = index;
	for (size_t i = 0; i < grouping->count; i++) {
		if (!add_group(work, index, &grouping->groups[i]))
			return false;
	}
	count_members(work, index);
	return true;
}

/* After the last snapshot. */
static void finish_group(struct ss_merged *merged, struct ss_merged_group *item)
{
	/* The members were missing before the first snapshot that has some. */
	if (item->presence.snapshots < merged->read)
		item->presence.least = 0;
	merged->own_count += !(*item->group->members)->on_thread;
	for (size_t i = 0; i < item->members.count; i++)
		item->same += item->members.items[i].first &&
			      item->members.items[i].last == merged->last_read;
}

static int compare_groups(const void *a, const void *b, void *data)
{
	const struct work *work = data;
	const bool few_first = work->snapshots->kind == SS_SNAPSHOTS_PROCESSES;
	const struct ss_merged_group *x = a;
	const struct ss_merged_group *y = b;
	const struct ss_task *first = x->tasks.items[0];
	const struct ss_task *second = y->tasks.items[0];
	const bool threads = first->kind == SS_TASK_THREAD;

	return SS_COMPARE(x->class, y->class) ?:
	       SS_COMPARE(first->on_thread, second->on_thread) ?:
	       (few_first ? SS_COMPARE(x->times, y->times) : 0) ?:
	       (threads ? SS_COMPARE(y->times, x->times) :
			  SS_COMPARE(y->presence.most, x->presence.most)) ?:
	       (threads ? SS_COMPARE(x->members.items[0].task->tid,
				  y->members.items[0].task->tid) :
			  0) ?:
	       SS_COMPARE(y->presence.snapshots, x->presence.snapshots) ?:
	       SS_COMPARE(y->presence.last, x->presence.last) ?:
	       SS_COMPARE(first, second);
}

struct ss_merged *ss_merged_new(const struct ss_snapshots *snapshots,
				enum ss_task_kind kind, bool merge)
{
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		calloc(1, sizeof(*merged));
	__attribute__((cleanup(work_deinit))) struct work work = { .snapshots = snapshots,
								   .merged = merged };

	if (!merged)
		return NULL;
	merged->kind = kind;
	merged->groupings = calloc(snapshots->count, sizeof(struct ss_grouping *));
	if (!merged->groupings)
		return NULL;
	for (size_t i = 0; i < snapshots->count && kind == SS_TASK_GOROUTINE; i++)
		merged->several |= ss_tasks_of_several(snapshots->items[i]);
	for (size_t i = 0; i < snapshots->count; i++) {
		if (!add_snapshot(&work, i, merge))
			return NULL;
	}
	merged->thread_count = work.tids.count;
	merged->count = work.items.count;
	merged->items = take_ptr(work.items.items);
	work.items.count = 0;
	for (size_t i = 0; i < merged->count; i++)
		finish_group(merged, &merged->items[i]);
	if (merged->count > 1 && snapshots->kind != SS_SNAPSHOTS_ONE)
		qsort_r(merged->items, merged->count, sizeof(*merged->items),
			compare_groups, &work);
	return take_ptr(merged);
}

const char *ss_merged_denial(const struct ss_merged *merged)
{
	if (merged->read != 1)
		return NULL;
	return merged->first_read == 0 ? "goroutines are not compared: they were not "
					 "read in the second snapshot" :
					 "goroutines are not compared: they were not "
					 "read in the first snapshot";
}

const char *ss_merged_change(const struct ss_merged_group *group)
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
