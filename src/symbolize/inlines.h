/*
 * Finds the functions that were inlined at an address. The tree of a unit is walked once
 * and its code ranges are sorted; each lookup is then a binary search, followed by the
 * enclosing scopes. The tree is untrusted: its depth and number of entries are limited,
 * and inlined calls beyond these limits are not shown.
 */
#ifndef SS_SYMBOLIZE_INLINES_H
#define SS_SYMBOLIZE_INLINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/lines.h"

/* Real code has up to about thirty inlined calls at one place. */
enum { SS_INLINES_MAX = 64 };

struct ss_inline {
	const char *name;	 /* linkage name or source name; NULL: unknown */
	struct ss_location call; /* call site in the next outer function */
};

/* Returns the number of inlined calls at an ELF virtual address of the unit, innermost
   first. *function: the name of the function that contains them all, or NULL, and its
   start. calls: whether to look up call sites, which makes libdw decode the whole line
   table for the file names. Strings are valid as long as the ss_dwarf. */
size_t ss_unit_find_inlines(struct ss_unit *unit, uint64_t address, bool calls,
			    struct ss_inline ret[SS_INLINES_MAX], const char **function,
			    uint64_t *function_start);

void ss_scopes_free(struct ss_scopes *scopes);

#endif
