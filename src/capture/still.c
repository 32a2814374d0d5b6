#include "capture/still.h"

#include <string.h>

#include "base/clock.h"
#include "capture/tasks.h"

/* The call that a thread is in now. One that was stopped in a call is back in it when it has got
   a CPU, for which it waits here. */
static bool read_call(const struct ss_still *still,
		      const struct ss_capture_thread *thread, struct ss_syscall_text *ret)
{
	for (;;) {
		if (!ss_target_read_task(still->target, thread->tid, "syscall",
					 still->text) ||
		    !ss_syscall_parse(still->text->bytes, still->text->size, ret))
			return false;
		if (ret->kind != SS_SYSCALL_RUNNING)
			return true;
		if (thread->syscall.number < 0 || *still->waits_left == 0)
			return false;
		--*still->waits_left;
		ss_sleep_ns(SS_NS_PER_MS);
	}
}

static bool is_same(const struct ss_still *still, const struct ss_capture_thread *thread)
{
	const struct ss_stack_copy *copy = &thread->stacks[SS_STACK_SP];
	uint64_t sp = ss_regs_sp(still->capture->arch, &thread->regs);
	size_t at = (size_t)SS_MIN(sp - copy->address, (uint64_t)copy->size);
	size_t size = ss_stack_copy_present(copy, at);
	_cleanup_free_ uint8_t *now = malloc(size + 1);
	struct ss_piece piece = { .address = sp, .bytes = now, .size = size };
	struct ss_syscall_text call;

	if (!now || size == 0 || !read_call(still, thread, &call) || call.sp != sp)
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
