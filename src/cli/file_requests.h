/*
 * Files that an analysis in the sandbox needs and cannot open itself: those that only the
 * caller may read, and those that are on a debuginfod server. The child asks for them with
 * ss_sandbox_request(); the caller opens or downloads them before the next attempt.
 */
#ifndef SS_CLI_FILE_REQUESTS_H
#define SS_CLI_FILE_REQUESTS_H

#include "base/vector.h"
#include "cli/debuginfod.h"
#include "stacksnap.h"

/* Attempts that may end with requests: for modules, for their debug files, for alternate
   debug files, and a spare one. */
enum { SS_FILE_REQUEST_ROUNDS = 4 };

struct ss_file_request {
	char *key; /* a letter for the kind, and a path or a build-id */
	int fd;	   /* or -1: there is no such file. Owned. */
};

struct ss_file_requests {
	SS_VECTOR(struct ss_file_request) answered;
	SS_VECTOR(char *) pending;	  /* in the child only */
	struct ss_debuginfod *debuginfod; /* or NULL: no server is asked. Not owned. */
};

void ss_file_requests_deinit(struct ss_file_requests *requests);

/* In the child: a ss_file_finder and a ss_file_opener; data is struct ss_file_requests. */
int ss_file_requests_find(void *data, const char *build_id, bool debug);
int ss_file_requests_open(void *data, const char *path);

/* In the child: sends the pending requests; *ret says whether there are any. */
struct ss_error *ss_file_requests_send(const struct ss_file_requests *requests,
				       const struct ss_sandbox_attempt *attempt,
				       bool *ret);

/* In the caller: opens the requested files if they are ELF files. */
void ss_file_requests_answer(struct ss_file_requests *requests, const void *bytes,
			     size_t size);

#endif
