#include "cli/need.h"

#include <string.h>

#include "base/io.h"
#include "cli/sandbox.h"

/* More threads than there can be. */
enum { NEED_MAX = 1 << 22, SHARE_MS = 5000 };

SS_DEFINE_CLEANUP(struct ss_session, session, ss_session_free)
SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)

static const char *const steps[] = { "unwinding" };

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

static struct ss_error *work(void *data, struct ss_sandbox_board *board, FILE *out)
{
	const struct ss_interpretation *job = data;
	const struct ss_unwind_options unwind_options = {
		.size = sizeof(unwind_options),
		.max_frames = job->options->max_frames,
	};
	_cleanup_(session_cleanup) struct ss_session *session = NULL;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = ss_session_new(NULL, &session);

	(void)board;
	if (!error)
		error = ss_capture_unwind(job->capture, session, &unwind_options,
					  &snapshot);
	if (error)
		return error;
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		if (is_needed(snapshot, thread))
			(void)fwrite(&thread->tid, sizeof(thread->tid), 1, out);
	}
	return NULL;
}

static void read_tids(int fd, struct ss_need *ret)
{
	for (uint64_t at = 0; at < NEED_MAX; at++) {
		pid_t tid;
		if (ss_io_pread(fd, &tid, sizeof(tid), at * sizeof(tid)) != sizeof(tid))
			return;
		pid_t *slot = ss_vector_push(&ret->tids);
		if (!slot)
			return;
		*slot = tid;
	}
}

void ss_need_find(const struct ss_interpretation *job, struct ss_need *ret)
{
	_cleanup_(ss_sandbox_outcome_deinit) struct ss_sandbox_outcome outcome =
		SS_SANDBOX_NO_OUTCOME;
	const struct ss_sandbox sandbox = {
		.work = work,
		.data = (void *)job,
		.steps = steps,
		.step_count = SS_ARRAY_SIZE(steps),
		.timeout_ms = SHARE_MS,
		.confinement = ss_interpret_confinement(job, SHARE_MS),
	};
	_cleanup_error_ struct ss_error *error = ss_sandbox_run(&sandbox, &outcome);

	/* Without an answer the stacks stay as they are, each with the reason. */
	if (!error && !outcome.death && !outcome.error)
		read_tids(outcome.output, ret);
}

void ss_need_deinit(struct ss_need *need)
{
	ss_vector_free(&need->tids);
}
