/*
 * Why samples of a recording have native frames instead of the functions of a language: counted for
 * the notes of a report.
 */
#ifndef SS_PROFILE_NATIVE_REASONS_H
#define SS_PROFILE_NATIVE_REASONS_H

#include "profile/profile.h"

enum { SS_NATIVE_REASONS_MAX = 16 };

/* Zeroed, it is empty. */
struct ss_native_reasons {
	struct {
		const char *reason; /* of the recording */
		uint64_t count;
	} items[SS_NATIVE_REASONS_MAX];
	size_t count;
};

/* Counts a sample with a stack: if the stack is whole and has a reason nevertheless. */
void ss_native_reasons_count(struct ss_native_reasons *reasons,
			     const struct ss_recorded_stack *stack);

/* Adds a note for each reason. They do not mean that the report is incomplete. False without memory. */
bool ss_native_reasons_add_notes(const struct ss_native_reasons *reasons,
				 struct ss_profile *profile, const char *file);

#endif
