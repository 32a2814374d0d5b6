/*
 * The processes of a recording: one, or with it those that it forks.
 */
#ifndef SS_RECORD_FAMILY_H
#define SS_RECORD_FAMILY_H

#include "record/followed.h"

struct ss_family {
	SS_VECTOR(struct ss_followed *) members;
	struct ss_writer *writer;
	struct ss_session *session;
	unsigned max_frames;
	bool children;
	struct ss_capture_options options;
	uint64_t looked_ns;	     /* for children */
	uint64_t gone_stops;	     /* thread stops of members that are gone */
	bool late;		     /* a sampler was, in this tick */
	_Atomic uint64_t looking_ns; /* CLOCK_MONOTONIC since when one of them is looked
					at; 0: none is */
};

void ss_family_init(struct ss_family *family, struct ss_writer *writer,
		    struct ss_session *session, unsigned max_frames, bool children,
		    const struct ss_capture_options *options);
void ss_family_deinit(struct ss_family *family);

/* False without memory; an owned target is closed then. */
bool ss_family_add(struct ss_family *family, struct ss_target *target, bool owned);

/* One tick of all members. */
struct ss_error *ss_family_tick(struct ss_family *family, uint64_t now_ns,
				struct ss_samples *samples,
				struct ss_written_tick *written);

/* A new segment of the file. */
struct ss_error *ss_family_roll(struct ss_family *family, uint64_t monotonic_ns,
				uint64_t wall_ns);

/* At the end of the recording. Errors: those of ss_followed_finish(). */
struct ss_error *ss_family_finish(struct ss_family *family);

/* Whether no process is left. */
bool ss_family_is_over(const struct ss_family *family);
/* Whether this thread has to end, see sampler.h. */
bool ss_family_is_late(const struct ss_family *family);
uint64_t ss_family_thread_stops(const struct ss_family *family);

#endif
