/*
 * Finds the DWARF unit and source line of an address, by libdw.
 */
#ifndef SS_SYMBOLIZE_LINES_H
#define SS_SYMBOLIZE_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elffile.h"

struct ss_dwarf;
struct ss_scopes;

struct ss_location {
	const char *file; /* valid as long as the ss_dwarf; NULL: unknown */
	uint32_t line;
	uint32_t column;
};

struct ss_unit {
	Dwarf_Off offset; /* of its DIE */
	Dwarf_Die die;
	bool opened;		  /* die was read */
	bool valid;		  /* die was read successfully */
	struct ss_scopes *scopes; /* inlines.c; NULL: not built yet */
};

/* Reads the DWARF of a file. NULL: it has none, or its kind or size is not supported, or
   no memory. alternate is the dwz file or NULL. Both may be freed afterwards. may_fault: see
   sections_read(). */
struct ss_dwarf *ss_dwarf_open(const struct ss_elf *elf, const struct ss_elf *alternate,
			       bool may_fault);
void ss_dwarf_close(struct ss_dwarf *dwarf);

/* The unit that has code at an ELF virtual address, or NULL. Valid until the next call,
   which may add units. */
struct ss_unit *ss_dwarf_find_unit(struct ss_dwarf *dwarf, uint64_t address);

/* The source line of an address of this unit; zeroed if unknown. */
struct ss_location ss_unit_find_line(struct ss_unit *unit, uint64_t address);

SS_DEFINE_CLEANUP(struct ss_dwarf, ss_dwarf, ss_dwarf_close)

/*
 * From names and source lines to code, by DWARF: the other direction.
 * Searches all units of a file.
 */

typedef void ss_line_found(void *data, uint64_t address, const char *file, uint32_t line);

/*
 * Calls found() for each address at which code of a line begins: the first one of each
 * sequence. file: a path, or its last parts. Returns 0, or, if the line has no code, the next
 * one that has; 0 also if there is none.
 */
uint32_t ss_dwarf_find_line(struct ss_dwarf *dwarf, const char *file, uint32_t line,
			    ss_line_found *found, void *data);

/* Whether a name (linkage name, or else name) is searched. */
typedef bool ss_inlined_wanted(void *data, const char *name);
/* file may be NULL, line 0: the call is not known. */
typedef void ss_inlined_found(void *data, const char *name, const char *file,
			      uint32_t line);

/* Calls found() for each inlined call of the functions that wanted() accepts. Ends early in
   very large files. */
void ss_dwarf_find_inlined(struct ss_dwarf *dwarf, ss_inlined_wanted *wanted,
			   ss_inlined_found *found, void *data);

/*
 * Finds the functions that were inlined at an address. The tree of a unit is walked once
 * and its code ranges are sorted; each lookup is then a binary search, followed by the
 * enclosing scopes. The tree is untrusted: its depth and number of entries are limited,
 * and inlined calls beyond these limits are not shown.
 */

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
