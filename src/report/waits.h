/*
 * The system calls that samples of one recording waited in, as numbers of a profile.
 */
#ifndef SS_REPORT_WAITS_H
#define SS_REPORT_WAITS_H

#include "report/profile.h"

enum { SS_LOAD_CALLS_MAX = 1024 };

struct ss_load_waits {
	struct ss_profile *profile;
	uint32_t machine;		     /* for libseccomp; 0: one it does not know */
	uint32_t numbers[SS_LOAD_CALLS_MAX]; /* by system call: number + 1 */
	size_t first_thread;		     /* of the recording, in the profile */
	bool restarts;			     /* there were calls that went on */
};

/* machine as uname -m has it: numbers of calls are those of the machine recorded. */
void ss_load_waits_init(struct ss_load_waits *waits, struct ss_profile *profile,
			const char *machine);

/* Fills in wait and argument of a run. False without memory. */
bool ss_load_waits_set(struct ss_load_waits *waits, const struct ss_sample *sample,
		       struct ss_profile_run *run);

/*
 * After the last sample: a call that goes on after a stop is called restart_syscall. It
 * is taken for the one that other samples at the same place in a C library are in, where
 * these are all the same. False without memory.
 */
bool ss_load_waits_finish(struct ss_load_waits *waits);

#endif
