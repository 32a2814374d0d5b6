#include "objects/objects.h"

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
