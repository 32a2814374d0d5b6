#include "capture/result.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/search.h"
#include "data/pipeline.h"

bool ss_complete_accepts(void *data, pid_t tid, const char *name, char state)
{
	const struct ss_complete_filter *filter = data;

	(void)name;
	(void)state;
	if (!bsearch(&tid, filter->tids, filter->count, sizeof(tid), ss_compare_pids))
		return false;
	const struct ss_capture_thread *thread =
		ss_capture_find_thread(filter->capture, tid);
	return thread && thread->stopped_ns == 0;
}

/* The bytes of a stack above its stack pointer. */
static size_t used_part(const struct ss_arch *arch,
			const struct ss_capture_thread *thread, const uint8_t **ret)
{
	const struct ss_stack_copy *copy = &thread->stacks[0];
	uint64_t below = ss_regs_sp(arch, &thread->regs) - copy->address;

	*ret = copy->bytes + below;
	return below < copy->size ? copy->size - below : 0;
}

/* Whether the stack of a thread is unchanged: the thread has not run since, or has
   returned to the same frames. */
static bool is_unchanged(const struct ss_arch *arch, const struct ss_capture_thread *then,
			 const struct ss_capture_thread *now)
{
	const uint8_t *old = NULL;
	const uint8_t *new = NULL;

	if (ss_regs_pc(arch, &then->regs) != ss_regs_pc(arch, &now->regs) ||
	    ss_regs_sp(arch, &then->regs) != ss_regs_sp(arch, &now->regs))
		return false;
	size_t size = SS_MIN(used_part(arch, then, &old), used_part(arch, now, &new));
	return size > 0 && memcmp(old, new, size) == 0;
}

/* Whether all code is mapped at the same addresses: otherwise addresses of the later
   capture would be ambiguous in the earlier one. */
static bool same_code(const struct ss_capture *then, const struct ss_capture *now)
{
	for (size_t i = 0; i < now->areas.count; i++) {
		const struct ss_area *area = &now->areas.items[i];
		const struct ss_area *old = ss_capture_find_area(then, area->start);
		if (!(area->prot & PROT_EXEC))
			continue;
		if (!old || old->start != area->start || old->end != area->end ||
		    old->prot != area->prot || strcmp(old->name, area->name) != 0)
			return false;
	}
	return true;
}

static void take_stack(struct ss_capture_thread *thread,
		       const struct ss_capture_thread *now)
{
	memcpy(thread->stacks, now->stacks, sizeof(thread->stacks));
	thread->lock = now->lock;
	thread->lock.freeze_round = 0; /* stopped alone */
	thread->syscall = now->syscall;
	thread->state = now->state;
	thread->end = now->end;
	thread->consistent = true;
}

static void take_registers(struct ss_capture_thread *thread,
			   const struct ss_capture_thread *now)
{
	thread->regs = now->regs;
	thread->thread_pointer = now->thread_pointer;
	thread->not_started = now->not_started;
	thread->stopped_ns = now->stopped_ns;
	thread->run_count = 0;
	thread->reason = NULL;
}

static void add_up(struct ss_process *process, const struct ss_process *more)
{
	process->stopped_ns += more->stopped_ns;
	process->threads_stopped += more->threads_stopped;
	process->running_stopped_ns =
		SS_MAX(process->running_stopped_ns, more->running_stopped_ns);
}

bool ss_complete_has_moved(const struct ss_capture *capture,
			   const struct ss_capture *more)
{
	for (size_t i = 0; i < more->threads.count; i++) {
		const struct ss_capture_thread *now = &more->threads.items[i];
		const struct ss_capture_thread *then =
			ss_capture_find_thread(capture, now->tid);
		if (then && now->stopped_ns > 0 && now->regs.valid != 0 &&
		    !is_unchanged(capture->arch, then, now))
			return true;
	}
	return false;
}

void ss_complete_merge(struct ss_capture *capture, struct ss_capture *more)
{
	bool comparable = same_code(capture, more);

	capture->completed_in_place = true;
	for (size_t i = 0; i < more->threads.count; i++) {
		const struct ss_capture_thread *now = &more->threads.items[i];
		struct ss_capture_thread *thread =
			ss_capture_find_thread(capture, now->tid);
		if (!thread)
			continue;
		/* It must not be stopped: unwind it without those registers. */
		thread->fragile = thread->fragile || now->fragile;
		if (now->stopped_ns == 0 || now->regs.valid == 0)
			continue;
		bool still = is_unchanged(capture->arch, thread, now);
		/* The area of its stack may have grown meanwhile. */
		if (!still && (!comparable || now->stacks[0].size == 0))
			continue;
		if (!still) {
			take_stack(thread, now);
			capture->process.consistent = false;
			capture->completed_in_place = false;
		}
		take_registers(thread, now);
	}
	add_up(&capture->process, &more->process);
	more->complement = capture->complement; /* its arena holds some of the stacks */
	capture->complement = more;
}

/* What a completion in place has changed: a header, and for each thread a record. */
struct completion {
	uint64_t stopped_ns;
	uint64_t running_stopped_ns;
	uint32_t threads_stopped;
	uint32_t count;
};

struct completed_thread {
	pid_t tid;
	bool fragile;
	bool stopped; /* or it has no registers */
	bool not_started;
	uint64_t stopped_ns;
	uint64_t thread_pointer;
	struct ss_regs regs;
};

size_t ss_capture_copy_completion(const struct ss_capture *capture, void *ret, size_t max)
{
	const struct ss_capture *more = capture->complement;
	size_t count = more ? more->threads.count : 0;
	size_t size = sizeof(struct completion) + count * sizeof(struct completed_thread);
	struct completion header = {
		.stopped_ns = capture->process.stopped_ns,
		.running_stopped_ns = capture->process.running_stopped_ns,
		.threads_stopped = capture->process.threads_stopped,
		.count = (uint32_t)count,
	};

	if (!capture->completed_in_place || count == 0 || size > max)
		return 0;
	memcpy(ret, &header, sizeof(header));
	uint8_t *end = (uint8_t *)ret + sizeof(header);
	for (size_t i = 0; i < count; i++, end += sizeof(struct completed_thread)) {
		const struct ss_capture_thread *now = &more->threads.items[i];
		struct completed_thread thread;
		memset(&thread, 0, sizeof(thread)); /* the padding, too */
		thread.tid = now->tid;
		thread.fragile = now->fragile;
		thread.stopped = now->stopped_ns > 0 && now->regs.valid != 0;
		thread.not_started = now->not_started;
		thread.stopped_ns = now->stopped_ns;
		thread.thread_pointer = now->thread_pointer;
		thread.regs = now->regs;
		memcpy(end, &thread, sizeof(thread));
	}
	return size;
}

static void apply(struct ss_capture *capture, const struct completed_thread *now)
{
	struct ss_capture_thread *thread = ss_capture_find_thread(capture, now->tid);
	const struct ss_capture_thread stopped = {
		.regs = now->regs,
		.thread_pointer = now->thread_pointer,
		.not_started = now->not_started,
		.stopped_ns = now->stopped_ns,
	};

	if (!thread)
		return;
	thread->fragile |= now->fragile;
	if (now->stopped)
		take_registers(thread, &stopped);
}

bool ss_capture_apply_completion(struct ss_capture *capture, const void *bytes,
				 size_t size)
{
	struct completed_thread thread;
	struct completion header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if ((size - sizeof(header)) / sizeof(thread) != header.count)
		return false;
	const uint8_t *at = (const uint8_t *)bytes + sizeof(header);
	for (size_t i = 0; i < header.count; i++, at += sizeof(thread)) {
		memcpy(&thread, at, sizeof(thread));
		apply(capture, &thread);
	}
	capture->process.stopped_ns = header.stopped_ns;
	capture->process.running_stopped_ns = header.running_stopped_ns;
	capture->process.threads_stopped = header.threads_stopped;
	return true;
}
