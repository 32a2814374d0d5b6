/*
 * The processes of a recording: the first one and its descendants.
 */
#ifndef SS_SAMPLE_FAMILY_H
#define SS_SAMPLE_FAMILY_H

#include "base/vector.h"
#include "sample/access.h"

struct ss_family {
	const struct ss_process_access *access; /* borrowed */
	SS_VECTOR(struct ss_target *) members;	/* likewise */
	uint64_t searched_ns;			/* CLOCK_MONOTONIC */
};

void ss_family_init(struct ss_family *family, const struct ss_process_access *access);
void ss_family_deinit(struct ss_family *family);

/* False: no memory. */
bool ss_family_add(struct ss_family *family, struct ss_target *target);
void ss_family_remove(struct ss_family *family, const struct ss_target *target);

/* Takes ownership of a found target; calls ss_family_add(). False: no memory. */
typedef bool ss_family_adopt(void *data, struct ss_target *target);

/* Searches for children of all members, at most every 50 ms. Skips children that have
   ended or may not be inspected and, without privileges, those that will probably execute
   a program next. False: no memory. */
bool ss_family_search(struct ss_family *family, uint64_t now_ns, ss_family_adopt *adopt,
		      void *data);

#endif
