/*
 * A session: the options that hold for many captures, and one slot for each room
 * that keeps something between them. The rooms define what lies in their slot.
 */
#ifndef SS_MODEL_SESSION_H
#define SS_MODEL_SESSION_H

#include <stdbool.h>

#include "stacksnap.h"

struct ss_session_slot {
	void *data;
	void (*free)(void *data);
};

struct ss_session {
	char *debug_dir;	     /* never NULL; "/usr/lib/debug" unless told */
	int sysroot;		     /* an open directory, or -1 */
	volatile int32_t *module_at; /* or NULL */
	const int32_t *skip_modules;
	size_t skip_count;
	ss_file_finder *find_file; /* or NULL */
	void *find_data;
	struct ss_session_slot unwind;
	struct ss_session_slot symbolize;
};

/* To be called before bytes of that module (-1: of none) are read. */
static inline void ss_session_note(const struct ss_session *session, int32_t module)
{
	if (session->module_at)
		*session->module_at = module;
}

/* Whether the bytes of that module are to be left alone. */
bool ss_session_skips(const struct ss_session *session, int32_t module);

#endif
