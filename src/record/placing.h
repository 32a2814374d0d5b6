/*
 * Whether frames lie in what they are taken to lie in: modules come and go while a
 * process is looked at, and the same address may belong to another one a moment later.
 */
#ifndef SS_RECORD_PLACING_H
#define SS_RECORD_PLACING_H

#include "capture/sampler.h"
#include "model/snapshot.h"

/*
 * Of all frames of a snapshot, which was made from the sampler's last look. *proved: each
 * area was asked for while the thread could not move. If not, the answer is that of now,
 * the threads concerned are unplaced, and the next look tries to prove it.
 */
enum ss_world_answer ss_placing_check(struct ss_sampler *sampler,
				      const struct ss_snapshot *snapshot, bool *proved);

#endif
