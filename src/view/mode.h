/*
 * The names of the modes, as the command line and every format have them.
 */
#ifndef SS_VIEW_MODE_H
#define SS_VIEW_MODE_H

#include <stdbool.h>

#include "stacksnap.h"

/* "stop", "live", "no-stop", "auto". Never NULL. */
const char *ss_mode_name(enum ss_mode mode);

/* The mode of that name; false: there is none. */
bool ss_mode_find(const char *name, enum ss_mode *ret);

#endif
