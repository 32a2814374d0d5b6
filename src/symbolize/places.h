/*
 * From names and source lines to code, by DWARF: the other direction of lines.h and inlines.h.
 * Searches all units of a file.
 */
#ifndef SS_SYMBOLIZE_PLACES_H
#define SS_SYMBOLIZE_PLACES_H

#include "symbolize/lines.h"

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

#endif
