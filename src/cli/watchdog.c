#include "cli/watchdog.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/failure.h"
#include "base/clock.h"
#include "base/cpu_pin.h"
#include "sample/recorder.h"
#include "stacksnap/record.h"

enum {
	TIMEOUT_MS = 1000, /* default of --timeout */
	/* A whole capture on a busy machine; the freeze is a small part of it. */
	FACTOR = 6,
	EXTRA_MS = 5000,
	LIMIT_MS = TIMEOUT_MS * FACTOR + EXTRA_MS,
	/* Without a CPU, too: something may wait for this program. */
	LAST_FACTOR = 4,
	CHECK_MS = 1000,
	NS_PER_MS = 1000000,
};

static atomic_int watched;    /* pid, or 0 */
static atomic_ullong last_ns; /* when the last limit of the watched capture ends */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct ss_recorder *watched_recorder; /* or NULL; guarded by lock */
static unsigned slow_checks; /* consecutive checks during one slow read */
static timer_t timer;
static bool armed;

/* What the threads of this program, but the one that asks, have got of the CPUs by a time. */
struct cpu_wait {
	uint64_t now_ns;
	uint64_t run_ns;
	uint64_t wait_ns; /* for a CPU. The kernel adds a wait when it ends, */
	bool runnable;	  /* so also: whether one waits or runs now */
};

static struct cpu_wait measured; /* last; 0: not yet; guarded by lock */

static FILE *open_of_thread(const char *tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/%s", tid, name);
	return fopen(path, "re");
}

/* Adds nothing for a thread that has ended. */
static void add_thread(const char *tid, struct cpu_wait *to)
{
	uint64_t run_ns = 0;
	uint64_t wait_ns = 0;
	char state = '?';
	FILE *times = open_of_thread(tid, "schedstat");
	FILE *status = open_of_thread(tid, "stat");

	if (times && fscanf(times, "%" SCNu64 " %" SCNu64, &run_ns, &wait_ns) == 2) {
		to->run_ns += run_ns;
		to->wait_ns += wait_ns;
	}
	/* The names of our threads have no parenthesis. */
	if (status && fscanf(status, "%*d (%*[^)]) %c", &state) == 1)
		to->runnable |= state == 'R';
	if (times)
		(void)fclose(times);
	if (status)
		(void)fclose(status);
}

static struct cpu_wait measure_cpu_wait(void)
{
	struct cpu_wait ret = { .now_ns = ss_now_ns() };
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	pid_t self = gettid();

	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != self)
			add_thread(entry->d_name, &ret);
	}
	if (tasks)
		(void)closedir(tasks);
	return ret;
}

/* Whether this program is slow because it seldom gets a CPU, rather than blocked: for at least half
   of the time since the call before. Of the first call it is not known, and true. */
static bool lacks_cpu(void)
{
	struct cpu_wait before = measured;

	measured = measure_cpu_wait();
	uint64_t half_ns = (measured.now_ns - before.now_ns) / 2;
	if (before.now_ns == 0)
		return true;
	return measured.wait_ns >= before.wait_ns + half_ns ||
	       (measured.runnable && measured.run_ns < before.run_ns + half_ns);
}

static struct ss_error *error_of_no_cpu(pid_t pid)
{
	return ss_error_with_remedy(
		ss_error_new(
			SS_ERROR_SYSTEM,
			"cannot read process %d in time: stacksnap has waited for a CPU "
			"nearly all the time; giving up, the process continues",
			pid),
		"raise the priority or the CPU quota of stacksnap");
}

static struct ss_error *error_of_blocked(pid_t pid)
{
	return ss_error_with_remedy(
		ss_error_new(
			SS_ERROR_SYSTEM,
			"cannot read process %d: access to its memory or memory map "
			"blocks on "
			"something that does not answer (a file system, a userfaultfd); "
			"giving up, the process continues",
			pid),
		"see /proc/%d/task/*/{stat,wchan,stack}: these do not access its memory",
		pid);
}

/* Ends this program, which has exceeded a limit; one that only lacks a CPU, if the limit is the
   last. lock must be held. */
static void give_up(pid_t pid, bool is_last, int status)
{
	bool waits_for_cpu = lacks_cpu();

	if (waits_for_cpu && !is_last)
		return;
	_cleanup_error_ struct ss_error *error = waits_for_cpu ? error_of_no_cpu(pid) :
								 error_of_blocked(pid);
	ss_failure_print(error);
	_exit(status);
}

/* expire() and check() run in a thread of the C library, which may still start while
   ss_watchdog_end() runs. */
static void expire(union sigval pid)
{
	(void)pthread_mutex_lock(&lock);
	if (pid.sival_int == atomic_load(&watched))
		give_up(pid.sival_int, ss_now_ns() >= atomic_load(&last_ns),
			SS_STATUS_NOTHING);
	(void)pthread_mutex_unlock(&lock);
}

static void check(union sigval pid)
{
	/* None of these calls can fail. */
	(void)pthread_mutex_lock(&lock);
	uint64_t ms =
		watched_recorder ? ss_recorder_read_ns(watched_recorder) / NS_PER_MS : 0;
	/* The count excludes time in which stacksnap itself was stopped (SIGSTOP, freezer). */
	slow_checks = ms >= CHECK_MS ? slow_checks + 1 : 0;
	if (slow_checks == 0)
		measured = (struct cpu_wait){};
	if (ms >= LIMIT_MS && slow_checks >= LIMIT_MS / CHECK_MS)
		give_up(pid.sival_int, slow_checks >= LAST_FACTOR * (LIMIT_MS / CHECK_MS),
			SS_STATUS_PARTIAL);
	(void)pthread_mutex_unlock(&lock);
}

static void arm(pid_t pid, void (*function)(union sigval), const struct itimerspec *limit)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = function,
				  .sigev_value.sival_int = pid };
	struct ss_cpu_pin pin;

	ss_cpu_pin_begin(&pin);
	int created = timer_create(CLOCK_MONOTONIC, &event, &timer);
	ss_cpu_pin_end(&pin);
	if (created < 0)
		return; /* without a watchdog */
	armed = timer_settime(timer, 0, limit, NULL) == 0;
	if (!armed)
		(void)timer_delete(timer); /* it exists */
}

void ss_watchdog_begin(pid_t pid, unsigned timeout_ms)
{
	unsigned long limit_ms =
		(timeout_ms ? timeout_ms : TIMEOUT_MS) * (unsigned long)FACTOR + EXTRA_MS;
	const struct itimerspec limit = {
		.it_value = { .tv_sec = (time_t)(limit_ms / 1000),
			      .tv_nsec = (long)(limit_ms % 1000) * 1000000 },
		.it_interval = { .tv_sec = CHECK_MS / 1000 },
	};

	(void)pthread_mutex_lock(&lock);
	measured = (struct cpu_wait){};
	(void)pthread_mutex_unlock(&lock);
	atomic_store(&last_ns,
		     ss_now_ns() + LAST_FACTOR * (uint64_t)limit_ms * NS_PER_MS);
	atomic_store(&watched, pid);
	arm(pid, expire, &limit);
}

static void set_recorder(const struct ss_recorder *recorder)
{
	(void)pthread_mutex_lock(&lock);
	watched_recorder = recorder;
	(void)pthread_mutex_unlock(&lock);
}

void ss_watchdog_begin_recording(pid_t pid, const struct ss_recorder *recorder)
{
	const struct timespec ts = { .tv_sec = CHECK_MS / 1000 };
	const struct itimerspec each = { .it_value = ts, .it_interval = ts };

	slow_checks = 0;
	set_recorder(recorder);
	arm(pid, check, &each);
}

void ss_watchdog_end(void)
{
	atomic_store(&watched, 0);
	set_recorder(NULL);
	if (armed)
		(void)timer_delete(timer); /* it exists */
	armed = false;
}
