#include "sample/stop_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc_process.h"

enum {
	STEP_MS = 1,
	STEPS_MAX = 5000, /* a tick ends in less than that many steps */
};

static void sleep_ms(unsigned ms)
{
	ss_sleep_ns((uint64_t)ms * SS_NS_PER_MS);
}

/* The guard ------------------------------------------------------------- */

static bool is_stopped(int stat_fd)
{
	char text[1024];
	struct ss_stat stat;
	ssize_t n = pread(stat_fd, text, sizeof(text), 0);

	return n > 0 && ss_stat_parse(text, (size_t)n, &stat) && stat.state == 'T';
}

/* Continues the recorder until its tick is over, and stops it again. The next tick may
   begin before that. */
static void finish_ticks(pid_t recorder, int stat_fd, const atomic_uint *in_tick)
{
	for (int step = 0; step < STEPS_MAX && *in_tick && is_stopped(stat_fd);) {
		(void)kill(recorder, SIGCONT); /* it has ended: so does the guard */
		for (; step < STEPS_MAX && *in_tick; step++)
			sleep_ms(STEP_MS);
		(void)kill(recorder, SIGSTOP);
		sleep_ms(STEP_MS);
	}
}

struct watched {
	pid_t recorder;
	int stat_fd; /* without it the guard never sees a stop */
	const atomic_uint *in_tick;
};

/* Calls only what is async-signal-safe: other threads may have held locks at the fork. */
static int watch(void *data, int channel)
{
	const struct watched *watched = data;

	(void)channel; /* none */
	/* Signals of the terminal, and those for all of this name, are not for the guard.
	   These calls cannot fail. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_NAME, "ss-stop-guard");
	while (getppid() == watched->recorder) {
		sleep_ms(SS_STOP_GUARD_MS);
		finish_ticks(watched->recorder, watched->stat_fd, watched->in_tick);
	}
	return EXIT_SUCCESS;
}

/* The recorder ---------------------------------------------------------- */

static int open_own_stat(void)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", getpid()); /* always fits */
	return open(path, O_RDONLY | O_CLOEXEC);
}

void ss_stop_guard_start(struct ss_stop_guard *guard)
{
	const struct ss_child_options options = { .death_signal = SIGKILL,
						  .on_this_cpu = true };
	_cleanup_close_ int stat_fd = open_own_stat();

	*guard = (struct ss_stop_guard){};
	void *shared = mmap(NULL, sizeof(*guard->in_tick), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return;
	struct watched watched = { getpid(), stat_fd, shared };
	_cleanup_error_ struct ss_error *error =
		ss_child_start(&options, watch, &watched, &guard->child);
	if (error) {
		(void)munmap(shared, sizeof(*guard->in_tick)); /* it is mapped */
		return;
	}
	/* It is not for the sandboxed children that follow. */
	(void)madvise(shared, sizeof(*guard->in_tick), MADV_DONTFORK);
	guard->in_tick = shared;
}

void ss_stop_guard_end(struct ss_stop_guard *guard)
{
	if (!guard->in_tick)
		return;
	(void)ss_child_end(&guard->child);
	(void)munmap(guard->in_tick, sizeof(*guard->in_tick)); /* it is mapped */
	*guard = (struct ss_stop_guard){};
}

void ss_stop_guard_set(struct ss_stop_guard *guard, bool in_tick)
{
	if (guard->in_tick)
		*guard->in_tick = in_tick;
}
