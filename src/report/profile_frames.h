/*
 * Translates modules, frames and stacks of one recording to indexes in a profile, each
 * when it is first used.
 */
#ifndef SS_REPORT_PROFILE_FRAMES_H
#define SS_REPORT_PROFILE_FRAMES_H

#include "report/profile_load.h"
#include "report/profile.h"
#include "data/recording.h"
#include "stacksnap/record.h"

/*
 * The tasks of recorded snapshots that are on no thread, as threads of a profile.
 */

/* What tells a task from others. One that does something else in a later snapshot is another one. */
struct ss_profile_task {
	enum ss_task_kind kind;
	uint64_t id;	     /* as in struct ss_task */
	const char *name;    /* "goroutine (chan receive)", of the profile */
	const char *task;    /* what a task of asyncio is called, likewise; or NULL */
	const char *runtime; /* as in struct ss_task, likewise; or NULL */
	pid_t tid;	     /* the id of a goroutine; 0: that is too large */
	uint32_t process;
	char state;
};

/* Sets all but the process. False without memory. */
bool ss_profile_task_init(struct ss_profile_task *task, struct ss_profile *profile,
			  const struct ss_recorded_task *from);

/* The thread of a task, which is added if it is new; SS_ID_NONE: there are too many. False without
   memory. */
bool ss_profile_tasks_thread(struct ss_profile *profile,
			     const struct ss_profile_task *task, uint32_t *ret);

struct ss_load_frames {
	struct ss_profile *profile;
	const struct ss_recording *recording;
	const struct ss_load_options *options;
	uint32_t *modules;	/* by module of the recording */
	bool *selected_modules; /* by module; NULL: all are wanted */
	uint32_t *
		place_frames; /* by place: index + 1 into frames; 0: not translated yet */
	SS_VECTOR(uint32_t)
	frames; /* of each place: count, then the frames, innermost first */
	uint32_t *stack_calls;	 /* by stack: call + 1; 0: not translated yet */
	uint8_t *stack_selected; /* by stack: 0: unknown yet, 1: no, 2: yes */
	bool truncated;		 /* the profile was full */
};

/* Translates the modules. Returns false without memory. */
bool ss_load_frames_init(struct ss_load_frames *frames);
void ss_load_frames_deinit(struct ss_load_frames *frames);

/* Whether a stack contains a wanted module. */
bool ss_load_frames_wants(struct ss_load_frames *frames, uint32_t stack);

/* Returns the call of CPU time that no sample stands for; SS_ID_NONE without memory, or if the
   profile is full. */
uint32_t ss_load_frames_unsampled(struct ss_load_frames *frames);

/* Returns the call of a stack of the recording; SS_ID_NONE without memory. */
uint32_t ss_load_frames_call(struct ss_load_frames *frames, uint32_t stack);

#endif
