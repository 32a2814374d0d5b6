/*
 * The other processes of a capture, see ss_capture_add_related(), as snapshots.
 */
#include "base/error.h"
#include "data/capture.h"
#include "data/pipeline.h"
#include "data/session.h"
#include "data/snapshot.h"

enum { FRAMES_MAX = 256 }; /* of each thread */

static struct ss_error *add_other(struct ss_snapshot *snapshot,
				  const struct ss_capture *capture,
				  struct ss_session *session, unsigned flags)
{
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .max_frames = FRAMES_MAX };
	struct ss_snapshot **slot = ss_vector_push(&snapshot->others);

	if (!slot)
		return ss_error_no_memory();
	*slot = NULL;
	struct ss_error *error = ss_capture_unwind(capture, session, &options, slot);
	if (!error)
		error = ss_snapshot_symbolize(*slot, session, flags);
	if (error) {
		ss_snapshot_free(*slot);
		snapshot->others.count--;
		return error;
	}
	(*slot)->first = snapshot;
	return NULL;
}

struct ss_error *ss_snapshot_add_related(struct ss_snapshot *snapshot,
					 const struct ss_capture *capture,
					 struct ss_session *session, unsigned flags)
{
	struct ss_error *error = NULL;

	if (snapshot->others.count || snapshot->waits)
		return ss_error_new(SS_ERROR_INVALID,
				    "the snapshot already has its related processes, or "
				    "has been diagnosed");
	volatile int32_t *module_at = session->module_at;
	size_t skip_count = session->skip_count;
	ss_session_note(session, -1);
	session->module_at = NULL;
	session->skip_count = 0;
	for (size_t i = 0; i < capture->others.count && !error; i++)
		error = add_other(snapshot, capture->others.items[i], session, flags);
	session->module_at = module_at;
	session->skip_count = skip_count;
	return error;
}
