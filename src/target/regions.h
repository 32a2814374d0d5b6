/*
 * Converts the text of maps to areas and modules. Opens no file and reads no memory: see
 * files.h.
 */
#ifndef SS_TARGET_REGIONS_H
#define SS_TARGET_REGIONS_H

#include "base/error.h"
#include "base/io.h"
#include "model/capture.h"

/* Limit of areas of one process; vm.max_map_count is 65,530 by default. */
enum { SS_AREAS_MAX = 4 << 20 };

/* Fills capture->areas and capture->modules (those with executable mappings) from the
   text of maps. Errors: NO_MEMORY. */
struct ss_error *ss_regions_read(struct ss_capture *capture,
				 const struct ss_buffer *maps);

/* Drops areas and modules before they are read again. */
void ss_regions_clear(struct ss_capture *capture);

/*
 * Whether two texts of maps, from before and after a freeze, are ambiguous about the
 * module of an address in between: an executable file mapping was removed or replaced.
 * (Mappings that were only added are not ambiguous.)
 */
bool ss_regions_conflict(const struct ss_buffer *before, const struct ss_buffer *after);

#endif
