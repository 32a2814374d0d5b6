/*
 * Names of recorded places.
 */
#include "base/error.h"
#include "data/recording.h"
#include "stacksnap/record.h"

struct ss_error *ss_recording_symbolize(struct ss_recording *recording,
					struct ss_session *session, unsigned flags)
{
	if (!recording || !session)
		return ss_error_new(SS_ERROR_INVALID, "no recording or no session");
	if (recording->symbolized)
		return ss_error_new(SS_ERROR_INVALID,
				    "the recording has already been symbolized");
	recording->symbolized = true;
	return ss_snapshot_symbolize(recording->places, session, flags);
}
