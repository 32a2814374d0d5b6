/*
 * Finds the DWARF unit and source line of an address, by libdw.
 */
#ifndef SS_SYMBOLIZE_LINES_H
#define SS_SYMBOLIZE_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
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
	struct ss_scopes *scopes; /* inlines.h; NULL: not built yet */
};

/* Reads the DWARF of a file. NULL: it has none, or its kind or size is not supported, or
   no memory. alternate is the dwz file or NULL. Both may be freed afterwards. may_fault: see
   ss_sections_read(). */
struct ss_dwarf *ss_dwarf_open(const struct ss_elf *elf, const struct ss_elf *alternate,
			       bool may_fault);
void ss_dwarf_close(struct ss_dwarf *dwarf);

/* The unit that has code at an ELF virtual address, or NULL. Valid until the next call,
   which may add units. */
struct ss_unit *ss_dwarf_find_unit(struct ss_dwarf *dwarf, uint64_t address);

/* The source line of an address of this unit; zeroed if unknown. */
struct ss_location ss_unit_find_line(struct ss_unit *unit, uint64_t address);

/* For functions that search all units. */
Dwarf *ss_dwarf_handle(struct ss_dwarf *dwarf);

SS_DEFINE_CLEANUP(struct ss_dwarf, ss_dwarf, ss_dwarf_close)

#endif
