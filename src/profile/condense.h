/*
 * A profile for people: addresses without symbols are merged into one function for each
 * module or memory area, since a list of addresses is of no use. Calls among them become
 * one frame. A single address in a module is kept as it is, and so is a function
 * without a name whose start is known.
 */
#ifndef SS_PROFILE_CONDENSE_H
#define SS_PROFILE_CONDENSE_H

#include "profile/profile.h"

/* The addresses that a function or node stands for. */
struct ss_places {
	uint32_t count; /* addresses without symbols; 0: it has a symbol */
	uint32_t first; /* one of them: a function of the original */
};

struct ss_condensed {
	const struct ss_profile *original;
	struct ss_profile profile; /* owns its functions, nodes and node_of */
	struct ss_places *functions;
	struct ss_places *nodes;
};

/* Returns NULL without memory. The original must outlive the result. If whole is true, nothing
   is merged. */
struct ss_condensed *ss_condensed_new(const struct ss_profile *original, bool whole);
void ss_condensed_free(struct ss_condensed *condensed);

SS_DEFINE_CLEANUP(struct ss_condensed, ss_condensed, ss_condensed_free)

#endif
