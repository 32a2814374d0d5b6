#include "sample/thread_state.h"

enum { QUIET_MAX = UINT8_MAX };

void ss_thread_begin_tick(struct ss_sampled_thread *thread)
{
	thread->due = false;
	if (thread->quiet_ticks < QUIET_MAX)
		thread->quiet_ticks++;
}

bool ss_thread_update(struct ss_sampled_thread *thread, uint64_t count, uint64_t run_ns)
{
	bool ran = count != thread->seen_count || count == 0;

	if (thread->state == SS_THREAD_GONE)
		return false;
	thread->seen_count = count;
	thread->run_ns = run_ns;
	if (ran)
		thread->quiet_ticks = 0;
	if (ss_thread_is_unchanged(thread, count))
		return ran;
	if (thread->state == SS_THREAD_IDLE)
		thread->state = SS_THREAD_ACTIVE;
	thread->run_count = count;
	thread->due = true;
	return ran;
}

void ss_thread_end(struct ss_sampled_thread *thread)
{
	thread->state = SS_THREAD_GONE;
}

enum ss_thread_action ss_thread_begin_capture(struct ss_sampled_thread *thread,
					      bool blocked, bool fragile, uint64_t count)
{
	ss_area_check_clear(&thread->areas);
	if (thread->state == SS_THREAD_RETURNING) {
		bool back = blocked && count == thread->expected_count;
		thread->state = back ? SS_THREAD_IDLE : SS_THREAD_ACTIVE;
		if (!back)
			return SS_THREAD_CAPTURE;
		thread->run_count = count;
		thread->due = false;
		return SS_THREAD_SKIP;
	}
	if (thread->state == SS_THREAD_STOP_NEXT && blocked && !fragile &&
	    (count == thread->expected_count || count == thread->after_stop_count))
		return SS_THREAD_STOP;
	return SS_THREAD_CAPTURE;
}

void ss_thread_stop(struct ss_sampled_thread *thread, bool blocked, uint64_t count)
{
	/* The release puts it on a CPU once more. */
	if (thread->state == SS_THREAD_STOP_NEXT && blocked)
		thread->after_stop_count = count ? count + 1 : 0;
}

void ss_thread_end_capture(struct ss_sampled_thread *thread, bool stopped, bool still,
			   uint64_t count)
{
	if (thread->state == SS_THREAD_GONE ||
	    (thread->state == SS_THREAD_STOP_NEXT && stopped))
		return;
	thread->state = still ? SS_THREAD_IDLE : SS_THREAD_ACTIVE;
	if (still && count)
		thread->run_count = count;
}

void ss_thread_accept(struct ss_sampled_thread *thread, bool stopped, bool needs_register)
{
	thread->due = false;
	if (thread->state == SS_THREAD_STOP_NEXT) {
		bool returns = stopped && thread->after_stop_count != 0;
		thread->state = returns ? SS_THREAD_RETURNING : SS_THREAD_ACTIVE;
		thread->expected_count = thread->after_stop_count;
	} else if (thread->state == SS_THREAD_IDLE && needs_register && !stopped) {
		thread->state = SS_THREAD_STOP_NEXT;
		thread->expected_count = thread->run_count;
	}
	thread->after_stop_count = 0;
}

void ss_thread_reject(struct ss_sampled_thread *thread, bool retry)
{
	if (thread->state == SS_THREAD_GONE)
		return;
	thread->due = retry;
	/* After an accepted stop it would be skipped, being back in its call. */
	if (retry && thread->state != SS_THREAD_RETURNING)
		return;
	thread->state = SS_THREAD_ACTIVE;
	thread->after_stop_count = 0;
}

bool ss_thread_is_unchanged(const struct ss_sampled_thread *thread, uint64_t count)
{
	return thread->state == SS_THREAD_IDLE && count != 0 &&
	       count == thread->run_count;
}
