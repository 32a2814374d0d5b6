/*
 * Snapshots of one process, each in a recording of its own, are ticks of one recording in a
 * profile: its threads are the same, and its stacks add up.
 */
#ifndef SS_PROFILE_SERIES_H
#define SS_PROFILE_SERIES_H

#include "profile/profile.h"

struct ss_series_thread {
	pid_t tid;
	uint32_t thread; /* in the profile */
};

struct ss_series {
	struct ss_profile *profile; /* NULL: the recording continues none */
	uint32_t process;	    /* in the profile */
	SS_VECTOR(struct ss_series_thread) threads; /* ascending by tid */
	SS_VECTOR(size_t) lifetimes;		    /* in the profile */
};

/* Finds the series that a recording continues: earlier snapshots of a process with the same
   host, boot, pid, name and program, in the same of two sets. Returns false without memory. */
bool ss_series_find(struct ss_profile *profile, const struct ss_recording *recording,
		    unsigned set, struct ss_series *ret);
void ss_series_deinit(struct ss_series *series);

/* The thread with this id, or SS_ID_NONE. */
uint32_t ss_series_thread(const struct ss_series *series, pid_t tid);

/* Whether the module with this index in the recording was loaded at the same address
   before. */
bool ss_series_has_module(const struct ss_series *series, size_t index, uint32_t module,
			  uint64_t base);

/* Removes the waits of the process. */
void ss_series_drop_waits(const struct ss_series *series);

#endif
