/*
 * Reads the symbol tables of an ELF file: found by the section headers or, in a memory
 * image without them, by the dynamic segment. symbolize/symtab.h interprets the symbols.
 */
#ifndef SS_ELF_TABLES_H
#define SS_ELF_TABLES_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elffile.h"

struct ss_table {
	Elf64_Sym *symbols; /* owned */
	size_t count;
	char *names; /* owned; with a NUL appended */
	size_t names_size;
};

/* Finds the sections of a table and of its names. False: there is none, or it is corrupted. */
bool ss_table_find(const struct ss_elf *elf, uint32_t type,
		   const Elf64_Shdr **ret_symbols, const Elf64_Shdr **ret_names);

/* Reads the table of a section type (SHT_SYMTAB or SHT_DYNSYM) and its names. False: there
   is none, it is corrupted, or there is no memory. */
bool ss_table_read(const struct ss_elf *elf, uint32_t type, struct ss_table *ret);

/*
 * Reads .dynsym by PT_DYNAMIC. base: the address of the lowest segment in memory. glibc
 * makes the addresses in the dynamic segment of a loaded module absolute. Format: System V
 * gABI, chapter 5, and for DT_GNU_HASH what binutils writes.
 */
bool ss_table_read_dynamic(const struct ss_elf *elf, uint64_t base, struct ss_table *ret);

void ss_table_free(struct ss_table *table);

#define _cleanup_table_ __attribute__((cleanup(ss_table_free)))

#endif
