/*
 * CPU time that no sample stands for. The clock that samples the CPUs is an interrupt,
 * which the kernel blocks while it switches threads, and a virtual machine delivers it late:
 * of a thread that sleeps often, too few samples are in the kernel. The scheduler counts
 * that time. It becomes samples of a function of its own, at ticks of the thread without
 * one: so the shares of all other functions are shares of the CPU time.
 */
#ifndef SS_PROFILE_UNSAMPLED_H
#define SS_PROFILE_UNSAMPLED_H

#include "profile/profile.h"

/* Adds them to the threads of a recording of scope SS_SCOPE_CPUS, if there are more than chance
   explains, with a call for stack. The threads begin at first_thread. False without memory. */
bool ss_unsampled_add(struct ss_profile *profile, uint32_t recording, size_t first_thread,
		      uint32_t call);

/* Whether there are so many. */
bool ss_unsampled_has(const struct ss_profile *profile, uint32_t recording,
		      size_t first_thread);

#endif
