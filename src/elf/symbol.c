#include "elf/symbol.h"

#include <string.h>

#include "elf/elffile.h"

enum { PART = 64 * 1024 };

/* Whether the string is the end of one in a table. A copy of the table, which has many megabytes
   in some programs, would take several times as long. */
static bool has_string(const struct ss_elf *elf, const Elf64_Shdr *strings,
		       const char *string)
{
	size_t size = strlen(string) + 1;
	char part[PART];

	/* Parts overlap by what may be the beginning of the string. */
	for (uint64_t at = 0; size <= PART && at + size <= strings->sh_size;
	     at += PART - (size - 1)) {
		size_t n = (size_t)SS_MIN(strings->sh_size - at, (uint64_t)PART);
		if (strings->sh_offset > UINT64_MAX - at ||
		    !ss_elf_read(elf, strings->sh_offset + at, part, n))
			return false;
		if (memmem(part, n, string, size))
			return true;
	}
	return false;
}

static void search(const struct ss_elf *elf, const Elf64_Shdr *section,
		   const char *const *names, size_t count, struct ss_elf_symbol *ret)
{
	const Elf64_Shdr *strings = ss_elf_section(elf, section->sh_link);

	if (!strings || strings->sh_type == SHT_NOBITS ||
	    strings->sh_size > SS_ELF_SECTION_MAX || !has_string(elf, strings, names[0]))
		return;
	_cleanup_free_ Elf64_Sym *symbols = ss_elf_copy_section(elf, section);
	_cleanup_free_ char *text = ss_elf_copy_section(elf, strings);
	size_t symbol_count = section->sh_size / sizeof(*symbols);

	for (size_t i = 0; symbols && text && i < symbol_count; i++) {
		const Elf64_Sym *symbol = &symbols[i];
		/* The copy ends with a NUL. */
		if (symbol->st_name >= strings->sh_size || symbol->st_shndx == SHN_UNDEF)
			continue;
		for (size_t k = 0; k < count; k++) {
			if (ret[k].address ||
			    strcmp(text + symbol->st_name, names[k]) != 0)
				continue;
			ret[k] = (struct ss_elf_symbol){ .address = symbol->st_value,
							 .size = symbol->st_size };
		}
	}
}

static struct ss_elf *open_elf(const struct ss_module_impl *module)
{
	if (module->fd >= 0)
		return ss_elf_from_fd(module->fd);
	return module->bytes ? ss_elf_from_memory(module->bytes, module->size) : NULL;
}

bool ss_elf_find_symbols(const struct ss_module_impl *module, const char *const *names,
			 size_t count, struct ss_elf_symbol *ret)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = open_elf(module);
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	bool found = false;

	memset(ret, 0, count * sizeof(*ret));
	for (size_t t = 0; elf && t < sizeof(types) / sizeof(types[0]); t++) {
		for (size_t i = 0; i < elf->section_count; i++) {
			if (elf->sections[i].sh_type != types[t])
				continue;
			search(elf, &elf->sections[i], names, count, ret);
			found = true;
		}
	}
	return found;
}
