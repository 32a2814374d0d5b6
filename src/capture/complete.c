#include "capture/complete.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int ss_complete_compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Threads of a capture are in the order of their ids. */
static int compare_thread(const void *key, const void *item)
{
	const struct ss_capture_thread *thread = item;

	return ss_complete_compare_tids(key, &thread->tid);
}

static struct ss_capture_thread *find_thread(const struct ss_capture *capture, pid_t tid)
{
	return capture->threads.count ?
		       bsearch(&tid, capture->threads.items, capture->threads.count,
			       sizeof(*capture->threads.items), compare_thread) :
		       NULL;
}

bool ss_complete_wants(void *data, pid_t tid, const char *name, char state)
{
	const struct ss_wanted *wanted = data;

	(void)name;
	(void)state;
	if (!bsearch(&tid, wanted->tids, wanted->count, sizeof(tid),
		     ss_complete_compare_tids))
		return false;
	const struct ss_capture_thread *thread = find_thread(wanted->capture, tid);
	return thread && thread->stopped_ns == 0;
}

/* The bytes of a stack from its pointer on. */
static size_t live_part(const struct ss_capture_thread *thread, const uint8_t **ret)
{
	const struct ss_stack_copy *copy = &thread->stacks[0];
	uint64_t below = ss_regs_sp(&thread->regs) - copy->address;

	*ret = copy->bytes + below;
	return below < copy->size ? copy->size - below : 0;
}

/* Whether a thread stands where it stood: it has not moved since, or it has come back to
   the very same frames. */
static bool stands_still(const struct ss_capture_thread *then,
			 const struct ss_capture_thread *now)
{
	const uint8_t *old = NULL;
	const uint8_t *new = NULL;

	if (ss_regs_pc(&then->regs) != ss_regs_pc(&now->regs) ||
	    ss_regs_sp(&then->regs) != ss_regs_sp(&now->regs))
		return false;
	size_t size = SS_MIN(live_part(then, &old), live_part(now, &new));
	return size > 0 && memcmp(old, new, size) == 0;
}

/* Whether all code lies where it lay: else addresses of the later capture would mean
   something else in the earlier one. */
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
	thread->lock.moment = 0; /* nobody stood still with it */
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
	thread->newborn = now->newborn;
	thread->stopped_ns = now->stopped_ns;
	thread->reason = NULL;
}

static void add_up(struct ss_process *process, const struct ss_process *more)
{
	process->stopped_ns += more->stopped_ns;
	process->threads_stopped += more->threads_stopped;
	process->running_stopped_ns =
		SS_MAX(process->running_stopped_ns, more->running_stopped_ns);
}

void ss_complete_merge(struct ss_capture *capture, struct ss_capture *more)
{
	bool comparable = same_code(capture, more);

	for (size_t i = 0; i < more->threads.count; i++) {
		const struct ss_capture_thread *now = &more->threads.items[i];
		struct ss_capture_thread *thread = find_thread(capture, now->tid);
		if (!thread || now->stopped_ns == 0 || now->regs.valid == 0)
			continue;
		bool still = stands_still(thread, now);
		if (!still && !comparable)
			continue;
		if (!still) {
			take_stack(thread, now);
			capture->process.consistent = false;
		}
		take_registers(thread, now);
	}
	add_up(&capture->process, &more->process);
	more->complement = capture->complement; /* some stacks lie in its arena */
	capture->complement = more;
}
