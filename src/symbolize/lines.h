/*
 * The DWARF of one module: which unit an address belongs to, and the source line. It
 * stands on libdw, which it keeps away from whatever is not needed: sections of no use
 * here are hidden (unpacking them is half the cost), and libdw is never let to open
 * another file by a name that the module gives.
 */
#ifndef SS_SYMBOLIZE_LINES_H
#define SS_SYMBOLIZE_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "symbolize/elffile.h"

struct ss_dwarf;
struct ss_scopes;

struct ss_location {
	const char *file; /* valid as long as the ss_dwarf; NULL: not known */
	uint32_t line;
	uint32_t column;
};

struct ss_unit {
	Dwarf_Off offset; /* of its DIE */
	Dwarf_Die die;
	bool opened;		  /* die was looked for */
	bool valid;		  /* and found */
	struct ss_scopes *scopes; /* inlines.h; NULL: not built yet */
};

/* Reads the DWARF of a file. NULL: it has none, or not of a kind or size that can be
   used, or no memory. alternate (dwz) may be NULL; both may go afterwards. */
struct ss_dwarf *ss_dwarf_open(const struct ss_elf *elf, const struct ss_elf *alternate);
void ss_dwarf_close(struct ss_dwarf *dwarf);

/* The unit that has code at an ELF virtual address, or NULL. Valid until the next
   call, because a miss may add units. */
struct ss_unit *ss_dwarf_find_unit(struct ss_dwarf *dwarf, uint64_t address);

/* The source line of an address of this unit; zeroes: not known. */
struct ss_location ss_unit_find_line(struct ss_unit *unit, uint64_t address);

SS_DEFINE_CLEANUP(struct ss_dwarf, ss_dwarf, ss_dwarf_close)

#endif
