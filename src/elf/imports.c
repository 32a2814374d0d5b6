/*
 * The functions that a module imports: which symbol belongs to a slot of its global offset
 * table, according to the relocations that the loader applies (System V ABI, "Dynamic
 * Linking").
 */
#include <elf.h>
#include <string.h>

#include "elf/image.h"

enum {
	ENTRIES_MAX = 512,	   /* of the dynamic section */
	RELOCATIONS_MAX = 1 << 16, /* that are searched; of Chromium 3,000 */
	PART = 64,		   /* that are read at once */
};

/* What is used of the dynamic section: ELF virtual addresses and sizes. */
struct dynamic {
	uint64_t symbols;
	uint64_t strings;
	uint64_t strings_size;
	uint64_t got; /* the global offset table */
	struct {
		uint64_t address;
		uint64_t size;
	} tables[2]; /* of relocations: those of calls, and all others */
};

static bool read_dynamic(struct ss_image *image, struct dynamic *ret)
{
	const uint8_t class = image->arch->elf_class;
	const size_t entry_size = ss_elf_record_size(class, SS_ELF_DYNAMIC);
	size_t count = SS_MIN(image->dynamic_size / entry_size, (uint64_t)ENTRIES_MAX);

	*ret = (struct dynamic){};
	for (size_t i = 0; i < count; i++) {
		Elf64_Dyn entry;
		uint64_t at = image->dynamic_offset + i * entry_size;
		if (ss_image_read_at(image, at, &entry, entry_size) != entry_size)
			break;
		ss_elf_widen(class, SS_ELF_DYNAMIC, &entry, 1);
		if (entry.d_tag == DT_NULL)
			break;
		switch (entry.d_tag) {
		case DT_SYMTAB:
			ret->symbols = entry.d_un.d_ptr;
			break;
		case DT_STRTAB:
			ret->strings = entry.d_un.d_ptr;
			break;
		case DT_STRSZ:
			ret->strings_size = entry.d_un.d_val;
			break;
		case DT_PLTGOT:
			ret->got = entry.d_un.d_ptr;
			break;
		case DT_JMPREL:
			ret->tables[0].address = entry.d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			ret->tables[0].size = entry.d_un.d_val;
			break;
		case DT_RELA:
		case DT_REL:
			ret->tables[1].address = entry.d_un.d_ptr;
			break;
		case DT_RELASZ:
		case DT_RELSZ:
			ret->tables[1].size = entry.d_un.d_val;
			break;
		default:
			break;
		}
	}
	return ret->symbols && ret->strings;
}

/* The name of a dynamic symbol. */
static bool read_name(struct ss_image *image, const struct dynamic *dynamic,
		      uint64_t index, char *name, size_t size)
{
	Elf64_Sym symbol;
	uint64_t at = dynamic->symbols +
		      index * ss_elf_record_size(image->arch->elf_class, SS_ELF_SYMBOL);

	if (!ss_image_read_records(image, SS_ELF_SYMBOL, at, &symbol, 1) ||
	    symbol.st_name >= dynamic->strings_size)
		return false;
	size = SS_MIN(size, dynamic->strings_size - symbol.st_name);
	size = ss_image_read(image, dynamic->strings + symbol.st_name, name, size);
	return size > 0 && name[0] && memchr(name, '\0', size);
}

/* The index of the symbol in a table of relocations; 0: the slot is not there. */
static uint64_t find_symbol(struct ss_image *image, uint64_t address, uint64_t size,
			    uint64_t slot)
{
	const size_t each = ss_elf_record_size(image->arch->elf_class, SS_ELF_RELOCATION);
	uint64_t count = SS_MIN(size / each, (uint64_t)RELOCATIONS_MAX);
	Elf64_Rela part[PART];

	for (uint64_t i = 0; i < count; i += PART) {
		size_t n = SS_MIN(count - i, (uint64_t)PART);
		if (!ss_image_read_records(image, SS_ELF_RELOCATION, address + i * each,
					   part, n))
			return 0;
		for (size_t k = 0; k < n; k++) {
			if (part[k].r_offset == slot)
				return ELF64_R_SYM(part[k].r_info);
		}
	}
	return 0;
}

bool ss_image_find_import(struct ss_image *image, uint64_t slot, char *name, size_t size)
{
	struct dynamic dynamic;
	uint64_t symbol = 0;

	if (!read_dynamic(image, &dynamic))
		return false;
	if (slot & SS_SLOT_IN_GOT)
		slot = dynamic.got + (uint64_t)(int64_t)(int32_t)(uint32_t)slot;
	for (size_t i = 0; i < SS_ARRAY_SIZE(dynamic.tables) && !symbol; i++)
		symbol = find_symbol(image, dynamic.tables[i].address,
				     dynamic.tables[i].size, slot);
	return symbol && read_name(image, &dynamic, symbol, name, size);
}
