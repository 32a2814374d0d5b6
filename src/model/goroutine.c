#include "model/snapshot.h"

const char *ss_goroutine_status_name(enum ss_goroutine_status status)
{
	static const char *const names[] = {
		[SS_GOROUTINE_RUNNABLE] = "runnable",
		[SS_GOROUTINE_RUNNING] = "running",
		[SS_GOROUTINE_SYSCALL] = "syscall",
		[SS_GOROUTINE_WAITING] = "waiting",
		[SS_GOROUTINE_PREEMPTED] = "preempted",
		[SS_GOROUTINE_COPYSTACK] = "copystack",
	};

	return (size_t)status < SS_ARRAY_SIZE(names) ? names[status] : "unknown";
}

size_t ss_snapshot_goroutine_count(const struct ss_snapshot *snapshot)
{
	return snapshot->goroutines.count;
}

const struct ss_goroutine *ss_snapshot_goroutine(const struct ss_snapshot *snapshot,
						 size_t index)
{
	return &snapshot->goroutines.items[index];
}

const struct ss_frame *ss_snapshot_goroutine_frame(const struct ss_snapshot *snapshot,
						   const struct ss_goroutine *goroutine,
						   size_t index)
{
	return &snapshot->stacks.items[goroutine->stack_id].frames[index];
}

size_t ss_snapshot_goroutines_unread(const struct ss_snapshot *snapshot)
{
	return snapshot->goroutines_unread;
}

const char *ss_snapshot_goroutine_problem(const struct ss_snapshot *snapshot)
{
	return snapshot->goroutine_problem;
}
