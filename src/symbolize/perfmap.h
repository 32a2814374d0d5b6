/*
 * The names in a perf map, a line of text for each piece of code that a JIT compiler has
 * made: "START SIZE NAME", hexadecimal (Linux, tools/perf/Documentation/
 * jit-interface.txt). Compilers append to it and use memory again: where pieces overlap,
 * the last line holds. The text is hostile: what is no such line is passed over.
 */
#ifndef SS_SYMBOLIZE_PERFMAP_H
#define SS_SYMBOLIZE_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/module.h"
#include "symbolize/symtab.h"

struct ss_perfmap;

/* What is read of it: 300,000 functions. */
enum { SS_PERFMAP_MAX = 32 << 20 };

/* Reads size bytes of text, which may go afterwards. NULL without memory. */
struct ss_perfmap *ss_perfmap_new(const char *text, size_t size);

/* Reads a file; of one that is larger than the bound the end, where the newest names are.
   NULL: it cannot be read, or no memory. */
struct ss_perfmap *ss_perfmap_read(const struct ss_module_impl *file);
void ss_perfmap_free(struct ss_perfmap *map);

/* The piece of code at an address of the process. The name is valid as long as map. */
bool ss_perfmap_find(const struct ss_perfmap *map, uint64_t address,
		     struct ss_symbol *ret);

SS_DEFINE_CLEANUP(struct ss_perfmap, ss_perfmap, ss_perfmap_free)

#endif
