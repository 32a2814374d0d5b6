/*
 * Parts of stacks as text: whether they are certain, and what several stacks have in common.
 */
#ifndef SS_REPORT_TEXT_FRAMES_H
#define SS_REPORT_TEXT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "stacksnap.h"

/* Whether a stack has a heuristic frame. Then it is not known to be whole, also if it ends
   at a root; SS_END_GUESS_TEXT says so. */
bool ss_end_has_guess(const struct ss_snapshot *snapshot, const struct ss_task *thread);

#define SS_END_GUESS_TEXT                                                                \
	"not certain: [heuristic] frames are guesses, and frames may be missing"

/*
 * Merges the threads of a list that are shown as one: those with equal keys.
 */

struct ss_bundle_key {
	uint64_t stack; /* of what the threads do */
	uint64_t
		lock; /* address of the one that they wait for, if its owner is known; or 0 */
};

struct ss_bundle {
	const size_t *items; /* ascending */
	size_t count;	     /* at least 1 */
};

struct ss_bundles {
	struct ss_bundle *items; /* the largest first, then by their first item */
	size_t count;
	size_t *order; /* owned; the bundles point into it */
};

/* The numbers of the items, and a key of each. NULL without memory. */
struct ss_bundles *ss_bundles_new(const size_t *numbers, const struct ss_bundle_key *keys,
				  size_t count);

/* Waits for locks with a known owner tell more one by one than by stack. wait may be NULL. */
static inline uint64_t ss_bundle_lock(const struct ss_wait *wait)
{
	return wait && wait->owner_tid ? wait->address : 0;
}

/* How the bundles of a text are written. */
struct ss_bundle_writer {
	void (*one)(const void *data, size_t item);
	struct ss_error *(*several)(const void *data, const struct ss_bundle *bundle);
	const void *data;
	size_t most; /* bundles; of the rest, how many items there are */
	FILE *out;
};

struct ss_error *ss_bundles_write(const struct ss_bundles *bundles,
				  const struct ss_bundle_writer *writer);
void ss_bundles_free(struct ss_bundles *bundles);

SS_DEFINE_CLEANUP(struct ss_bundles, ss_bundles, ss_bundles_free)

#endif
