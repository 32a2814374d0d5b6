/*
 * The goroutines and tasks of asyncio of recorded snapshots, as threads of a profile.
 */
#ifndef SS_PROFILE_GOROUTINES_H
#define SS_PROFILE_GOROUTINES_H

#include "profile/profile.h"

/* What tells a goroutine or a task from others. One that does something else in a later snapshot is
   another one. */
struct ss_profile_goroutine {
	uint64_t id;	     /* of a task: its address */
	const char *name;    /* "goroutine (chan receive)", of the profile */
	const char *task;    /* what a task is called, likewise; or NULL */
	const char *runtime; /* as in struct ss_goroutine, likewise; or NULL */
	pid_t tid;	     /* its id; 0: that is too large */
	uint32_t process;
	char state;
};

/* Sets all but the process. False without memory. */
bool ss_profile_goroutine_init(struct ss_profile_goroutine *goroutine,
			       struct ss_profile *profile,
			       const struct ss_recorded_goroutine *from);

bool ss_profile_task_init(struct ss_profile_goroutine *task, struct ss_profile *profile,
			  const struct ss_recorded_task *from);

/* The thread of a goroutine, which is added if it is new; SS_ID_NONE: there are too many. False
   without memory. */
bool ss_profile_goroutines_thread(struct ss_profile *profile,
				  const struct ss_profile_goroutine *goroutine,
				  uint32_t *ret);

#endif
