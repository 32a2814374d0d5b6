/*
 * The symbol tables of one ELF file as they lie in it: found through the section
 * headers, or, in a memory image without them, through the dynamic segment. What a
 * symbol means and which one is better is for symtab.h to say.
 */
#ifndef SS_SYMBOLIZE_TABLES_H
#define SS_SYMBOLIZE_TABLES_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/elffile.h"

struct ss_table {
	Elf64_Sym *symbols; /* owned */
	size_t count;
	char *names; /* owned; NUL behind the last byte */
	size_t names_size;
};

/* Reads the table of this section type (SHT_SYMTAB or SHT_DYNSYM) and its names.
   False: there is none, it is damaged, or there is no memory. */
bool ss_table_read(const struct ss_elf *elf, uint32_t type, struct ss_table *ret);

/*
 * Reads .dynsym through PT_DYNAMIC. base is where the lowest segment was mapped: glibc
 * replaces the addresses in the dynamic segment of a loaded module by absolute ones.
 * The System V ABI, chapter 5, and for DT_GNU_HASH the layout that binutils writes.
 */
bool ss_table_read_dynamic(const struct ss_elf *elf, uint64_t base, struct ss_table *ret);

void ss_table_free(struct ss_table *table);

#define _cleanup_table_ __attribute__((cleanup(ss_table_free)))

#endif
