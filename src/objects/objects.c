#include "objects/objects.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "objects/arguments.h"
#include "objects/descriptors.h"
#include "objects/holders.h"
#include "objects/processes.h"
#include "objects/sockets.h"

/* Copies the lock word, since facts outlive the capture. Returns false if memory is
   exhausted. */
static bool add_lock(struct ss_facts *facts, const struct ss_capture *capture,
		     const struct ss_lock_copy *from, struct ss_thread_facts *thread)
{
	const struct ss_area *area = ss_capture_find_area(capture, from->address);

	thread->freeze_round = from->freeze_round;
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

/* In another time namespace CLOCK_MONOTONIC differs. */
static bool has_our_clock(const struct ss_target *target)
{
	struct stat ours;
	struct stat theirs;

	if (stat("/proc/self/ns/time", &ours) != 0) /* before Linux 5.6 */
		return true;
	return fstatat(target->proc_fd, "ns/time", &theirs, 0) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* Converts the time of the capture from CLOCK_REALTIME to CLOCK_MONOTONIC. */
static void set_time(struct ss_facts *facts, const struct ss_process *process,
		     const struct ss_target *target)
{
	uint64_t ago = ss_clock_ns(CLOCK_REALTIME) - process->time_ns;

	facts->pid = process->pid;
	facts->time_ns = process->time_ns;
	if (has_our_clock(target))
		facts->monotonic_ns = ss_now_ns() - ago;
}

void ss_objects_collect(struct ss_capture *capture, const struct ss_target *target,
			const struct ss_process_memory *memory)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();

	if (!facts || !add_threads(facts, capture))
		return;
	set_time(facts, &capture->process, target);
	ss_arguments_read(facts, capture, target, memory);
	ss_descriptors_read(facts, target);
	ss_sockets_read(facts, target);
	ss_processes_find(facts, target);
	ss_processes_find_lock_owners(facts, target);
	/* The rest needs the complete descriptors. */
	ss_arguments_check(facts, capture, target);
	ss_holders_find(facts, target);
	capture->facts = take_ptr(facts);
}
