#include "cli/registers.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vector.h"
#include "output/end_text.h"

static const char kind = 'T'; /* the first byte of a request */

bool ss_registers_are_needed(const struct ss_snapshot *snapshot,
			     const struct ss_thread *thread)
{
	if (thread->stopped_ns > 0 || thread->frame_count == 0 || thread->state == 'D')
		return false;
	return (thread->end != SS_END_ROOT && thread->end != SS_END_FRAMES &&
		thread->end != SS_END_LIMIT) ||
	       ss_end_has_guess(snapshot, thread);
}

struct ss_error *ss_registers_request(const struct ss_sandbox_attempt *attempt,
				      const struct ss_snapshot *snapshot, bool *ret)
{
	SS_VECTOR(pid_t) tids = {};
	struct ss_error *error = NULL;

	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot) && !error; i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		if (!ss_registers_are_needed(snapshot, thread))
			continue;
		pid_t *slot = ss_vector_push(&tids);
		if (slot)
			*slot = thread->tid;
		else
			error = ss_error_no_memory();
	}
	*ret = tids.count > 0;
	if (!error && tids.count)
		error = ss_sandbox_request(attempt, &kind, sizeof(kind));
	if (!error && tids.count)
		error = ss_sandbox_request(attempt, tids.items,
					   tids.count * sizeof(*tids.items));
	ss_vector_free(&tids);
	return error;
}

bool ss_registers_is_request(const void *bytes, size_t size)
{
	return size >= sizeof(kind) && *(const char *)bytes == kind;
}

pid_t *ss_registers_read_request(const void *bytes, size_t size, size_t *ret_count)
{
	size_t count = (size - sizeof(kind)) / sizeof(pid_t);
	pid_t *tids = calloc(count + 1, sizeof(*tids));

	if (!tids)
		return NULL;
	memcpy(tids, (const char *)bytes + sizeof(kind), count * sizeof(*tids));
	*ret_count = count;
	return tids;
}
