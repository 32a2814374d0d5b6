/*
 * The modules, frames and stacks of one recording, as numbers of a profile: each is
 * translated once, when it is first met.
 */
#ifndef SS_REPORT_FRAMES_H
#define SS_REPORT_FRAMES_H

#include "report/load.h"

struct ss_load_frames {
	struct ss_profile *profile;
	const struct ss_recording *recording;
	const struct ss_load_options *options;
	uint32_t *modules;	/* by module of the recording */
	bool *wanted_modules;	/* NULL: all are */
	uint32_t *place_frames; /* by place: where its frames begin in frames, + 1 */
	SS_VECTOR(uint32_t)
	frames;		       /* of a place: their count, then they, innermost first */
	uint32_t *stack_calls; /* by stack: call + 1; 0: not met yet */
	uint8_t *stack_wanted; /* by stack: 0 not known, 1 no, 2 yes */
	bool cut;	       /* there were more calls than a profile may have */
};

/* Translates the modules, too. False without memory. */
bool ss_load_frames_init(struct ss_load_frames *frames);
void ss_load_frames_deinit(struct ss_load_frames *frames);

/* Whether stacks with this number are wanted, by the modules in them. */
bool ss_load_frames_wants(struct ss_load_frames *frames, uint32_t stack);

/* The call that a stack of the recording is. SS_NUMBER_NOT without memory. */
uint32_t ss_load_frames_call(struct ss_load_frames *frames, uint32_t stack);

#endif
