/*
 * A process that is recorded: its threads and modules as the recording knows them. It
 * turns what a tick found into samples.
 */
#ifndef SS_RECORD_FOLLOWED_H
#define SS_RECORD_FOLLOWED_H

#include "capture/sampler.h"
#include "record/jit.h"
#include "record/tracked.h"
#include "record/writer.h"

struct ss_samples {
	SS_VECTOR(struct ss_written_sample) items;
};

struct ss_followed {
	struct ss_target *target;
	bool owned; /* the target is ours: a child's */
	bool ended;
	struct ss_sampler sampler;
	struct ss_tracked_list modules; /* with their handles */
	struct ss_writer *writer;	/* borrowed */
	struct ss_session *session;	/* borrowed */
	unsigned max_frames;
	uint32_t process; /* handle, or SS_ID_NONE before the first tick */
	uint64_t now_ns;  /* CLOCK_MONOTONIC of the tick at hand */
	struct ss_jit jit;
	SS_VECTOR(uint32_t) handles; /* of the snapshot's modules */
	SS_VECTOR(uint32_t) stacks;  /* of the snapshot's stacks */
	SS_VECTOR(struct ss_written_frame) frames;
};

void ss_followed_init(struct ss_followed *followed, struct ss_target *target,
		      const struct ss_capture_options *options);
void ss_followed_deinit(struct ss_followed *followed);

/* One tick: looks at the process, defines what is new, and appends a sample of each
   thread. Errors: those of ss_sampler_tick(). */
struct ss_error *ss_followed_tick(struct ss_followed *followed, uint64_t now_ns,
				  struct ss_samples *samples,
				  struct ss_written_tick *written);

/* At the end of the recording. Errors: SYSTEM (the disk is full), NO_MEMORY. */
struct ss_error *ss_followed_finish(struct ss_followed *followed);

/* What each thread was sampled as last, for ss_writer_roll(), and back from it: *next is
   the first one of this process, and then the one behind its last. */
bool ss_followed_last(const struct ss_followed *followed, struct ss_samples *samples);
void ss_followed_renew(struct ss_followed *followed,
		       const struct ss_written_sample **next);

#endif
