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
#include "data/module.h"

struct ss_table {
	Elf64_Sym *symbols; /* owned */
	size_t count;
	char *names; /* owned; with a NUL appended */
	size_t names_size;
};

/* Reads the table of a section type (SHT_SYMTAB or SHT_DYNSYM) and its names. False: there
   is none, it is corrupted, or there is no memory. */
bool ss_table_read(const struct ss_elf *elf, uint32_t type, struct ss_table *ret);

/* Whether one of the names of such a table begins like that. The first 128 KiB of them are searched. */
bool ss_table_has_name(const struct ss_elf *elf, uint32_t type, const char *begin);

/*
 * Reads .dynsym by PT_DYNAMIC. base: the address of the lowest segment in memory. glibc
 * makes the addresses in the dynamic segment of a loaded module absolute. Format: System V
 * gABI, chapter 5, and for DT_GNU_HASH what binutils writes.
 */
bool ss_table_read_dynamic(const struct ss_elf *elf, uint64_t base, struct ss_table *ret);

void ss_table_free(struct ss_table *table);

#define _cleanup_table_ __attribute__((cleanup(ss_table_free)))

/*
 * The symbols of a large table that can be found at given addresses. To copy and sort all
 * symbols of a program takes milliseconds, and a snapshot needs a few dozen. The table is read
 * in parts, and only names of what is kept are read.
 *
 * For these addresses a search of the excerpt finds what a search of the whole table finds.
 * It has
 *  - symbols that cover an address;
 *  - for each address those that begin where the last one at or before it begins, of
 *    which one without a size may name it;
 *  - symbols that cover that place, where one without a size does not count then.
 */

struct ss_table_excerpt {
	const uint64_t *addresses; /* ascending */
	size_t count;
	/* Which symbols and names count. names_size: of the table's section of names */
	bool (*accepts)(const Elf64_Sym *symbol, size_t names_size);
	bool (*accepts_name)(const char *name);
};

/* Like ss_table_read(), with the order of the table. The result has a symbol that counts if the
   table has one. False: read the whole table. It is small, or unusual, or there is none. */
bool ss_table_read_excerpt(const struct ss_elf *elf, uint32_t type,
			   const struct ss_table_excerpt *excerpt, struct ss_table *ret);

/*
 * Finds a few symbols of a module by name: of data that its program offers to debuggers.
 */

struct ss_elf_symbol {
	uint64_t address; /* ELF virtual; 0: not found */
	uint64_t size;
};

/*
 * Searches the exported symbols of a module, which stripping leaves. If it has no hash table of
 * them, all of its symbols are searched. ret has an element for each of the count names. Without
 * the first name, none is searched. False: the module is no ELF file, has no symbols, or there is
 * no memory.
 */
bool ss_elf_find_symbols(const struct ss_module_impl *module, const char *const *names,
			 size_t count, struct ss_elf_symbol *ret);

/* The same for symbols that are not exported, of a module in which the first one is all of a section
   of its own, which stripping leaves. Searches all symbols, if the module has that section. */
bool ss_elf_find_hidden_symbols(const struct ss_module_impl *module, const char *section,
				const char *const *names, size_t count,
				struct ss_elf_symbol *ret);

/* Finds a section by name, which stripping leaves. False: the module has none. */
bool ss_elf_find_section_address(const struct ss_module_impl *module, const char *name,
				 struct ss_elf_symbol *ret);

#endif
