#include "cli/watchdog.h"

#include <pthread.h>
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
	LIMIT_MS = TIMEOUT_MS * TIMES + MORE_MS,
	EACH_MS = 1000,
	NS_PER_MS = 1000000,
};

static atomic_int watched; /* pid, or 0 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct ss_recorder *followed; /* which is there as long as it is set */
static unsigned looks;			   /* in a row, that found it at it for long */
static timer_t timer;
static bool armed;

static void give_up(pid_t pid, int status)
{
	_cleanup_error_ struct ss_error *error = ss_error_with_remedy(
		ss_error_new(
			SS_ERROR_SYSTEM,
			"process %d could not be read: its memory, or the map of it, "
			"waits for something that does not answer (a file system, a "
			"userfaultfd); given up, and it runs on",
			pid),
		"see /proc/%d/task/*/{stat,wchan,stack}, which do not need its memory",
		pid);
	ss_failure_print(error);
	_exit(status);
}

/* Both in a thread of the C library's, which may begin at the very moment of the end. */
static void expire(union sigval pid)
{
	if (pid.sival_int == atomic_load(&watched))
		give_up(pid.sival_int, SS_STATUS_NOTHING);
}

static void look(union sigval pid)
{
	/* None of these calls can fail. */
	(void)pthread_mutex_lock(&lock);
	uint64_t ms = followed ? ss_recorder_looking_ns(followed) / NS_PER_MS : 0;
	/* While this program stood still itself (SIGSTOP, a freezer) there were none. */
	looks = ms >= EACH_MS ? looks + 1 : 0;
	if (ms >= LIMIT_MS && looks >= LIMIT_MS / EACH_MS)
		give_up(pid.sival_int, SS_STATUS_PARTIAL);
	(void)pthread_mutex_unlock(&lock);
}

static void arm(pid_t pid, void (*function)(union sigval), const struct itimerspec *limit)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = function,
				  .sigev_value.sival_int = pid };
	struct ss_stay stay;

	ss_stay_begin(&stay);
	int created = timer_create(CLOCK_MONOTONIC, &event, &timer);
	ss_stay_end(&stay);
	if (created < 0)
		return; /* then nobody watches */
	armed = timer_settime(timer, 0, limit, NULL) == 0;
	if (!armed)
		(void)timer_delete(timer); /* it exists */
}

void ss_watchdog_begin(pid_t pid, unsigned timeout_ms)
{
	unsigned long limit_ms =
		(timeout_ms ? timeout_ms : TIMEOUT_MS) * (unsigned long)TIMES + MORE_MS;
	const struct itimerspec limit = {
		.it_value = { .tv_sec = (time_t)(limit_ms / 1000),
			      .tv_nsec = (long)(limit_ms % 1000) * 1000000 },
	};

	atomic_store(&watched, pid);
	arm(pid, expire, &limit);
}

static void set_followed(const struct ss_recorder *recorder)
{
	(void)pthread_mutex_lock(&lock);
	followed = recorder;
	(void)pthread_mutex_unlock(&lock);
}

void ss_watchdog_follow(pid_t pid, const struct ss_recorder *recorder)
{
	const struct timespec ts = { .tv_sec = EACH_MS / 1000 };
	const struct itimerspec each = { .it_value = ts, .it_interval = ts };

	looks = 0;
	set_followed(recorder);
	arm(pid, look, &each);
}

void ss_watchdog_end(void)
{
	atomic_store(&watched, 0);
	set_followed(NULL);
	if (armed)
		(void)timer_delete(timer); /* it exists */
	armed = false;
}
