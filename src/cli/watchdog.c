#include "cli/watchdog.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/stay.h"

enum {
	TIMEOUT_MS = 1000, /* unless told */
	/* All of a capture, from which the freeze is a small part, on a busy machine. */
	TIMES = 6,
	MORE_MS = 5000,
};

static atomic_int watched; /* pid, or 0 */
static timer_t timer;
static bool armed;

/* In a thread of the C library's, which may begin at the very moment of the end. */
static void give_up(union sigval pid)
{
	if (pid.sival_int != atomic_load(&watched))
		return;
	_cleanup_error_ struct ss_error *error = ss_error_with_remedy(
		ss_error_new(
			SS_ERROR_SYSTEM,
			"process %d could not be read: its memory, or the map of it, "
			"waits for something that does not answer (a file system, a "
			"userfaultfd); given up, and it runs on",
			pid.sival_int),
		"see /proc/%d/task/*/{stat,wchan,stack}, which do not need its memory",
		pid.sival_int);
	ss_failure_print(error);
	_exit(SS_STATUS_NOTHING);
}

void ss_watchdog_begin(pid_t pid, unsigned timeout_ms)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = give_up,
				  .sigev_value.sival_int = pid };
	unsigned long limit_ms =
		(timeout_ms ? timeout_ms : TIMEOUT_MS) * (unsigned long)TIMES + MORE_MS;
	const struct itimerspec limit = {
		.it_value = { .tv_sec = (time_t)(limit_ms / 1000),
			      .tv_nsec = (long)(limit_ms % 1000) * 1000000 },
	};

	struct ss_stay stay;
	ss_stay_begin(&stay);
	int created = timer_create(CLOCK_MONOTONIC, &event, &timer);
	ss_stay_end(&stay);
	if (created < 0)
		return; /* then nobody watches */
	atomic_store(&watched, pid);
	armed = timer_settime(timer, 0, &limit, NULL) == 0;
	if (!armed)
		(void)timer_delete(timer); /* it exists */
}

void ss_watchdog_end(void)
{
	atomic_store(&watched, 0);
	if (armed)
		(void)timer_delete(timer); /* it exists */
	armed = false;
}
