/*
 * The hottest function of a set of samples. Each sample counts for its innermost function
 * that has a symbol and is not in the C library: the caller of poll() says more than
 * "poll".
 */
#ifndef SS_PROFILE_HOTTEST_H
#define SS_PROFILE_HOTTEST_H

#include "profile/condense.h"

struct ss_hottest;

/* Returns NULL without memory. condensed must outlive the result. */
struct ss_hottest *ss_hottest_new(const struct ss_condensed *condensed);
void ss_hottest_free(struct ss_hottest *hottest);

/* Adds the samples of a run to the set. */
void ss_hottest_add(struct ss_hottest *hottest, const struct ss_profile_run *run);

/*
 * Empties the set. Returns the hottest function in ret and the number of its samples; 0:
 * there is none.
 */
uint64_t ss_hottest_take(struct ss_hottest *hottest, uint32_t *ret);

SS_DEFINE_CLEANUP(struct ss_hottest, ss_hottest, ss_hottest_free)

#endif
