/*
 * Adds the selected samples of recordings to a profile.
 */
#ifndef SS_REPORT_PROFILE_LOAD_H
#define SS_REPORT_PROFILE_LOAD_H

#include "base/error.h"
#include "report/profile.h"
#include "stacksnap/record.h"

/* Select threads and modules; data is that of the options. */
typedef bool ss_load_selects_thread(void *data, pid_t tid, const char *name);
typedef bool ss_load_selects_module(void *data, const char *path);

struct ss_load_options {
	size_t size;				/* sizeof(struct ss_load_options) */
	uint64_t from_ns;			/* wall time; 0: from the start */
	uint64_t to_ns;				/* end, exclusive; 0: to the end */
	const char *states;			/* letters, or NULL: all */
	ss_load_selects_thread *selects_thread; /* NULL: all */
	/* NULL: all stacks; else those with a frame in a selected module */
	ss_load_selects_module *selects_module;
	void *data;
	/* Stacks begin with the host, or with the label of that key ("": all labels) */
	bool by_host;
	const char *by_label; /* or NULL */
	unsigned set;	      /* of two that are compared: 0 or 1 */
	bool raw;	      /* module and offset instead of names */
	bool native; /* also the native frames for which calls of a runtime stand */
	bool unsampled; /* also CPU time that no sample stands for, see report/profile_series.h */
};

/*
 * Adds the samples of a recording. The caller has symbolized it, unless raw. file is its
 * name in the report. profile->start_ns must be set, and not be later than both the start
 * of the recording and from_ns. Errors: NO_MEMORY.
 */
struct ss_error *ss_load_recording(struct ss_profile *profile,
				   struct ss_recording *recording, const char *file,
				   const struct ss_load_options *options);

#endif
