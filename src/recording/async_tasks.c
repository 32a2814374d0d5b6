/*
 * Reads the tasks of asyncio of recorded snapshots.
 */
#include "recording/format.h"
#include "recording/recording.h"

static const char *read_text(const struct ss_recording *recording, struct ss_scope *scope,
			     struct ss_cursor *cursor)
{
	const uint32_t number = ss_scope_read_text(scope, cursor);

	return number && !cursor->failed ? recording->texts.items[number - 1] : NULL;
}

bool ss_async_tasks_read(struct ss_recording *recording, struct ss_scope *scope,
			 struct ss_cursor *cursor)
{
	struct ss_async_task_list list = { .tick = ss_cursor_uleb128(cursor) };

	list.process = ss_locals_read(&scope->processes, cursor);
	list.changed = ss_cursor_index(cursor, UINT32_MAX);
	list.unread = ss_cursor_index(cursor, UINT32_MAX);
	list.problem = read_text(recording, scope, cursor);
	if (cursor->failed)
		return false;
	if (recording->task_lists.count >= SS_ASYNC_TASK_LISTS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	struct ss_async_task_list *slot = ss_vector_push(&recording->task_lists);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = list;
	return true;
}

/* A number is at least a byte. */
static bool read_awaited(struct ss_recording *recording, struct ss_cursor *cursor,
			 struct ss_kept_task *task)
{
	task->first = recording->awaited.count;
	task->awaited_count =
		ss_cursor_index(cursor, (size_t)(cursor->end - cursor->at) + 1);
	if (task->awaited_count > SS_AWAITED_MAX - recording->awaited.count)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	for (size_t i = 0; i < task->awaited_count && !cursor->failed; i++) {
		uint32_t *slot = ss_vector_push(&recording->awaited);
		if (!slot)
			return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		*slot = ss_cursor_index(cursor, SS_ASYNC_TASKS_MAX);
	}
	return !cursor->failed;
}

bool ss_async_task_read(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *cursor)
{
	struct ss_kept_task task = { .pub.tick = ss_cursor_uleb128(cursor) };
	const struct ss_locals *threads = &scope->segment->threads;

	task.pub.process = ss_locals_read(&scope->processes, cursor);
	const uint64_t flags = ss_cursor_uleb128(cursor);
	task.pub.address = ss_cursor_uleb128(cursor);
	task.pub.name = read_text(recording, scope, cursor);
	task.pub.status = (enum ss_async_task_status)ss_cursor_index(
		cursor, SS_ASYNC_TASK_RUNNING + 1);
	task.pub.awaited_type = read_text(recording, scope, cursor);
	const uint32_t thread = ss_cursor_index(cursor, threads->items.count + 1);
	task.pub.stack = ss_locals_read(&scope->segment->stacks, cursor);
	task.cycle_next = ss_cursor_index(cursor, SS_ASYNC_TASKS_MAX + 1);
	if (cursor->failed)
		return false;
	if (recording->tasks.count >= SS_ASYNC_TASKS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	if (!read_awaited(recording, cursor, &task))
		return false;
	task.pub.name = task.pub.name ? task.pub.name : "";
	task.pub.thread = thread ? threads->items.items[thread - 1] : UINT32_MAX;
	task.pub.awaits_all = flags & SS_TASK_AWAITS_ALL;
	struct ss_kept_task *slot = ss_vector_push(&recording->tasks);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = task;
	return true;
}

size_t ss_recording_task_count(const struct ss_recording *recording)
{
	return recording->tasks.count;
}

const struct ss_recorded_task *ss_recording_task(const struct ss_recording *recording,
						 size_t index)
{
	return &recording->tasks.items[index].pub;
}
