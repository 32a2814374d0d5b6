/*
 * Finds a few symbols of a module by name: of data that its program offers to debuggers.
 */
#ifndef SS_ELF_SYMBOL_H
#define SS_ELF_SYMBOL_H

#include "model/module.h"

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
