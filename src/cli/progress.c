#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Runs in a thread of the C library's. It may run once after ss_progress_end():
   what it is given is constant. */
static void say(union sigval what)
{
	(void)dprintf(STDERR_FILENO, "stacksnap: %s...\n", (const char *)what.sival_ptr);
}

void ss_progress_begin(struct ss_progress *progress, const char *what)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = say,
				  .sigev_value.sival_ptr = (void *)what };
	const struct itimerspec in_a_second = { .it_value.tv_sec = 1 };

	progress->armed = false;
	if (isatty(STDERR_FILENO) != 1 ||
	    timer_create(CLOCK_MONOTONIC, &event, &progress->timer) < 0)
		return; /* then nothing is said */
	progress->armed = timer_settime(progress->timer, 0, &in_a_second, NULL) == 0;
	if (!progress->armed)
		(void)timer_delete(progress->timer); /* it exists */
}

void ss_progress_end(struct ss_progress *progress)
{
	if (progress->armed)
		(void)timer_delete(progress->timer); /* it exists */
	progress->armed = false;
}
