/*
 * Downloads executables and debug files by build-id, with libdebuginfod if it is installed.
 * Only on request, since the servers learn which programs were analysed.
 */
#ifndef SS_CLI_DEBUGINFOD_H
#define SS_CLI_DEBUGINFOD_H

#include <stdbool.h>

#include "base/error.h"

struct ss_debuginfod;

/* Errors: INVALID (DEBUGINFOD_URLS is empty, or the library is missing), NO_MEMORY. */
struct ss_error *ss_debuginfod_new(struct ss_debuginfod **ret);
void ss_debuginfod_free(struct ss_debuginfod *debuginfod);

/* A ss_file_finder; data is a struct ss_debuginfod. */
int ss_debuginfod_find(void *data, const char *build_id, bool debug);

SS_DEFINE_CLEANUP(struct ss_debuginfod, ss_debuginfod, ss_debuginfod_free)

#endif
