/*
 * A handmade ELF image: one text section at 0x1000 and a symbol table, so that a test
 * can define exactly which symbols exist.
 */
#ifndef SS_TESTS_ELF_BUILDER_H
#define SS_TESTS_ELF_BUILDER_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum { BUILDER_SYMBOLS_MAX = 64, BUILDER_NAMES_MAX = 1024 };
enum { BUILDER_TEXT = 1, BUILDER_SYMTAB, BUILDER_STRTAB, BUILDER_OTHER, BUILDER_COUNT };

struct elf_builder {
	Elf64_Ehdr header;
	Elf64_Shdr sections[BUILDER_COUNT];
	Elf64_Sym symbols[BUILDER_SYMBOLS_MAX];
	char names[BUILDER_NAMES_MAX];
	size_t symbol_count;
	size_t names_size;
};

static inline void elf_builder_add(struct elf_builder *elf, const char *name,
				   uint64_t start, uint64_t size, unsigned bind,
				   unsigned type, uint16_t section)
{
	elf->symbols[elf->symbol_count++] = (Elf64_Sym){
		.st_name = (uint32_t)elf->names_size,
		.st_info = (unsigned char)ELF64_ST_INFO(bind, type),
		.st_shndx = section,
		.st_value = start,
		.st_size = size,
	};
	memcpy(elf->names + elf->names_size, name, strlen(name) + 1);
	elf->names_size += strlen(name) + 1;
	elf->sections[BUILDER_SYMTAB].sh_size = elf->symbol_count * sizeof(Elf64_Sym);
	elf->sections[BUILDER_STRTAB].sh_size = elf->names_size;
}

static inline void elf_builder_init(struct elf_builder *elf)
{
	memset(elf, 0, sizeof(*elf));
	memcpy(elf->header.e_ident, ELFMAG, SELFMAG);
	elf->header.e_ident[EI_CLASS] = ELFCLASS64;
	elf->header.e_ident[EI_DATA] = ELFDATA2LSB;
	elf->header.e_type = ET_DYN;
	elf->header.e_machine = EM_X86_64;
	elf->header.e_shoff = offsetof(struct elf_builder, sections);
	elf->header.e_shentsize = sizeof(Elf64_Shdr);
	elf->header.e_shnum = BUILDER_COUNT;
	elf->sections[BUILDER_TEXT] = (Elf64_Shdr){ .sh_type = SHT_NOBITS,
						    .sh_addr = 0x1000,
						    .sh_size = 0x1000 };
	elf->sections[BUILDER_OTHER] = (Elf64_Shdr){ .sh_type = SHT_NOBITS,
						     .sh_addr = 0x2000,
						     .sh_size = 0x1000 };
	elf->sections[BUILDER_SYMTAB] =
		(Elf64_Shdr){ .sh_type = SHT_SYMTAB,
			      .sh_offset = offsetof(struct elf_builder, symbols),
			      .sh_link = BUILDER_STRTAB,
			      .sh_entsize = sizeof(Elf64_Sym) };
	elf->sections[BUILDER_STRTAB] =
		(Elf64_Shdr){ .sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct elf_builder, names) };
	elf_builder_add(elf, "", 0, 0, STB_LOCAL, STT_NOTYPE, SHN_UNDEF);
}

#endif
