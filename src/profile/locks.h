/*
 * Locks of applications that samples wait for, by the functions on their stacks.
 */
#ifndef SS_PROFILE_LOCKS_H
#define SS_PROFILE_LOCKS_H

#include "profile/profile.h"

/* Sets the locks of all runs that wait in a system call. Call it after the last recording.
   False without memory. */
bool ss_profile_find_locks(struct ss_profile *profile, const struct ss_wait_table *waits);

#endif
