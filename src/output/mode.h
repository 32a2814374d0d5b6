/*
 * Names of modes, on the command line and in every format.
 */
#ifndef SS_OUTPUT_MODE_H
#define SS_OUTPUT_MODE_H

#include <stdbool.h>

#include "stacksnap.h"

/* "stop", "live", "no-stop", "auto". Never NULL. */
const char *ss_mode_name(enum ss_mode mode);

/* Finds the mode of that name. Returns false if there is none. */
bool ss_mode_find(const char *name, enum ss_mode *ret);

#endif
