/*
 * The names in a perf map. JIT compilers append a line "START SIZE NAME" (hexadecimal)
 * for each piece of code (Linux, tools/perf/Documentation/jit-interface.txt). Compilers
 * reuse memory, so that pieces may overlap; at one moment the last line counts. While a
 * process is recorded the map grows, and it is unknown which of several overlapping
 * lines was valid for a sample: then an address has a name only if they agree. The text
 * is untrusted: all other lines are skipped.
 */
#ifndef SS_SYMBOLIZE_PERFMAP_H
#define SS_SYMBOLIZE_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "data/snapshot.h"
#include "symbolize/symtab.h"

struct ss_perfmap;

/* Bytes that are read at most: 300,000 functions. */
enum { SS_PERFMAP_MAX = 32 << 20 };

/* Comparisons of overlapping pieces for all maps of a snapshot. Reused memory usually
   has one other piece. */
enum { SS_PERFMAP_COMPARISONS = 16 << 20 };

/* Parses text, which may be freed afterwards. Lines from offset stable_size on were added
   while the process was recorded. NULL without memory. */
struct ss_perfmap *ss_perfmap_new(const char *text, size_t size, uint64_t stable_size);

/* Reads a file; of a file that is too large only the end, which has the newest names.
   *comparisons: how many remain; without any, lines that were added later give no names.
   NULL: the file cannot be read, or no memory. */
struct ss_perfmap *ss_perfmap_read(const struct ss_module_impl *file,
				   uint64_t stable_size, size_t *comparisons);
void ss_perfmap_free(struct ss_perfmap *map);

/* The piece of code at an address of the process. The name is valid as long as map. */
bool ss_perfmap_find(const struct ss_perfmap *map, uint64_t address,
		     struct ss_symbol *ret);

SS_DEFINE_CLEANUP(struct ss_perfmap, ss_perfmap, ss_perfmap_free)

/* The maps of a snapshot, which must outlive them. Each is read on first use. */
struct ss_perfmaps {
	const struct ss_snapshot *snapshot;
	struct ss_perfmaps_item {
		struct ss_perfmap *map; /* NULL: it cannot be read */
		bool read;
	} * items;	    /* by number */
	size_t comparisons; /* that remain */
};

/* False without memory. */
bool ss_perfmaps_init(struct ss_perfmaps *maps, const struct ss_snapshot *snapshot);
void ss_perfmaps_deinit(struct ss_perfmaps *maps);

/* The piece of code at an address, by the map of this number. */
bool ss_perfmaps_find(struct ss_perfmaps *maps, uint32_t number, uint64_t address,
		      struct ss_symbol *ret);

#endif
