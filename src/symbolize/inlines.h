/*
 * Which functions were inlined at an address of a unit. The tree of a unit is walked
 * once and its code ranges kept sorted; a look-up afterwards is a binary search and the
 * way from the innermost scope outwards. The tree is hostile: its depth and the number
 * of its entries are bounded, and beyond the bounds inlined calls are just not shown.
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
	const char *name;	 /* as linked, or as written; NULL: not known */
	struct ss_location call; /* where it is called, in the next outer function */
};

/* The inlined calls at an ELF virtual address of the unit, innermost first; their
   number. function: the name of the function that holds them all, or NULL, and its
   start. Without calls, where they are called is not looked up: for the names of files
   libdw decodes the whole line table. Strings are valid as long as the ss_dwarf. */
size_t ss_unit_find_inlines(struct ss_unit *unit, uint64_t address, bool calls,
			    struct ss_inline ret[SS_INLINES_MAX], const char **function,
			    uint64_t *function_start);

void ss_scopes_free(struct ss_scopes *scopes);

#endif
