/*
 * Translates the system calls that the samples of one recording waited in.
 */
#ifndef SS_PROFILE_WAITS_H
#define SS_PROFILE_WAITS_H

#include "profile/profile.h"

enum { SS_LOAD_CALLS_MAX = 1024 };

struct ss_load_waits {
	struct ss_profile *profile;
	uint32_t machine;		     /* architecture of libseccomp; 0: unknown */
	uint32_t numbers[SS_LOAD_CALLS_MAX]; /* by system call: index of the wait + 1 */
	size_t first_thread; /* of the recording, as index in the profile */
	bool restarts;	     /* restart_syscall(2) was seen */
};

/* machine: as of uname -m where it was recorded, which decides the numbers of calls. */
void ss_load_waits_init(struct ss_load_waits *waits, struct ss_profile *profile,
			const char *machine);

/* Sets wait and argument of a run. Returns false without memory. */
bool ss_load_waits_set(struct ss_load_waits *waits, const struct ss_sample *sample,
		       struct ss_profile_run *run);

/*
 * Call this after the last sample. A call that continues after a stop is reported as
 * restart_syscall(2). It is replaced with the call of other samples at the same address,
 * if those are all in one. Returns false without memory.
 */
bool ss_load_waits_finish(struct ss_load_waits *waits);

#endif
