#include "symbolize/go_table.h"

#include <stdlib.h>
#include <string.h>

/* A program with more than 200,000 functions is large. */
enum { FUNCTIONS_MAX = 1 << 22 };

enum layout { GO_1_2, GO_1_16, GO_1_18 };

/* The words behind the first 8 bytes: where what lies. */
enum {
	WORD_COUNT = 0,
	WORD_TEXT = 2, /* GO_1_18 */
	WORDS = 8,
};

struct go_table {
	const struct ss_elf *elf;
	const Elf64_Shdr *section;
	const uint8_t *bytes; /* of the section */
	enum layout layout;
	uint64_t count;
	uint64_t text;	/* ELF virtual address that entries count from */
	uint64_t names; /* these are offsets in the section */
	uint64_t names_end;
	uint64_t functions; /* pairs: entry, offset of what describes it from here */
};

static uint64_t read_word(const struct go_table *go, uint64_t offset, unsigned size)
{
	uint64_t word = 0;

	if (offset <= go->section->sh_size && go->section->sh_size - offset >= size)
		memcpy(&word, go->bytes + offset, size);
	return word;
}

/* Position-independent programs have the address put there when they are loaded. */
static uint64_t relocated(const struct go_table *go, uint64_t offset)
{
	uint64_t address = go->section->sh_addr + offset;

	for (size_t i = 1; i < go->elf->section_count; i++) {
		const Elf64_Shdr *section = &go->elf->sections[i];
		if (section->sh_type != SHT_RELA)
			continue;
		_cleanup_free_ Elf64_Rela *relocations =
			ss_elf_copy_section(go->elf, section);
		size_t count = relocations ? section->sh_size / sizeof(Elf64_Rela) : 0;
		for (size_t j = 0; j < count; j++) {
			if (relocations[j].r_offset == address)
				return (uint64_t)relocations[j].r_addend;
		}
	}
	return 0;
}

/* Magic number, two zeroes, the smallest instruction, bytes of a pointer. */
static bool read_layout(struct go_table *go)
{
	switch (read_word(go, 0, 4)) {
	case 0xfffffffb:
		go->layout = GO_1_2;
		break;
	case 0xfffffffa:
		go->layout = GO_1_16;
		break;
	case 0xfffffff0:
	case 0xfffffff1: /* of 1.20: the same here */
		go->layout = GO_1_18;
		break;
	default:
		return false;
	}
	return read_word(go, 4, 2) == 0 && read_word(go, 7, 1) == 8;
}

static bool read_header(struct go_table *go)
{
	uint64_t words[WORDS];

	if (!read_layout(go))
		return false;
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = read_word(go, 8 + (uint64_t)i * 8, 8);
	go->count = words[WORD_COUNT];
	if (go->layout == GO_1_2) {
		go->names_end = go->section->sh_size;
		go->functions = 16;
		return true;
	}
	/* In 1.18 the begin of the text came in between. */
	const uint64_t *offsets = &words[go->layout == GO_1_18 ? 3 : 2];
	go->names = offsets[0];
	go->names_end = offsets[1];
	go->functions = offsets[4];
	if (go->layout == GO_1_18) {
		go->text = words[WORD_TEXT] ? words[WORD_TEXT] :
					      relocated(go, 8 + WORD_TEXT * 8);
		return go->text != 0;
	}
	return true;
}

static bool is_sound(const struct go_table *go)
{
	uint64_t size = go->section->sh_size;
	uint64_t pair = go->layout == GO_1_18 ? 8 : 16;

	return go->count > 0 && go->count <= FUNCTIONS_MAX && go->names_end <= size &&
	       go->names < go->names_end && go->functions <= size &&
	       (size - go->functions) / pair > go->count;
}

/* The entry of a function; of the one behind the last: the end of the text. */
static uint64_t entry_of(const struct go_table *go, uint64_t number)
{
	return go->layout == GO_1_18 ?
		       go->text + read_word(go, go->functions + number * 8, 4) :
		       read_word(go, go->functions + number * 16, 8);
}

/* Where in names the name of a function is. */
static uint64_t name_of(const struct go_table *go, uint64_t number)
{
	uint64_t pair = go->functions + number * (go->layout == GO_1_18 ? 8 : 16);
	uint64_t word = go->layout == GO_1_18 ? 4 : 8;
	uint64_t description = read_word(go, pair + word, (unsigned)word);

	/* In 1.2 they counted from the begin of the section. */
	if (go->layout != GO_1_2)
		description += go->functions;
	return read_word(go, description + word, 4);
}

static bool add_functions(const struct go_table *go, struct ss_table *table)
{
	table->symbols = calloc(go->count + 1, sizeof(Elf64_Sym));
	table->names_size = go->names_end - go->names;
	table->names = malloc(table->names_size + 1);
	if (!table->symbols || !table->names)
		return false;
	memcpy(table->names, go->bytes + go->names, table->names_size);
	table->names[table->names_size] = '\0';
	table->count = 1; /* the first symbol of a table is none */
	for (uint64_t i = 0; i < go->count; i++) {
		uint64_t start = entry_of(go, i);
		uint64_t end = entry_of(go, i + 1);
		uint64_t name = name_of(go, i);
		if (end <= start || name >= table->names_size)
			continue;
		table->symbols[table->count++] = (Elf64_Sym){
			.st_name = (uint32_t)name,
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			.st_shndx = SHN_HIRESERVE, /* not that of any section */
			.st_value = start,
			.st_size = end - start,
		};
	}
	return table->count > 1;
}

bool ss_go_table_read(const struct ss_elf *elf, struct ss_table *ret)
{
	const Elf64_Shdr *section = ss_elf_find_section(elf, ".gopclntab");
	_cleanup_table_ struct ss_table table = {};

	if (!section)
		section = ss_elf_find_section(elf, ".data.rel.ro.gopclntab");
	_cleanup_free_ uint8_t *bytes = section ? ss_elf_copy_section(elf, section) :
						  NULL;
	struct go_table go = { .elf = elf, .section = section, .bytes = bytes };
	if (!bytes || !read_header(&go) || !is_sound(&go) || !add_functions(&go, &table))
		return false;
	*ret = table;
	table = (struct ss_table){};
	return true;
}
