/*
 * Translates modules, frames and stacks of one recording to indexes in a profile, each
 * when it is first used.
 */
#ifndef SS_PROFILE_FRAMES_H
#define SS_PROFILE_FRAMES_H

#include "profile/load.h"

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
