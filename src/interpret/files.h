/*
 * Files that an analysis in the sandbox needs and cannot open itself: those that only the
 * caller may read, and those that are on a debuginfod server. The child asks for them with
 * ss_sandbox_request(); the caller opens or downloads them before the next attempt.
 */
#ifndef SS_INTERPRET_FILES_H
#define SS_INTERPRET_FILES_H

#include "base/vector.h"
#include "stacksnap.h"
#include "sandbox/sandbox.h"

/*
 * The child may have been taken over by what it reads. It gets no file that it cannot tell
 * apart from others already: another child, which has seen nothing else, must find the build-id
 * or the checksum in the file that was requested with it. Core dumps are never handed over.
 */

/* Attempts that may end with requests: for modules, for their debug files, for alternate
   debug files, and a spare one. */
enum { SS_FILE_REQUEST_ROUNDS = 4 };

/*
 * Executables and debug files by build-id, downloaded with libdebuginfod if it is installed.
 * Only on request, since the servers learn which programs were analysed.
 */
struct ss_debuginfod;

/* warn is called once if servers do not answer. Errors: INVALID (DEBUGINFOD_URLS is empty, or the
   library is missing), NO_MEMORY. */
struct ss_error *ss_debuginfod_new(void (*warn)(const char *text),
				   struct ss_debuginfod **ret);
void ss_debuginfod_free(struct ss_debuginfod *debuginfod);

SS_DEFINE_CLEANUP(struct ss_debuginfod, ss_debuginfod, ss_debuginfod_free)

struct ss_file_request {
	char *key; /* a letter for the kind, and a build-id, or a proof, a space and a path */
	int fd; /* or -1: there is no such file. Owned. */
};

struct ss_file_requests {
	SS_VECTOR(struct ss_file_request) answered;
	SS_VECTOR(char *) pending;	  /* in the child only */
	struct ss_debuginfod *debuginfod; /* or NULL: no server is asked. Not owned. */
	bool opens;			  /* paths are opened */
	bool privileged;		  /* more than the child */
	const char *sysroot;		  /* or NULL: none below it. Not owned. */
};

void ss_file_requests_deinit(struct ss_file_requests *requests);

/* Has a session request the files that it may not open, and those of the server if there is
   one. The sandbox must allow SS_FILE_REQUEST_ROUNDS requests. */
void ss_file_requests_attach(struct ss_file_requests *requests,
			     struct ss_session_options *session);

/* In the child: sends the pending requests; *ret says whether there are any. */
struct ss_error *ss_file_requests_send(const struct ss_file_requests *requests,
				       const struct ss_sandbox_attempt *attempt,
				       bool *ret);

/* In the caller: opens the requested files. bytes are untrusted. */
void ss_file_requests_answer(struct ss_file_requests *requests, const void *bytes,
			     size_t size);

#endif
