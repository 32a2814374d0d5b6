/*
 * Tasks of asyncio for the snapshots of view_sample.h.
 */
#ifndef SS_TESTS_TASK_SAMPLE_H
#define SS_TESTS_TASK_SAMPLE_H

#include "view_sample.h"

enum { SAMPLE_LOOP = 100 };

/* A coroutine in its file. */
static inline struct ss_frame sample_coroutine(const char *name, uint32_t line)
{
	return (struct ss_frame){ .module_index = -1,
				  .kind = SS_FRAME_PYTHON,
				  .source = SS_FROM_RUNTIME,
				  .symbol = name,
				  .file = "/srv/shop.py",
				  .line = line };
}

/* A task in a line of this coroutine, which "main" awaits in line 9. */
static inline struct ss_task *sample_add_task(struct ss_snapshot *snapshot,
					      const char *name, uint64_t address,
					      enum ss_task_status status,
					      const char *coroutine, uint32_t line)
{
	const struct ss_frame frames[] = { sample_coroutine(coroutine, line),
					   sample_coroutine("main", 9) };
	struct ss_task *task = ss_vector_push(&snapshot->tasks[SS_TASK_ASYNCIO]);

	assert_non_null(task);
	*task = (struct ss_task){
		.kind = SS_TASK_ASYNCIO,
		.name = name,
		.id = address,
		.status = status,
		.wait_reason = status == SS_STATUS_WAITING ? "Future" : NULL,
		.tid = SAMPLE_LOOP,
		.frame_count = SS_ARRAY_SIZE(frames),
	};
	assert_true(ss_snapshot_add_stack(snapshot, frames, SS_ARRAY_SIZE(frames),
					  SS_END_ROOT, &task->stack_id));
	return task;
}

#endif
