#include "model/snapshot.h"

const char *ss_async_task_status_name(enum ss_async_task_status status)
{
	static const char *const names[] = {
		[SS_ASYNC_TASK_READY] = "ready",
		[SS_ASYNC_TASK_WAITING] = "waiting",
		[SS_ASYNC_TASK_RUNNING] = "running",
	};

	return (size_t)status < SS_ARRAY_SIZE(names) ? names[status] : "unknown";
}

size_t ss_snapshot_async_task_count(const struct ss_snapshot *snapshot)
{
	return snapshot->async_tasks.count;
}

const struct ss_async_task *ss_snapshot_async_task(const struct ss_snapshot *snapshot,
						   size_t index)
{
	return &snapshot->async_tasks.items[index];
}

const struct ss_frame *ss_snapshot_async_task_frame(const struct ss_snapshot *snapshot,
						    const struct ss_async_task *task,
						    size_t index)
{
	return &snapshot->stacks.items[task->stack_id].frames[index];
}

size_t ss_snapshot_async_tasks_changed(const struct ss_snapshot *snapshot)
{
	return snapshot->async_tasks_changed;
}

size_t ss_snapshot_async_tasks_unread(const struct ss_snapshot *snapshot)
{
	return snapshot->async_tasks_unread;
}

bool ss_snapshot_async_tasks_known(const struct ss_snapshot *snapshot)
{
	return snapshot->async_tasks_known;
}

const char *ss_snapshot_async_tasks_problem(const struct ss_snapshot *snapshot)
{
	return snapshot->async_tasks_problem;
}
