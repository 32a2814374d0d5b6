#include "unwind/walk.h"

#include <string.h>

#include "base/error.h"
#include "base/intern.h"
#include "base/search.h"
#include "data/snapshot_fields.h"

struct ss_saved_stacks {
	struct ss_snapshot *snapshot; /* that gets the stacks */
	struct ss_snapshot *from;     /* as it was sent */
	bool native;
	uint32_t *stacks; /* of each of from: its number in snapshot */
};

void ss_saved_stacks_free(struct ss_saved_stacks *saved)
{
	if (!saved)
		return;
	ss_snapshot_free(saved->from);
	free(saved->stacks);
	free(saved);
}

static bool are_frames(const struct ss_stack *stack)
{
	return ss_all(stack->count, i, ss_frame_is_valid(&stack->frames[i]));
}

/* What the tables of fields do not say. Without a runtime nothing is saved. */
static bool is_valid(const struct ss_saved_stacks *saved)
{
	const struct ss_snapshot *from = saved->from;
	bool ok = from->modules.count == saved->snapshot->modules.count &&
		  from->runtimes.count > 0;

	for (size_t i = 0; ok && i < from->stacks.count; i++)
		ok = are_frames(&from->stacks.items[i]);
	for (size_t i = 0; ok && i < from->references.count; i++) {
		const struct ss_lock_reference *reference = &from->references.items[i];
		ok = reference->thread < from->tasks[SS_TASK_THREAD].count &&
		     reference->frame < from->tasks[SS_TASK_THREAD]
						.items[reference->thread]
						.frame_count &&
		     (!reference->in_code || reference->module_index >= 0);
	}
	return ok;
}

static const char *intern_text(void *strings, const char *text)
{
	return ss_intern_string(strings, text);
}

/* Takes over the texts of a struct. False without memory, as below. */
static bool adopt(const struct ss_saved_stacks *saved, const struct ss_schema *schema,
		  void *structure)
{
	return ss_schema_copy_texts(schema, structure, intern_text,
				    saved->snapshot->strings);
}

static bool adopt_stack(struct ss_saved_stacks *saved, size_t id)
{
	const struct ss_stack *stack = &saved->from->stacks.items[id];
	_cleanup_free_ struct ss_frame *frames =
		calloc(stack->count + 1, sizeof(*frames));
	size_t count = 0;

	for (size_t i = 0; frames && i < stack->count; i++) {
		struct ss_frame *frame = &frames[count];
		*frame = stack->frames[i];
		if (frame->replaced && !saved->native)
			continue;
		if (frame->module)
			frame->module =
				&saved->snapshot->modules.items[frame->module_index]->pub;
		if (!adopt(saved, &ss_frame_schema, frame))
			return false;
		count++;
	}
	return frames && ss_snapshot_add_stack(saved->snapshot, frames, count, stack->end,
					       &saved->stacks[id]);
}

static bool adopt_task(struct ss_saved_stacks *saved, const struct ss_task *from)
{
	struct ss_snapshot *snapshot = saved->snapshot;
	struct ss_task *task = ss_vector_push(&snapshot->tasks[SS_TASK_ASYNCIO]);
	size_t *awaited =
		ss_snapshot_alloc(snapshot, from->awaited_count, sizeof(*awaited));

	if (!task || !awaited)
		return false;
	*task = *from;
	if (task->awaited_count)
		memcpy(awaited, from->awaited, task->awaited_count * sizeof(*awaited));
	task->awaited = awaited;
	task->wait = NULL;
	task->stack_id = saved->stacks[from->stack_id];
	task->frame_count = snapshot->stacks.items[task->stack_id].count;
	return adopt(saved, &ss_task_schema, task);
}

static bool adopt_runtimes(struct ss_saved_stacks *saved)
{
	struct ss_snapshot *snapshot = saved->snapshot;
	const struct ss_snapshot *from = saved->from;

	for (size_t i = 0; i < from->runtimes.count; i++) {
		struct ss_runtime_info *slot = ss_vector_push(&snapshot->runtimes);
		if (!slot)
			return false;
		*slot = from->runtimes.items[i];
		if (!adopt(saved, &ss_runtime_info_schema, slot))
			return false;
	}
	for (size_t i = 0; i < from->runtime_locks.count; i++) {
		struct ss_runtime_lock *slot = ss_vector_push(&snapshot->runtime_locks);
		if (!slot)
			return false;
		*slot = from->runtime_locks.items[i];
	}
	for (size_t i = 0; i < from->tasks[SS_TASK_ASYNCIO].count; i++) {
		if (!adopt_task(saved, &from->tasks[SS_TASK_ASYNCIO].items[i]))
			return false;
	}
	snapshot->coverage[SS_TASK_ASYNCIO] = from->coverage[SS_TASK_ASYNCIO];
	return adopt(saved, &ss_coverage_schema, &snapshot->coverage[SS_TASK_ASYNCIO]);
}

bool ss_saved_stacks_open(const struct ss_capture *capture, struct ss_snapshot *snapshot,
			  bool native, bool earlier, struct ss_saved_stacks **ret)
{
	_cleanup_(ss_saved_stacks_cleanup) struct ss_saved_stacks *saved =
		calloc(1, sizeof(*saved));
	const struct ss_stack_block *block = earlier ? capture->earlier : capture->saved;
	const size_t size = earlier ? capture->earlier_size : capture->saved_size;
	uint64_t memory = ss_snapshot_memory(size);
	size_t at = 0;

	*ret = NULL;
	if (!saved)
		return false;
	if (!block || size == 0)
		return true;
	saved->snapshot = snapshot;
	saved->native = native;
	_cleanup_error_ struct ss_error *error =
		ss_snapshot_receive(block->bytes, size, &at, &memory, &saved->from);
	if (error)
		return ss_error_code(error) != SS_ERROR_NO_MEMORY;
	if (at != size || !is_valid(saved))
		return true;
	saved->stacks = calloc(saved->from->stacks.count + 1, sizeof(*saved->stacks));
	for (size_t i = 0; saved->stacks && i < saved->from->stacks.count; i++) {
		if (!adopt_stack(saved, i))
			return false;
	}
	if (!saved->stacks || (!earlier && !adopt_runtimes(saved)))
		return false;
	*ret = take_ptr(saved);
	return true;
}

bool ss_saved_stacks_has_whole(const struct ss_saved_stacks *saved, pid_t tid)
{
	const struct ss_task *thread = ss_snapshot_find_thread(saved->from, tid);

	return thread && !thread->native_reason && thread->missing == 0 &&
	       ss_end_is_outermost(thread->end);
}

/* Adds the locks to which a thread refers, by the frames that are left. */
static bool add_references(struct ss_saved_stacks *saved, const struct ss_task *from,
			   size_t thread)
{
	const size_t index = (size_t)(from - saved->from->tasks[SS_TASK_THREAD].items);
	const struct ss_frame *frames = saved->from->stacks.items[from->stack_id].frames;
	const struct ss_lock_reference *items = saved->from->references.items;
	const size_t count = saved->from->references.count;
	uint32_t frame = 0;
	uint32_t left = 0;

	for (size_t i = ss_lower_bound(count, k, items[k].thread < index);
	     i < count && items[i].thread == index; i++) {
		struct ss_lock_reference *slot =
			ss_vector_push(&saved->snapshot->references);
		if (!slot)
			return false;
		*slot = items[i];
		for (; frame < slot->frame; frame++)
			left += saved->native || !frames[frame].replaced;
		slot->frame = left;
		slot->thread = (uint32_t)thread;
		if (slot->call_file)
			slot->call_file = ss_intern_string(saved->snapshot->strings,
							   slot->call_file);
		if (items[i].call_file && !slot->call_file)
			return false;
	}
	return true;
}

bool ss_saved_stacks_apply(struct ss_saved_stacks *saved, struct ss_task *thread,
			   bool *found)
{
	struct ss_snapshot *snapshot = saved->snapshot;
	const struct ss_task *from = ss_snapshot_find_thread(saved->from, thread->tid);

	*found = from != NULL;
	if (!from)
		return true;
	thread->name = from->name;
	thread->reason = from->reason;
	thread->native_reason = from->native_reason;
	thread->end = from->end;
	thread->missing = from->missing;
	thread->runtime_id = from->runtime_id;
	thread->priority = from->priority;
	thread->daemon = from->daemon;
	thread->stack_id = saved->stacks[from->stack_id];
	thread->frame_count = snapshot->stacks.items[thread->stack_id].count;
	return adopt(saved, &ss_task_schema, thread) &&
	       add_references(saved, from,
			      (size_t)(thread - snapshot->tasks[SS_TASK_THREAD].items));
}
