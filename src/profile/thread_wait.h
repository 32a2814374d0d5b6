/*
 * Copies what a thread of a recording waits for, so that the recording can be closed.
 */
#ifndef SS_PROFILE_THREAD_WAIT_H
#define SS_PROFILE_THREAD_WAIT_H

#include "profile/profile.h"

/* Everything is in one block, which the caller frees with free(3), except strings, which are
   those of the profile. Its size is added to *bytes, which may be NULL. Without chain. NULL without
   memory. */
struct ss_wait *ss_thread_wait_copy(struct ss_profile *profile,
				    const struct ss_wait *wait, size_t *bytes);

#endif
