/*
 * The threads of a sampler: which there are, and which of them have run since they were
 * looked at last. The kernel is asked as little as possible: a figure of each thread.
 */
#ifndef SS_CAPTURE_SAMPLED_H
#define SS_CAPTURE_SAMPLED_H

#include "capture/sampler.h"

/* Brings the list up to date: touched is set of those that are to be looked at, gone of
   those that have ended. False without memory. */
bool ss_sampled_refresh(struct ss_sampler *sampler);

/* By its id, or NULL. */
struct ss_sampled *ss_sampled_find(struct ss_sampler *sampler, pid_t tid);

/* Whether a thread that was blocked at its last look has not run since. */
bool ss_sampled_is_still(struct ss_sampler *sampler, const struct ss_sampled *thread);

/* How often it was put on a CPU, as of now; 0: not known. Opens nothing and allocates
   nothing: for while it stands still. */
uint64_t ss_sampled_count(const struct ss_sampled *thread);

/* Closes what is kept open of one. */
void ss_sampled_forget(struct ss_sampler *sampler, struct ss_sampled *thread);

#endif
