/*
 * From recordings to one profile: the samples that are wanted, their frames by name.
 */
#ifndef SS_REPORT_LOAD_H
#define SS_REPORT_LOAD_H

#include "base/error.h"
#include "report/profile.h"

/* What is asked about threads and modules; data is that of the options. */
typedef bool ss_load_wants_thread(void *data, pid_t tid, const char *name);
typedef bool ss_load_wants_module(void *data, const char *path);

struct ss_load_options {
	size_t size;	    /* sizeof(struct ss_load_options) */
	uint64_t from_ns;   /* wall time; 0: from the begin */
	uint64_t to_ns;	    /* the first that is not wanted; 0: to the end */
	const char *states; /* letters, or NULL: all */
	ss_load_wants_thread *wants_thread; /* NULL: all */
	/* NULL: all; otherwise stacks that have a frame in such a module */
	ss_load_wants_module *wants_module;
	void *data;
	bool raw; /* places instead of names */
};

/*
 * Adds the samples of a recording, which was symbolized before, or was not if raw. file
 * is its name in the report. profile->start_ns must be set, and not be after the begin of
 * the recording or from_ns, whichever is later. Errors: NO_MEMORY.
 */
struct ss_error *ss_load_recording(struct ss_profile *profile,
				   struct ss_recording *recording, const char *file,
				   const struct ss_load_options *options);

#endif
