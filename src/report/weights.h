/*
 * How many samples each node and each function of a profile has, and the nodes as a tree
 * that can be walked downwards.
 */
#ifndef SS_REPORT_WEIGHTS_H
#define SS_REPORT_WEIGHTS_H

#include <stdbool.h>

#include "report/profile.h"

struct ss_weight {
	uint64_t self;	/* samples that stood there */
	uint64_t total; /* and in what it called; recursion counts once */
};

struct ss_weights {
	const struct ss_profile *profile;
	struct ss_weight *nodes;
	struct ss_weight *functions;
	uint32_t *first; /* child of a node, or SS_NUMBER_NOT */
	uint32_t *next;	 /* sibling */
};

/* NULL without memory. The profile must outlive it. */
struct ss_weights *ss_weights_new(const struct ss_profile *profile);
void ss_weights_free(struct ss_weights *weights);

SS_DEFINE_CLEANUP(struct ss_weights, ss_weights, ss_weights_free)

#endif
