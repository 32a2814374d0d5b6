#include "capture/still.h"

#include <string.h>

#include "capture/tasks.h"

static bool is_same(const struct ss_still *still, const struct ss_capture_thread *thread)
{
	const struct ss_stack_copy *copy = &thread->stacks[SS_STACK_SP];
	uint64_t sp = ss_regs_sp(still->capture->arch, &thread->regs);
	size_t at = (size_t)SS_MIN(sp - copy->address, (uint64_t)copy->size);
	size_t size = ss_stack_copy_present(copy, at);
	_cleanup_free_ uint8_t *now = malloc(size + 1);
	struct ss_piece piece = { .address = sp, .bytes = now, .size = size };
	struct ss_syscall_text call;

	if (!now || size == 0 ||
	    !ss_target_read_task(still->target, thread->tid, "syscall", still->text) ||
	    !ss_syscall_parse(still->text->bytes, still->text->size, &call) ||
	    call.kind == SS_SYSCALL_RUNNING || call.sp != sp)
		return false;
	ss_process_memory_read_present(still->memory, &piece, 1);
	return piece.done == size && memcmp(now, copy->bytes + at, size) == 0;
}

bool ss_still_check(const struct ss_still *still, const struct ss_capture_thread *thread)
{
	if (thread->stopped_ns > 0)
		return is_same(still, thread);
	return thread->consistent && thread->run_count != 0 &&
	       ss_task_read_run_count(still->target, thread->tid, still->text) ==
		       thread->run_count;
}
