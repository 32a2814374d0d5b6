/*
 * The samples of each node and function of a profile, and the children of each node.
 */
#ifndef SS_PROFILE_WEIGHTS_H
#define SS_PROFILE_WEIGHTS_H

#include <stdbool.h>

#include "profile/profile.h"

struct ss_weight {
	uint64_t self;	/* samples with it as innermost function */
	uint64_t total; /* including callees; recursion counts once */
};

struct ss_weights {
	const struct ss_profile *profile;
	struct ss_weight *nodes;
	struct ss_weight *functions;
	uint32_t *first; /* first child of a node, or SS_ID_NONE */
	uint32_t *next;	 /* next sibling, or SS_ID_NONE */
	bool *recursive; /* by node: its function is also further out */
};

/* Returns NULL without memory. The profile must outlive the result. */
struct ss_weights *ss_weights_new(const struct ss_profile *profile);
void ss_weights_free(struct ss_weights *weights);

SS_DEFINE_CLEANUP(struct ss_weights, ss_weights, ss_weights_free)

#endif
