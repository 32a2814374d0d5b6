#include "crash/fatal.h"

#include <stdint.h>

bool ss_fatal_by_default(int signal)
{
	switch (signal) {
	case SIGCHLD:
	case SIGCONT:
	case SIGURG:
	case SIGWINCH:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return true;
	}
}

bool ss_fatal_is(const siginfo_t *info, const struct ss_status *status)
{
	uint64_t bit = UINT64_C(1) << (info->si_signo - 1);

	if (!ss_fatal_by_default(info->si_signo) ||
	    ((status->handled_signals | status->ignored_signals) & bit))
		return false;
	/* The first process of a pid namespace gets signals with a default action only from
	   the kernel and from outside (SIGNAL_UNKILLABLE). */
	return status->inner_id != 1 || status->id_count < 2 || info->si_code > 0;
}

bool ss_fatal_is_normal(const siginfo_t *info, pid_t pid)
{
	switch (info->si_signo) {
	case SIGPIPE:
		return true;
	case SIGINT:
	case SIGHUP:
		return info->si_code == SI_KERNEL ||
		       (info->si_code <= 0 && info->si_pid == pid);
	default:
		return false;
	}
}
