/*
 * Translates the system calls that the samples of one recording waited in.
 */
#ifndef SS_REPORT_PROFILE_WAITS_H
#define SS_REPORT_PROFILE_WAITS_H

#include "report/profile.h"
#include "diagnose/wait_table.h"
#include "stacksnap/record.h"

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

/*
 * The functions of a stack that say where a thread waits: that of the library, which tells the
 * kind of wait, and its caller in the program.
 */

struct ss_waiting_function {
	uint32_t library; /* SS_ID_NONE, like the other one: not known */
	uint32_t program;
};

/* Of the frames of the module that waits, or of the libraries that are linked into it, the
   outermost one, and its caller. call: the innermost one of the stack. */
struct ss_waiting_function ss_waiting_function_of(const struct ss_profile *profile,
						  uint32_t call);

/* The function to name in one word: the innermost one of a runtime, or else that of the program, or
   the innermost one with a name. SS_ID_NONE: there is none. */
uint32_t ss_waiting_function_name(const struct ss_profile *profile, uint32_t call);

/*
 * Wait chains and deadlocks in a profile: each thread waits for the owner of a lock, which
 * may wait itself. A recording may contain any graph, even an impossible one.
 */

/* The wait of one thread. cycle may be SS_ID_NONE. */
struct ss_chain {
	uint32_t cycle;	 /* the deadlock that its chain ends in: its first member */
	bool member;	 /* of this deadlock */
	bool unproven;	 /* of a first member: this cycle is no deadlock */
	uint32_t size;	 /* of a first member: how many members there are */
	uint32_t behind; /* of a first member: how many other threads wait for them */
};

/*
 * Returns one chain for each thread, to be freed with free(); NULL without memory. A
 * deadlock is a cycle all of whose waits are marked as part of one: a cycle alone
 * proves nothing, since its threads may have been observed at different times.
 */
struct ss_chain *ss_chains_new(const struct ss_profile *profile);

/*
 * Locks of applications that samples wait for, by the functions on their stacks.
 */

/* Sets the locks of all runs that wait in a system call. Call it after the last recording.
   False without memory. */
bool ss_profile_find_locks(struct ss_profile *profile, const struct ss_wait_table *waits);

#endif
