/*
 * Passes on sanitizer findings of a sandboxed child, in builds with sanitizers.
 */
#ifndef SS_CLI_SANITIZER_H
#define SS_CLI_SANITIZER_H

#include "stacksnap.h"
#include "sandbox/sandbox.h"

/* If the child ended with the status of a sanitizer: copies its messages to standard error
   and ends this process with that status, so that the finding is not lost. */
void ss_sanitizer_exit(const struct ss_sandbox_result *result);

#endif
