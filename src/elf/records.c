/* The structs of ELF files: System V gABI, chapters 4 and 5. */
#include "elf/records.h"

#include <string.h>

static const struct {
	uint8_t narrow;
	uint8_t wide;
} sizes[] = {
	[SS_ELF_HEADER] = { sizeof(Elf32_Ehdr), sizeof(Elf64_Ehdr) },
	[SS_ELF_SEGMENT] = { sizeof(Elf32_Phdr), sizeof(Elf64_Phdr) },
	[SS_ELF_SECTION] = { sizeof(Elf32_Shdr), sizeof(Elf64_Shdr) },
	[SS_ELF_SYMBOL] = { sizeof(Elf32_Sym), sizeof(Elf64_Sym) },
	[SS_ELF_DYNAMIC] = { sizeof(Elf32_Dyn), sizeof(Elf64_Dyn) },
	[SS_ELF_RELOCATION] = { sizeof(Elf32_Rel), sizeof(Elf64_Rela) },
	[SS_ELF_PACKED] = { sizeof(Elf32_Chdr), sizeof(Elf64_Chdr) },
};

size_t ss_elf_record_size(uint8_t elf_class, enum ss_elf_record record)
{
	return elf_class == ELFCLASS32 ? sizes[record].narrow : sizes[record].wide;
}

/* Both may be the same bytes: each is read before it is written. */
#define WIDEN(type, ...)                                                                 \
	do {                                                                             \
		Elf32_##type n;                                                          \
		memcpy(&n, from, sizeof(n));                                             \
		const Elf64_##type wide = { __VA_ARGS__ };                               \
		memcpy(to, &wide, sizeof(wide));                                         \
	} while (0)
#define F(field) .field = n.field

static void widen_header(const uint8_t *from, uint8_t *to)
{
	Elf64_Ehdr wide;
	Elf32_Ehdr n;

	memcpy(&n, from, sizeof(n));
	wide = (Elf64_Ehdr){ F(e_type),	    F(e_machine), F(e_version),	 F(e_entry),
			     F(e_phoff),    F(e_shoff),	  F(e_flags),	 F(e_ehsize),
			     F(e_phnum),    F(e_shnum),	  F(e_shstrndx), F(e_phentsize),
			     F(e_shentsize) };
	memcpy(wide.e_ident, n.e_ident, sizeof(wide.e_ident));
	memcpy(to, &wide, sizeof(wide));
}

static void widen(enum ss_elf_record record, const uint8_t *from, uint8_t *to)
{
	switch (record) {
	case SS_ELF_HEADER:
		widen_header(from, to);
		break;
	case SS_ELF_SEGMENT:
		WIDEN(Phdr, F(p_type), F(p_flags), F(p_offset), F(p_vaddr), F(p_paddr),
		      F(p_filesz), F(p_memsz), F(p_align));
		break;
	case SS_ELF_SECTION:
		WIDEN(Shdr, F(sh_name), F(sh_type), F(sh_flags), F(sh_addr), F(sh_offset),
		      F(sh_size), F(sh_link), F(sh_info), F(sh_addralign), F(sh_entsize));
		break;
	case SS_ELF_SYMBOL:
		WIDEN(Sym, F(st_name), F(st_info), F(st_other), F(st_shndx), F(st_value),
		      F(st_size));
		break;
	case SS_ELF_DYNAMIC:
		WIDEN(Dyn, F(d_tag), .d_un.d_val = n.d_un.d_val);
		break;
	case SS_ELF_PACKED:
		WIDEN(Chdr, F(ch_type), F(ch_size), F(ch_addralign));
		break;
	case SS_ELF_RELOCATION: {
		Elf32_Rel n;
		memcpy(&n, from, sizeof(n));
		const Elf64_Rela wide = { F(r_offset),
					  .r_info = ELF64_R_INFO(
						  (uint64_t)ELF32_R_SYM(n.r_info),
						  ELF32_R_TYPE(n.r_info)) };
		memcpy(to, &wide, sizeof(wide));
		break;
	}
	}
}

void ss_elf_widen(uint8_t elf_class, enum ss_elf_record record, void *bytes, size_t count)
{
	uint8_t *at = bytes;

	for (size_t i = elf_class == ELFCLASS32 ? count : 0; i > 0; i--)
		widen(record, at + (i - 1) * sizes[record].narrow,
		      at + (i - 1) * sizes[record].wide);
}
