/*
 * Shared by the commands that interpret captures and recordings in the library's sandbox:
 * options, descriptions of failures, and copying of the untrusted output.
 */
#ifndef SS_CLI_ANALYSIS_H
#define SS_CLI_ANALYSIS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/file_requests.h"
#include "cli/options.h"
#include "cli/output.h"
#include "stacksnap.h"
#include "sandbox/sandbox.h"

struct ss_analysis {
	struct ss_sandbox_options
		options; /* size and slow are set by ss_analysis_run() */
	ss_sandbox_work *work;
	void *data;
	bool binary; /* copy the output unchanged; else escape control characters */
	bool color;  /* keep colour sequences */
	bool verbose;
};

/* Whose privileges the sandbox takes over: the owner of the target. */
struct ss_analysis_owner {
	bool known;
	bool may_read; /* what is below --sysroot */
	uid_t uid;
	gid_t gid;
};

struct ss_analysis_owner ss_analysis_owner_of(const struct ss_target *target);

/* Sets what the commands that capture have in common: the members options and verbose, and
   session, to which they refer. captures is how many are analyzed. Missing files are
   requested through requests, if it has a debuginfod. */
void ss_analysis_configure(struct ss_analysis *analysis,
			   struct ss_session_options *session,
			   const struct ss_options *options,
			   const struct ss_analysis_owner *owner, size_t captures,
			   struct ss_file_requests *requests);

/* Runs the work. Errors: those of ss_sandbox_run(). */
struct ss_error *ss_analysis_run(const struct ss_analysis *analysis,
				 struct ss_sandbox_result **ret);

SS_DEFINE_CLEANUP(struct ss_sandbox_result, ss_sandbox_result, ss_sandbox_result_free)

/* Copies the output of the work to output (unless that is NULL) and its messages to
   standard error. Errors: SYSTEM (the output cannot be written), NO_MEMORY. */
struct ss_error *ss_analysis_copy(const struct ss_analysis *analysis,
				  const struct ss_sandbox_result *result,
				  struct ss_output *output);

/* For the work: the output of an attempt as a stream. Errors: NO_MEMORY. */
struct ss_error *ss_analysis_open(const struct ss_sandbox_attempt *attempt, FILE **ret);

struct ss_error *ss_analysis_open_fd(int output, FILE **ret);

/* Closes the stream. Returns error if there is one. Errors: SYSTEM (writing failed). */
struct ss_error *ss_analysis_close(FILE *out, struct ss_error *error);

/* How to get what is missing in a snapshot of this attempt, for text: see ss_advice_new(). NULL
   also without names. privileged: the caller of the sandbox is root. */
char *ss_analysis_advice(const struct ss_sandbox_attempt *attempt,
			 const struct ss_snapshot *snapshot,
			 const struct ss_options *options, bool privileged);

#endif
