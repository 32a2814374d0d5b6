/*
 * The functions of a Go program as its own runtime knows them (.gopclntab), which strip(1)
 * leaves alone: as a symbol table. Layouts: those of Go 1.2, 1.16, 1.18 and 1.20 and
 * later, of src/runtime/symtab.go (pcHeader, functab, _func) and debug/gosym there.
 */
#ifndef SS_SYMBOLIZE_GO_TABLE_H
#define SS_SYMBOLIZE_GO_TABLE_H

#include "symbolize/tables.h"

/* False: there is none, it is damaged or of a layout that is not known, or there is no
   memory. */
bool ss_go_table_read(const struct ss_elf *elf, struct ss_table *ret);

#endif
