/*
 * Snapshots of one process, each in a recording of its own, are ticks of one recording in a
 * profile: its threads are the same, and its stacks add up.
 */
#ifndef SS_REPORT_PROFILE_SERIES_H
#define SS_REPORT_PROFILE_SERIES_H

#include "report/profile.h"
#include "stacksnap/record.h"

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

/*
 * CPU time that no sample stands for. The clock that samples the CPUs is an interrupt,
 * which the kernel blocks while it switches threads, and a virtual machine delivers it late:
 * of a thread that sleeps often, too few samples are in the kernel. The scheduler counts
 * that time. It becomes samples of a function of its own, at ticks of the thread without
 * one: so the shares of all other functions are shares of the CPU time.
 */

/* Adds them to the threads of a recording of scope SS_SCOPE_CPUS, if there are more than chance
   explains, with a call for stack. The threads begin at first_thread. False without memory. */
bool ss_unsampled_add(struct ss_profile *profile, uint32_t recording, size_t first_thread,
		      uint32_t call);

/* Whether there are so many. */
bool ss_unsampled_has(const struct ss_profile *profile, uint32_t recording,
		      size_t first_thread);

#endif
