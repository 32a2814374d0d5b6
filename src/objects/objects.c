#include "objects/objects.h"

#include <string.h>
#include <time.h>

#include "objects/arguments.h"
#include "objects/descriptors.h"
#include "objects/holders.h"
#include "objects/processes.h"
#include "objects/sockets.h"

/* The capture, with its bytes, will be gone. False without memory. */
static bool add_lock(struct ss_facts *facts, const struct ss_capture *capture,
		     const struct ss_lock_copy *from, struct ss_thread_facts *thread)
{
	const struct ss_area *area = ss_capture_find_area(capture, from->address);

	thread->moment = from->moment;
	if (from->size == 0)
		return true;
	uint8_t *bytes = ss_facts_keep(facts, from->size);
	if (!bytes)
		return false;
	memcpy(bytes, from->bytes, from->size);
	thread->lock = (struct ss_memory_fact){ .address = from->address,
						.size = from->size,
						.bytes = bytes };
	thread->lock_shared = area && area->shared;
	return true;
}

static bool add_threads(struct ss_facts *facts, const struct ss_capture *capture)
{
	if (!ss_vector_reserve(&facts->threads, capture->threads.count))
		return false;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *from = &capture->threads.items[i];
		struct ss_thread_facts *thread = ss_vector_push(&facts->threads);
		if (!thread)
			return false;
		thread->tid = from->tid;
		thread->state = from->state;
		thread->worker = from->worker;
		thread->call = from->syscall;
		if (!add_lock(facts, capture, &from->lock, thread))
			return false;
	}
	return true;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts); /* cannot fail: these clocks exist */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The moment of the capture is known by one clock; here is how far the other is off. */
static void set_time(struct ss_facts *facts, const struct ss_process *process)
{
	uint64_t ago = now_ns(CLOCK_REALTIME) - process->time_ns;

	facts->pid = process->pid;
	facts->time_ns = process->time_ns;
	facts->monotonic_ns = now_ns(CLOCK_MONOTONIC) - ago;
}

void ss_objects_look(struct ss_capture *capture, const struct ss_target *target,
		     const struct ss_memory *memory)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();

	if (!facts || !add_threads(facts, capture))
		return;
	set_time(facts, &capture->process);
	ss_arguments_read(facts, capture, target, memory);
	ss_descriptors_read(facts, target);
	ss_sockets_read(facts, target);
	ss_processes_follow(facts, target);
	ss_processes_follow_locks(facts, target);
	/* What comes now is about descriptors of which all is known. */
	ss_arguments_check(facts, capture, target);
	ss_holders_find(facts, target);
	capture->facts = take_ptr(facts);
}
