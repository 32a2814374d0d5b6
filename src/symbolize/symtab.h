/*
 * The symbol index of one module: all its code symbols in address order, so that a
 * look-up is a binary search. It answers with the name that the linker knows and the
 * start; demangling is somebody else's work. The choice among several symbols at an
 * address is that of elfutils (dwfl_module_addrinfo), whose users expect those names:
 *
 *  1. a sized symbol that covers the address, global or weak, before a local one;
 *  2. of those the one that begins last;
 *  3. at one start global, weak, local, then the smaller, then the first in the table;
 *  4. without any, the nearest sizeless symbol before it in the same section, provided
 *     that no other symbol lies in between. (elfutils does so in stripped files, too,
 *     and names in musl's libc whatever follows memset() after it.)
 */
#ifndef SS_SYMBOLIZE_SYMTAB_H
#define SS_SYMBOLIZE_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "symbolize/elffile.h"

struct ss_symbol {
	uint64_t start; /* ELF virtual address */
	uint64_t size;	/* 0: not known */
	const char *name;
};

struct ss_symtab;

/* An index without symbols, or NULL without memory. */
struct ss_symtab *ss_symtab_new(void);
void ss_symtab_free(struct ss_symtab *symtab);

/* Adds the table of this section type (SHT_SYMTAB, SHT_DYNSYM); the number of symbols
   that were of use. Tables that were added first win. At most three tables; the index
   keeps copies and elf may go. */
size_t ss_symtab_add(struct ss_symtab *symtab, const struct ss_elf *elf, uint32_t type);

/* The same for the functions of a Go program, as its runtime knows them. */
size_t ss_symtab_add_go(struct ss_symtab *symtab, const struct ss_elf *elf);

/* The same for the dynamic symbols of an image without section headers, of which the
   lowest segment lay at base. */
size_t ss_symtab_add_dynamic(struct ss_symtab *symtab, const struct ss_elf *elf,
			     uint64_t base);

/* Says that the tables leave functions out, as .dynsym does: then a sizeless symbol is
   the name of its own address only, and not of all up to the next one. */
void ss_symtab_set_partial(struct ss_symtab *symtab);

/* Sorts what was added; afterwards the index can be searched. False without memory. */
bool ss_symtab_build(struct ss_symtab *symtab);

/* A finished index of the best table of a memory image: for fuzzers and the vDSO. NULL:
   not an ELF image, or no memory. bytes may go afterwards. */
struct ss_symtab *ss_symtab_from_memory(const void *bytes, size_t size, uint64_t base);

/* The symbol at an ELF virtual address. Its name is valid as long as the index. */
bool ss_symtab_find(const struct ss_symtab *symtab, uint64_t address,
		    struct ss_symbol *ret);

/* The number of symbols, for statistics and tests. */
size_t ss_symtab_count(const struct ss_symtab *symtab);

SS_DEFINE_CLEANUP(struct ss_symtab, ss_symtab, ss_symtab_free)

#endif
