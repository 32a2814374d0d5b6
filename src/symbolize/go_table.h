/*
 * What the runtime of Go knows of its functions (.gopclntab), which strip(1) leaves alone:
 * their names, as a symbol table, and where the rest lies. Layouts: those of Go 1.2, 1.16,
 * 1.18, and 1.20 to 1.25, of src/runtime/symtab.go (pcHeader, functab, _func) and
 * debug/gosym there.
 */
#ifndef SS_SYMBOLIZE_GO_TABLE_H
#define SS_SYMBOLIZE_GO_TABLE_H

#include "symbolize/tables.h"

/* All offsets count from the begin of the section. */
struct ss_go_table {
	uint64_t file_offset;
	uint64_t size;
	unsigned word;	    /* bytes of an entry and of an offset: 4 (1.18) or 8 */
	unsigned step;	    /* of program counters: the smallest instruction */
	uint64_t count;	    /* of functions */
	uint64_t text;	    /* ELF virtual address that entries count from; 0: none */
	uint64_t functions; /* pairs: entry, offset of a description; and the last end */
	uint64_t base;	    /* what offsets of descriptions count from */
	uint64_t numbers;   /* what offsets of encoded numbers count from */
	uint64_t names;
	uint64_t names_end;
};

/* False: there is none, or it is damaged or of a layout that is not known. */
bool ss_go_table_find(const struct ss_elf *elf, struct ss_go_table *ret);

/* False: likewise, or no memory. */
bool ss_go_table_read(const struct ss_elf *elf, struct ss_table *ret);

#endif
