/*
 * A session: the options that hold for many captures, and one slot for each room
 * that keeps something between them. The rooms define what lies in their slot.
 */
#ifndef SS_MODEL_SESSION_H
#define SS_MODEL_SESSION_H

#include "stacksnap.h"

struct ss_session_slot {
	void *data;
	void (*free)(void *data);
};

struct ss_session {
	char *debug_dir; /* never NULL; "/usr/lib/debug" unless told */
	char *sysroot;	 /* or NULL */
	struct ss_session_slot unwind;
	struct ss_session_slot symbolize;
};

#endif
