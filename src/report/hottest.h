/*
 * In which function a set of samples is most often: the innermost one that has a name and
 * is not of the C library, since "in poll()" says less than who called it.
 */
#ifndef SS_REPORT_HOTTEST_H
#define SS_REPORT_HOTTEST_H

#include "report/condense.h"

struct ss_hottest;

/* NULL without memory. condensed must outlive it. */
struct ss_hottest *ss_hottest_new(const struct ss_condensed *condensed);
void ss_hottest_free(struct ss_hottest *hottest);

/* Adds the samples of a run to the set. */
void ss_hottest_add(struct ss_hottest *hottest, const struct ss_profile_run *run);

/*
 * Empties the set. Returns how many of its samples were in the function that had most,
 * and this one; 0: there is none.
 */
uint64_t ss_hottest_take(struct ss_hottest *hottest, uint32_t *ret);

SS_DEFINE_CLEANUP(struct ss_hottest, ss_hottest, ss_hottest_free)

#endif
