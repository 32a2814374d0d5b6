/*
 * Converts the mappings of a process to areas and modules. Opens no file and reads no
 * memory: see process/files.h.
 */
#ifndef SS_DATA_REGIONS_H
#define SS_DATA_REGIONS_H

#include "base/error.h"
#include "base/io.h"
#include "base/procfs.h"
#include "data/capture.h"

/* Limit of areas of one process; vm.max_map_count is 65,530 by default. */
enum { SS_AREAS_MAX = 4 << 20 };

/* Fills capture->areas and capture->modules (those with executable mappings) from the
   text of maps. Errors: NO_MEMORY. */
struct ss_error *ss_regions_read(struct ss_capture *capture,
				 const struct ss_buffer *maps);

/*
 * Fills capture->areas and capture->modules from mappings one by one, in order of their
 * addresses: any number of ss_regions_add(), then ss_regions_end(). Both return false
 * without memory. Mappings beyond SS_AREAS_MAX are ignored.
 */
struct ss_regions;
struct ss_regions *ss_regions_begin(struct ss_capture *capture); /* NULL: no memory */
bool ss_regions_add(struct ss_regions *regions, const struct ss_maps_entry *entry);
bool ss_regions_end(struct ss_regions *regions);
void ss_regions_free(struct ss_regions *regions);

SS_DEFINE_CLEANUP(struct ss_regions, ss_regions, ss_regions_free)

/* Adds the areas and modules of another capture, which has to outlive this one: its strings
   are used. False without memory. */
bool ss_regions_share(struct ss_capture *capture, const struct ss_capture *from);

/* The same, without that condition. */
bool ss_regions_copy(struct ss_capture *capture, const struct ss_capture *from);

/* Drops areas and modules before they are read again. */
void ss_regions_clear(struct ss_capture *capture);

/*
 * Whether two texts of maps, from before and after a freeze, are ambiguous about the
 * module of an address in between: an executable file mapping was removed or replaced.
 * (Mappings that were only added are not ambiguous.)
 */
bool ss_regions_conflict(const struct ss_buffer *before, const struct ss_buffer *after);

#endif
