#include "cli/signals.h"

#include <stddef.h>
#include <sys/signalfd.h>

int ss_signals_watch(void)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail: valid signals */
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

bool ss_signals_are_pending(const sigset_t *signals)
{
	sigset_t pending;

	/* These cannot fail. */
	(void)sigpending(&pending);
	(void)sigandset(&pending, &pending, signals);
	return sigisemptyset(&pending) == 0;
}
