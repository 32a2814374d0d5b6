/*
 * Adds the events of a recorded trace to the runs of a profile: what each sample stands for, how
 * long its scope took, and how much of that was not within other scopes.
 */
#ifndef SS_PROFILE_EVENTS_H
#define SS_PROFILE_EVENTS_H

#include "profile/profile.h"

/* The scopes that a thread is in. */
struct ss_load_scope {
	uint32_t event;
	uint32_t depth;
	uint64_t end_ns;
};

struct ss_load_scopes {
	SS_VECTOR(struct ss_load_scope) items; /* outermost first */
};

struct ss_load_events {
	struct ss_profile *profile;
	const struct ss_recording *recording;
	uint32_t *probes;			 /* by probe of the recording */
	SS_VECTOR(struct ss_load_scopes) scopes; /* by thread of the profile */
};

/* Translates the probes; modules are those of the profile, by module of the recording. False
   without memory. */
bool ss_load_events_init(struct ss_load_events *events, struct ss_profile *profile,
			 const struct ss_recording *recording, const uint32_t *modules);
void ss_load_events_deinit(struct ss_load_events *events);

/* Sets the event of a run, the sample of a thread. False without memory. */
bool ss_load_events_set(struct ss_load_events *events, const struct ss_sample *sample,
			uint32_t thread, struct ss_profile_run *run);

#endif
