/*
 * From the text of maps to areas and modules. No file is opened here and no memory
 * read: files.c fills in what a module's bytes are.
 */
#ifndef SS_TARGET_REGIONS_H
#define SS_TARGET_REGIONS_H

#include "base/error.h"
#include "base/io.h"
#include "model/capture.h"

/* Most areas that are read of one process; vm.max_map_count is 65,530 by default. */
enum { SS_AREAS_MAX = 4 << 20 };

/* Fills capture->areas and capture->modules (those with executable mappings) from
   the text of maps. NO_MEMORY. */
struct ss_error *ss_regions_read(struct ss_capture *capture, const struct ss_text *maps);

/* Drops areas and modules, before they are read anew. */
void ss_regions_clear(struct ss_capture *capture);

/*
 * Whether two texts of maps, taken before and after a freeze, leave open which module
 * an address belonged to in between: an executable file mapping was removed or
 * replaced. (What was only added can be told: nothing else was there.)
 */
bool ss_regions_conflict(const struct ss_text *before, const struct ss_text *after);

#endif
