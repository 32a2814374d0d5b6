/*
 * Checks that the frames of a capture lie in the modules that the sampler assigned to them
 * (see area_check.h). The caller passes all frames of each thread, one by one.
 */
#ifndef SS_SAMPLE_FRAME_CHECK_H
#define SS_SAMPLE_FRAME_CHECK_H

#include "sample/sampler.h"

struct ss_frame_check {
	struct ss_sampler *sampler;
	struct ss_sampled_thread *thread;   /* the current one, or NULL */
	uint64_t starts[SS_AREA_CHECK_MAX]; /* of the areas of its frames */
	size_t count;
	/* Worst result for areas that were not verified. Even SAME does not verify them: it
	   was read after the thread may have run. */
	enum ss_mapping_check result;
	bool verified; /* all areas of all threads were verified */
	bool current;
};

/* current: the kernel reports mappings of code, and has reported none since the memory map was read.
   Then frames in its areas are not checked. */
void ss_frame_check_begin(struct ss_frame_check *check, struct ss_sampler *sampler,
			  bool current);
void ss_frame_check_begin_thread(struct ss_frame_check *check, pid_t tid);
void ss_frame_check_add_frame(struct ss_frame_check *check, uint64_t pc);
void ss_frame_check_end_thread(struct ss_frame_check *check);

#endif
