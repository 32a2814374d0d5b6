/*
 * Captures of core files.
 */
#ifndef SS_CORE_CORE_CAPTURE_H
#define SS_CORE_CORE_CAPTURE_H

#include "data/gather.h"
#include "stacksnap.h"

/* Makes a plan of what else to copy, given what the capture has so far. False: nothing. */
typedef bool ss_core_planner(void *data, const struct ss_capture *capture,
			     struct ss_gather_plan *ret);

struct ss_core_options {
	size_t size; /* sizeof(struct ss_core_options) */
	const char
		*program; /* path of the program, used if it has the build-id of the one
				in the core file; NULL: where it was */
	size_t max_stack; /* bytes to copy from one stack; 0: 16 MiB */
	size_t max_total; /* bytes to copy from all stacks; 0: 256 MiB */
	bool no_waits;	  /* skip what only ss_snapshot_diagnose() needs */
	ss_thread_filter *filter; /* NULL: all threads; only the main thread has a name */
	void *filter_data;
	ss_core_planner *planner; /* NULL: none */
	void *planner_data;
	/* Reads memory that the file lacks, for the plan; NULL: there is none. Returns the length
	   of the prefix that was read. */
	size_t (*read)(void *data, uint64_t address, void *bytes, size_t size);
	void *read_data;
};

/*
 * Makes a capture from a core file, in mode SS_MODE_CORE, and searches the files of its
 * modules as the options of the session say. The file and everything in it is untrusted
 * input: call it in ss_sandbox_run(). It may be truncated. fd must allow pread(2); the
 * library owns it, also after an error. Errors: INVALID (no core file), UNSUPPORTED (its
 * processor), NO_MEMORY.
 */
struct ss_error *ss_capture_read_core(int fd, struct ss_session *session,
				      const struct ss_core_options *options,
				      struct ss_capture **ret);

#endif
