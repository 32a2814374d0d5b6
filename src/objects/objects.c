#include "objects/objects.h"

#include <string.h>

/* The capture, with its bytes, will be gone. False without memory. */
static bool add_lock(struct ss_facts *facts, const struct ss_lock_copy *from,
		     struct ss_thread_facts *thread)
{
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
		thread->call = from->syscall;
		if (!add_lock(facts, &from->lock, thread))
			return false;
	}
	return true;
}

void ss_objects_look(struct ss_capture *capture, const struct ss_target *target,
		     const struct ss_memory *memory)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();

	(void)target;
	(void)memory;
	if (!facts || !add_threads(facts, capture))
		return;
	capture->facts = take_ptr(facts);
}
