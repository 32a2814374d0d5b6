/*
 * The names in a perf map, a line of text for each piece of code that a JIT compiler has
 * made: "START SIZE NAME", hexadecimal (Linux, tools/perf/Documentation/
 * jit-interface.txt). Compilers append to it and use memory again: where pieces overlap,
 * the last line holds, of a process at one moment. Of one that was looked at while lines
 * were added it cannot be told which one held: such an address has no name then, unless
 * it is the same. The text is hostile: what is no such line is passed over.
 */
#ifndef SS_SYMBOLIZE_PERFMAP_H
#define SS_SYMBOLIZE_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/snapshot.h"
#include "symbolize/symtab.h"

struct ss_perfmap;

/* What is read of it: 300,000 functions. */
enum { SS_PERFMAP_MAX = 32 << 20 };

/* Looks at pieces on pieces; memory that is used again is mostly used by one other. */
enum { SS_PERFMAP_LOOKS = 16 << 20 };

/* Reads size bytes of text, which may go afterwards. settled: the offset of the first line
   that was added later. NULL without memory. */
struct ss_perfmap *ss_perfmap_new(const char *text, size_t size, uint64_t settled);

/* Reads a file; of one that is larger than the bound the end, where the newest names are.
   looks: how many are left for all maps; without any what has changed has no names. NULL:
   it cannot be read, or no memory. */
struct ss_perfmap *ss_perfmap_read(const struct ss_module_impl *file, uint64_t settled,
				   size_t *looks);
void ss_perfmap_free(struct ss_perfmap *map);

/* The piece of code at an address of the process. The name is valid as long as map. */
bool ss_perfmap_find(const struct ss_perfmap *map, uint64_t address,
		     struct ss_symbol *ret);

SS_DEFINE_CLEANUP(struct ss_perfmap, ss_perfmap, ss_perfmap_free)

/* Those of a snapshot, which outlives them, each read on first use. */
struct ss_perfmaps {
	const struct ss_snapshot *snapshot;
	struct ss_perfmaps_item {
		struct ss_perfmap *map; /* NULL: it cannot be read */
		bool read;
	} * items;    /* by number */
	size_t looks; /* that are left */
};

/* False without memory. */
bool ss_perfmaps_init(struct ss_perfmaps *maps, const struct ss_snapshot *snapshot);
void ss_perfmaps_deinit(struct ss_perfmaps *maps);

/* What is at an address, by the map of that number. */
bool ss_perfmaps_find(struct ss_perfmaps *maps, uint32_t number, uint64_t address,
		      struct ss_symbol *ret);

#endif
