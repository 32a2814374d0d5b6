#include "report/merged.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/idtable.h"
#include "report/group.h"

/* A snapshot has members. Snapshots come in ascending order. Returns whether that is new. */
static bool presence_see(struct ss_presence *presence, size_t snapshot)
{
	if (presence->snapshots > 0 && presence->last == snapshot)
		return false;
	presence->last = snapshot;
	presence->snapshots++;
	return true;
}

/* After each snapshot, how many members it has, if it has some. first: it is the first one. */
static void presence_count(struct ss_presence *presence, size_t snapshot, size_t members,
			   bool first)
{
	bool seen = presence->last == snapshot;
	size_t count = seen ? members : 0;

	presence->most = SS_MAX(presence->most, count);
	presence->least =
		seen && presence->snapshots == 1 ? count : SS_MIN(presence->least, count);
	if (first)
		presence->before = count;
	presence->after = count;
}

/* After all snapshots: how many they are. */
static void presence_end(struct ss_presence *presence, size_t snapshots)
{
	/* The members were missing before the first snapshot that has some. */
	if (presence->snapshots < snapshots)
		presence->least = 0;
}

void ss_presence_write_times(struct ss_json *json, const struct ss_presence *presence)
{
	ss_json_unsigned(json, "snapshots", presence->snapshots);
	ss_json_unsigned(json, "last", presence->last);
	ss_json_unsigned(json, "least", presence->least);
	ss_json_unsigned(json, "most", presence->most);
}

void ss_presence_write_counts(struct ss_json *json, const struct ss_presence *presence)
{
	ss_json_unsigned(json, "count_first", presence->before);
	ss_json_unsigned(json, "count_last", presence->after);
}

/* The key of a thread with a stack. */
struct membership {
	uint32_t stack;
	pid_t tid;
};

struct work {
	const struct ss_snapshots *snapshots;
	struct ss_merged *merged;
	struct ss_idtable stacks; /* keys are those of write_key() */
	struct ss_idtable memberships;
	struct ss_idtable tids;
	SS_VECTOR(uint32_t) places; /* by membership: index in the threads of the stack */
	SS_VECTOR(struct ss_merged_stack) items;
	struct ss_buffer key; /* scratch */
};

static void work_deinit(struct work *work)
{
	for (size_t i = 0; i < work->items.count; i++)
		ss_vector_free(&work->items.items[i].threads);
	ss_vector_free(&work->items);
	ss_vector_free(&work->places);
	ss_idtable_deinit(&work->stacks);
	ss_idtable_deinit(&work->memberships);
	ss_idtable_deinit(&work->tids);
	ss_buffer_deinit(&work->key);
}

void ss_merged_free(struct ss_merged *merged)
{
	if (!merged)
		return;
	for (size_t i = 0; i < merged->count; i++)
		ss_vector_free(&merged->items[i].threads);
	for (size_t i = 0; i < merged->grouping_count; i++)
		ss_grouping_free(merged->groupings[i]);
	free(merged->items);
	free(merged->groupings);
	free(merged);
}

static void add_text(struct ss_buffer *key, const char *text)
{
	ss_buffer_add(key, text, strlen(text) + 1);
}

/* Adds what tells frames apart: the function, and its file if it is of a runtime; without a name
   its address. */
static void merged_add_frame(struct ss_buffer *key, const struct ss_frame *frame,
			     bool with_module)
{
	const char *place = frame->module ? frame->module->path : frame->area;
	uint64_t offset = frame->module ? frame->offset : frame->area_offset;

	if (frame->symbol) {
		add_text(key, frame->symbol);
		/* Functions of runtimes have no module; many files have one of that name. */
		if (frame->kind != SS_FRAME_NATIVE)
			add_text(key, frame->file ? frame->file : "");
		else
			add_text(key, with_module && place ? place : "");
		return;
	}
	add_text(key, "");
	add_text(key, place ? place : "");
	ss_buffer_add(key, &offset, sizeof(offset));
}

static void write_key(struct ss_buffer *key, const struct ss_snapshots *snapshots,
		      size_t index, const struct ss_group *group)
{
	const struct ss_snapshot *snapshot = snapshots->items[index];
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, *group->members);
	pid_t tid = group->interprets ? thread->tid : 0;

	key->size = 0;
	ss_buffer_add(key, &tid, sizeof(tid));
	ss_buffer_add(key, &thread->end, sizeof(thread->end));
	for (size_t i = 0; i < thread->frame_count; i++)
		merged_add_frame(key, ss_snapshot_frame(snapshot, thread, i),
				 snapshots->of_processes);
}

/* False without memory. */
static bool add_thread(struct work *work, uint32_t stack, const struct ss_task *thread)
{
	const struct membership membership = { .stack = stack, .tid = thread->tid };
	struct ss_merged_stack *item = &work->items.items[stack];
	bool added = false;
	uint32_t id = ss_idtable_add(&work->memberships, &membership, sizeof(membership),
				     &added);

	if (id == SS_ID_NONE || ss_idtable_add(&work->tids, &thread->tid,
					       sizeof(thread->tid), NULL) == SS_ID_NONE)
		return false;
	if (added) {
		uint32_t *place = ss_vector_push(&work->places);
		struct ss_merged_thread *member = ss_vector_push(&item->threads);
		if (!place || !member)
			return false;
		*place = (uint32_t)item->threads.count - 1;
	}
	struct ss_merged_thread *member = &item->threads.items[work->places.items[id]];
	member->thread = thread;
	member->snapshots++;
	item->times++;
	item->states[thread->state & 0x7f]++;
	return true;
}

static bool add_group(struct work *work, size_t index, const struct ss_group *group)
{
	const struct ss_snapshot *snapshot = work->snapshots->items[index];
	bool added = false;

	write_key(&work->key, work->snapshots, index, group);
	uint32_t id = work->key.failed ? SS_ID_NONE :
					 ss_idtable_add(&work->stacks, work->key.bytes,
							work->key.size, &added);
	if (id == SS_ID_NONE || (added && !ss_vector_push(&work->items)))
		return false;
	struct ss_merged_stack *item = &work->items.items[id];
	if (added || group->class < item->class)
		item->class = group->class;
	item->snapshots += added || item->last != index;
	item->last = index;
	item->group = group;
	for (size_t i = 0; i < group->count; i++) {
		if (!add_thread(work, id,
				ss_snapshot_task(snapshot, SS_TASK_THREAD,
						 group->members[i])))
			return false;
	}
	return true;
}

static bool add_snapshot(struct work *work, size_t index)
{
	struct ss_merged *merged = work->merged;
	struct ss_grouping *grouping =
		ss_grouping_new(work->snapshots->items[index], true);

	if (!grouping)
		return false;
	merged->groupings[merged->grouping_count++] = grouping;
	for (size_t i = 0; i < grouping->count; i++) {
		if (!add_group(work, index, &grouping->groups[i]))
			return false;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct ss_merged_stack *x = a;
	const struct ss_merged_stack *y = b;
	pid_t first = x->threads.items[0].thread->tid;
	pid_t second = y->threads.items[0].thread->tid;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->times != y->times)
		return x->times > y->times ? -1 : 1;
	return (first > second) - (first < second);
}

struct ss_merged *ss_merged_new(const struct ss_snapshots *snapshots)
{
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		calloc(1, sizeof(*merged));
	__attribute__((cleanup(work_deinit))) struct work work = { .snapshots = snapshots,
								   .merged = merged };

	if (!merged)
		return NULL;
	merged->groupings = calloc(snapshots->count, sizeof(struct ss_grouping *));
	if (!merged->groupings)
		return NULL;
	for (size_t i = 0; i < snapshots->count; i++) {
		if (!add_snapshot(&work, i))
			return NULL;
	}
	merged->thread_count = work.tids.count;
	merged->count = work.items.count;
	merged->items = take_ptr(work.items.items);
	work.items.count = 0;
	if (merged->count > 1)
		qsort(merged->items, merged->count, sizeof(*merged->items), compare);
	return take_ptr(merged);
}

struct task_work {
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

static void task_work_deinit(struct task_work *work)
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

static void write_task_key(struct task_work *work, const struct ss_snapshot *snapshot,
			   const struct ss_task *task)
{
	const char *type = task->wait_reason ? task->wait_reason : "";
	const bool awaits = task->awaited_count > 0;

	work->key.size = 0;
	ss_buffer_add(&work->key, &task->status, sizeof(task->status));
	ss_buffer_add(&work->key, &task->tid, sizeof(task->tid));
	ss_buffer_add(&work->key, &awaits, sizeof(awaits));
	ss_buffer_add(&work->key, type, strlen(type) + 1);
	for (size_t i = 0; i < task->frame_count; i++)
		merged_add_frame(&work->key, ss_snapshot_frame(snapshot, task, i), false);
}

/* Tasks in the same places. Others may have the same coroutines, in other places. */
static bool add_task_group(struct task_work *work, size_t index,
			   const struct ss_task_group *group)
{
	bool added = false;

	write_task_key(work, work->snapshots->items[index], *group->members);
	uint32_t id = work->key.failed ? SS_ID_NONE :
					 ss_idtable_add(&work->groups, work->key.bytes,
							work->key.size, &added);
	if (id == SS_ID_NONE || (added && !ss_vector_push(&work->items)))
		return false;
	struct ss_merged_task *item = &work->items.items[id];
	if (presence_see(&item->presence, index))
		item->members.count = 0;
	for (size_t i = 0; i < group->count; i++) {
		const struct ss_task **slot = ss_vector_push(&item->members);
		if (!slot)
			return false;
		*slot = group->members[i];
	}
	return true;
}

static bool add_task_snapshot(struct task_work *work, size_t index)
{
	const struct ss_snapshot *snapshot = work->snapshots->items[index];
	const char *problem =
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->problem;
	struct ss_merged_tasks *merged = work->merged;
	_cleanup_(ss_task_grouping_cleanup) struct ss_task_grouping *grouping =
		ss_task_grouping_new(snapshot, true);

	if (!grouping)
		return false;
	merged->problem = problem ? problem : merged->problem;
	merged->changed =
		SS_MAX(merged->changed,
		       ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->changed);
	merged->unread =
		SS_MAX(merged->unread,
		       ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->unread);
	for (size_t i = 0; i < grouping->count; i++) {
		if (!add_task_group(work, index, &grouping->groups[i]))
			return false;
	}
	for (size_t i = 0; i < work->items.count; i++) {
		struct ss_merged_task *item = &work->items.items[i];
		presence_count(&item->presence, index, item->members.count, index == 0);
	}
	return true;
}

/* Tasks of a snapshot are in an array that is ascending by name. */
static int compare_members(const void *a, const void *b)
{
	const struct ss_task *x = *(const struct ss_task *const *)a;
	const struct ss_task *y = *(const struct ss_task *const *)b;

	return (x > y) - (x < y);
}

static int compare_tasks(const void *a, const void *b)
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
	__attribute__((cleanup(task_work_deinit))) struct task_work work = {
		.snapshots = snapshots, .merged = merged
	};

	if (!merged)
		return NULL;
	for (size_t i = 0; i < snapshots->count; i++) {
		if (!add_task_snapshot(&work, i))
			return NULL;
	}
	merged->count = work.items.count;
	merged->items = take_ptr(work.items.items);
	work.items.count = 0;
	for (size_t i = 0; i < merged->count; i++) {
		struct ss_merged_task *item = &merged->items[i];
		presence_end(&item->presence, snapshots->count);
		qsort(item->members.items, item->members.count,
		      sizeof(*item->members.items), compare_members);
	}
	if (merged->count > 1)
		qsort(merged->items, merged->count, sizeof(*merged->items),
		      compare_tasks);
	return take_ptr(merged);
}

struct goroutine_work {
	const struct ss_snapshots *snapshots;
	struct ss_merged_goroutines *merged;
	struct ss_idtable groups; /* keys are those of write_key() */
	SS_VECTOR(struct ss_merged_goroutine) items;
	struct ss_buffer key; /* scratch */
};

static void goroutine_items_free(struct ss_merged_goroutine *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ss_vector_free(&items[i].members);
		ss_vector_free(&items[i].first);
	}
	free(items);
}

static void goroutine_work_deinit(struct goroutine_work *work)
{
	goroutine_items_free(work->items.items, work->items.count);
	ss_idtable_deinit(&work->groups);
	ss_buffer_deinit(&work->key);
}

void ss_merged_goroutines_free(struct ss_merged_goroutines *merged)
{
	if (!merged)
		return;
	goroutine_items_free(merged->items, merged->count);
	free(merged);
}

static void write_goroutine_key(struct goroutine_work *work,
				const struct ss_snapshot *snapshot,
				const struct ss_task *goroutine)
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
		merged_add_frame(&work->key, ss_snapshot_frame(snapshot, goroutine, i),
				 false);
}

static bool add_members(struct ss_merged_goroutine *item, bool first,
			const struct ss_goroutine_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct ss_task **slot = ss_vector_push(&item->members);
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
static bool add_goroutine_group(struct goroutine_work *work, size_t index,
				const struct ss_goroutine_group *group)
{
	bool added = false;

	write_goroutine_key(work, work->snapshots->items[index], *group->members);
	uint32_t id = work->key.failed ? SS_ID_NONE :
					 ss_idtable_add(&work->groups, work->key.bytes,
							work->key.size, &added);
	if (id == SS_ID_NONE || (added && !ss_vector_push(&work->items)))
		return false;
	struct ss_merged_goroutine *item = &work->items.items[id];
	if (presence_see(&item->presence, index))
		item->members.count = 0;
	return add_members(item, index == work->merged->first_read, group);
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int compare_goroutine_members(const void *a, const void *b)
{
	const struct ss_task *x = *(const struct ss_task *const *)a;
	const struct ss_task *y = *(const struct ss_task *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

static void count_members(struct goroutine_work *work, size_t index)
{
	bool first = index == work->merged->first_read;

	for (size_t i = 0; i < work->items.count; i++) {
		struct ss_merged_goroutine *item = &work->items.items[i];
		presence_count(&item->presence, index, item->members.count, first);
		if (item->presence.last != index)
			continue;
		qsort(item->members.items, item->members.count,
		      sizeof(*item->members.items), compare_goroutine_members);
		if (first)
			qsort(item->first.items, item->first.count,
			      sizeof(*item->first.items), compare_ids);
	}
}

static bool add_goroutine_snapshot(struct goroutine_work *work, size_t index)
{
	const struct ss_snapshot *snapshot = work->snapshots->items[index];
	const char *problem =
		ss_snapshot_task_coverage(snapshot, SS_TASK_GOROUTINE)->problem;
	struct ss_merged_goroutines *merged = work->merged;

	merged->problem = problem ? problem : merged->problem;
	if (ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE) == 0)
		return true;
	_cleanup_(ss_goroutine_grouping_cleanup) struct ss_goroutine_grouping *grouping =
		ss_goroutine_grouping_new(snapshot, true);

	if (!grouping)
		return false;
	if (merged->read++ == 0)
		merged->first_read = index;
	merged->last_read = index;
	merged->unread =
		SS_MAX(merged->unread,
		       ss_snapshot_task_coverage(snapshot, SS_TASK_GOROUTINE)->unread);
	for (size_t i = 0; i < grouping->count; i++) {
		if (!add_goroutine_group(work, index, &grouping->groups[i]))
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

static int compare_goroutines(const void *a, const void *b)
{
	const struct ss_merged_goroutine *x = a;
	const struct ss_merged_goroutine *y = b;
	const struct ss_task *first = x->members.items[0];
	const struct ss_task *second = y->members.items[0];

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
	__attribute__((cleanup(goroutine_work_deinit))) struct goroutine_work work = {
		.snapshots = snapshots, .merged = merged
	};

	if (!merged)
		return NULL;
	for (size_t i = 0; i < snapshots->count; i++)
		merged->several |= ss_goroutines_of_several(snapshots->items[i]);
	for (size_t i = 0; i < snapshots->count; i++) {
		if (!add_goroutine_snapshot(&work, i))
			return NULL;
	}
	merged->count = work.items.count;
	merged->items = take_ptr(work.items.items);
	work.items.count = 0;
	for (size_t i = 0; i < merged->count; i++) {
		struct ss_merged_goroutine *item = &merged->items[i];
		presence_end(&item->presence, merged->read);
		merged->own_count += !item->members.items[0]->on_thread;
		count_same(item);
	}
	if (merged->count > 1)
		qsort(merged->items, merged->count, sizeof(*merged->items),
		      compare_goroutines);
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
