/*
 * Times as people type them: 30, 90s, 5m, 2h, 500ms.
 */
#ifndef SS_CLI_DURATION_H
#define SS_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* More than zero, and a year at most. False: it is no such time. */
bool ss_duration_parse(const char *text, uint64_t *ret_ns);

#endif
