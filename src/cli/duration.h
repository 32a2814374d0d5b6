/*
 * Parses durations of the command line: 30, 90s, 5m, 2h, 500ms.
 */
#ifndef SS_CLI_DURATION_H
#define SS_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* A duration is more than zero and at most a year. Returns false if text is not one. */
bool ss_duration_parse(const char *text, uint64_t *ret_ns);

#endif
