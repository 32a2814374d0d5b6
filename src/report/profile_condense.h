/*
 * A profile for people: addresses without symbols are merged into one function for each
 * module or memory area, since a list of addresses is of no use. Calls among them become
 * one frame. A single address in a module is kept as it is, and so is a function
 * without a name whose start is known.
 */
#ifndef SS_REPORT_PROFILE_CONDENSE_H
#define SS_REPORT_PROFILE_CONDENSE_H

#include <stdbool.h>

#include "report/profile.h"

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

/*
 * The samples of each node and function of a profile, and the children of each node.
 */

struct ss_weight {
	uint64_t self;	/* samples with it as innermost function */
	uint64_t total; /* including callees; recursion counts once */
};

/* Which samples count. Those of threads that waited for a CPU are not on one, as far as a sample says it. */
enum ss_samples { SS_SAMPLES_ALL, SS_SAMPLES_ON_CPU, SS_SAMPLES_WAITING };

struct ss_weights {
	const struct ss_profile *profile;
	uint64_t weight; /* of all that count */
	struct ss_weight *nodes;
	struct ss_weight *functions;
	uint32_t *first; /* first child of a node, or SS_ID_NONE */
	uint32_t *next;	 /* next sibling, or SS_ID_NONE */
	bool *recursive; /* by node: its function is also further out */
};

/* Returns NULL without memory. The profile must outlive the result. */
struct ss_weights *ss_weights_new(const struct ss_profile *profile,
				  enum ss_samples samples);
void ss_weights_free(struct ss_weights *weights);

SS_DEFINE_CLEANUP(struct ss_weights, ss_weights, ss_weights_free)

/*
 * The hottest function of a set of samples. Each sample counts for its innermost function
 * that has a symbol and is not in the C library: the caller of poll() says more than
 * "poll".
 */

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
