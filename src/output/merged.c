#include "output/merged.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/idtable.h"

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

void ss_merged_add_frame(struct ss_buffer *key, const struct ss_frame *frame,
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
	const struct ss_thread *thread = ss_snapshot_thread(snapshot, *group->members);
	pid_t tid = group->interprets ? thread->tid : 0;

	key->size = 0;
	ss_buffer_add(key, &tid, sizeof(tid));
	ss_buffer_add(key, &thread->end, sizeof(thread->end));
	for (size_t i = 0; i < thread->frame_count; i++)
		ss_merged_add_frame(key, ss_snapshot_frame(snapshot, thread, i),
				    snapshots->of_processes);
}

/* False without memory. */
static bool add_thread(struct work *work, uint32_t stack, const struct ss_thread *thread)
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
				ss_snapshot_thread(snapshot, group->members[i])))
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
