#include "cli/need.h"

#include "base/io.h"
#include "base/vector.h"

/* More threads than there can be. */
enum { NEED_MAX = 1 << 22 };

static bool has_guess(const struct ss_snapshot *snapshot, const struct ss_thread *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		if (ss_snapshot_frame(snapshot, thread, i)->source ==
		    SS_FROM_RETURN_ADDRESS)
			return true;
	}
	return false;
}

/* One in state D would not stop. */
static bool is_needed(const struct ss_snapshot *snapshot, const struct ss_thread *thread)
{
	if (thread->stopped_ns > 0 || thread->frame_count == 0 || thread->state == 'D')
		return false;
	return (thread->end != SS_END_ROOT && thread->end != SS_END_FRAMES &&
		thread->end != SS_END_LIMIT) ||
	       has_guess(snapshot, thread);
}

bool ss_need_is_any(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		if (is_needed(snapshot, ss_snapshot_thread(snapshot, i)))
			return true;
	}
	return false;
}

void ss_need_write(const struct ss_snapshot *snapshot, FILE *out)
{
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		if (is_needed(snapshot, thread))
			(void)fwrite(&thread->tid, sizeof(thread->tid), 1, out);
	}
}

void ss_need_complete(const struct ss_interpretation *job, int fd)
{
	SS_VECTOR(pid_t) tids = {};

	for (uint64_t at = 0; at < NEED_MAX; at++) {
		pid_t tid;
		if (ss_io_pread(fd, &tid, sizeof(tid), at * sizeof(tid)) != sizeof(tid))
			break;
		pid_t *slot = ss_vector_push(&tids);
		if (!slot)
			break;
		*slot = tid;
	}
	job->complete(job->complete_data, tids.items, tids.count);
	ss_vector_free(&tids);
}
