/*
 * A profile for people: functions without names come together, those of one module (or
 * one area without a file) as one function, since a list of addresses tells nothing.
 * Calls among them are one step. Where there is only one such place it stays itself.
 */
#ifndef SS_REPORT_CONDENSE_H
#define SS_REPORT_CONDENSE_H

#include "report/profile.h"

/* By function: whether it has no name, only that of a place. NULL without memory. */
bool *ss_condensed_find_places(const struct ss_profile *profile);

/* What a function or a node stands for. */
struct ss_places {
	uint32_t count; /* of places without names; 0: it has a name */
	uint32_t first; /* one of them: a function of the original */
};

struct ss_condensed {
	const struct ss_profile *original;
	struct ss_profile profile; /* functions, nodes and node_of are its own */
	struct ss_places *functions;
	struct ss_places *nodes;
};

/* The original must outlive it. With whole nothing comes together. NULL without memory.
 */
struct ss_condensed *ss_condensed_new(const struct ss_profile *original, bool whole);
void ss_condensed_free(struct ss_condensed *condensed);

SS_DEFINE_CLEANUP(struct ss_condensed, ss_condensed, ss_condensed_free)

#endif
