#include "elf/go_table.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/search.h"

/* Large programs have 200,000 functions. */
enum {
	FUNCTIONS_MAX = 1 << 22,
	RELOCATIONS_MAX = 1 << 21, /* 48 MiB; large programs have 200,000 */
	RELOCATIONS_AT_ONCE = 1024,
	TABLE_ALIGNMENT = 32,
	BUILD_INFO_ALIGNMENT = 16,
	SEARCHED_AT_ONCE = 1 << 16,
	DYNAMIC_MAX = 1024, /* entries; a few dozen */
	TRIES_MAX = 16,
};

enum {
	GO_1_2 = 0xfffffffb,
	GO_1_16 = 0xfffffffa,
	GO_1_18 = 0xfffffff0,
	GO_1_20 = 0xfffffff1
};

/* Indexes of header words, after the first 8 bytes. */
enum { WORD_COUNT = 0, WORD_TEXT = 2, WORDS = 8 };

/* Of struct moduledata in Go's src/runtime/symtab.go: the names, after the header of the table;
   the start of the text, after six slices and three addresses; and the data of functions
   (gofunc), since Go 1.20 after two more addresses, since Go 1.27 after three more numbers: the first
   of them is a size, where the end of the types was. */
enum {
	MODULE_NAMES = 8,
	MODULE_TEXT = (1 + 6 * 3 + 3) * 8,
	MODULE_DATA = MODULE_TEXT + 16 * 8,
	MODULE_DATA_1_20 = MODULE_DATA + 2 * 8,
	MODULE_DATA_1_27 = MODULE_DATA_1_20 + 3 * 8,
	MODULE_TYPES = MODULE_DATA_1_20 - 3 * 8,
	MODULE_TYPES_END = MODULE_TYPES + 8,
};

struct head {
	uint32_t magic;
	uint16_t zero;
	uint8_t step;
	uint8_t pointer_size;
	uint64_t words[WORDS];
};

/* What is searched among relocations: what is written to an address, or where an address is
   written. */
struct relocation {
	uint64_t address;
	uint64_t addend;
	bool by_addend;
};

/* Searches a part of a relocation table. */
static bool find_in_part(const struct ss_elf *elf, uint64_t offset, size_t count,
			 struct relocation *wanted)
{
	Elf64_Rela part[RELOCATIONS_AT_ONCE];

	if (!ss_elf_read(elf, offset, part, count * sizeof(*part)))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (wanted->by_addend ? (uint64_t)part[i].r_addend == wanted->addend :
					part[i].r_offset == wanted->address) {
			wanted->address = part[i].r_offset;
			wanted->addend = (uint64_t)part[i].r_addend;
			return true;
		}
	}
	return false;
}

/* The relocations, as a section, of a file without section headers; empty: there are none. */
static Elf64_Shdr find_dynamic_relocations(const struct ss_elf *elf)
{
	Elf64_Shdr ret = { .sh_type = SHT_RELA };
	const Elf64_Phdr *dynamic = NULL;
	const size_t entry_size =
		ss_elf_record_size(elf->header.e_ident[EI_CLASS], SS_ELF_DYNAMIC);
	uint64_t size = 0;

	for (size_t i = 0; i < elf->segment_count && !dynamic; i++)
		dynamic = elf->segments[i].p_type == PT_DYNAMIC ? &elf->segments[i] :
								  NULL;
	for (uint64_t i = 0; dynamic && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn entry;
		if ((i + 1) * entry_size > dynamic->p_filesz ||
		    !ss_elf_read_records(elf, SS_ELF_DYNAMIC,
					 dynamic->p_offset + i * entry_size, &entry, 1) ||
		    entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_RELASZ)
			size = entry.d_un.d_val;
		else if (entry.d_tag == DT_RELA)
			ret.sh_addr = entry.d_un.d_ptr;
	}
	if (ret.sh_addr && ss_elf_locate(elf, ret.sh_addr, &ret.sh_offset))
		ret.sh_size = size;
	return ret;
}

/* Searches a table of relocations, of which at most *left are read. False: not found. */
static bool search_relocations(const struct ss_elf *elf, const Elf64_Shdr *section,
			       uint64_t *left, struct relocation *wanted)
{
	const uint64_t count = SS_MIN(section->sh_size / sizeof(Elf64_Rela), *left);

	*left -= count;
	for (uint64_t at = 0; at < count; at += RELOCATIONS_AT_ONCE) {
		if (find_in_part(
			    elf, section->sh_offset + at * sizeof(Elf64_Rela),
			    (size_t)SS_MIN(count - at, (uint64_t)RELOCATIONS_AT_ONCE),
			    wanted))
			return true;
	}
	return false;
}

/* In position-independent programs the dynamic linker writes the address. */
static bool find_relocation(const struct ss_elf *elf, struct relocation *wanted)
{
	uint64_t left = RELOCATIONS_MAX; /* of all tables */

	if (elf->section_count == 0) {
		const Elf64_Shdr section = find_dynamic_relocations(elf);
		return search_relocations(elf, &section, &left, wanted);
	}
	for (size_t i = 1; i < elf->section_count && left; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		if (section->sh_type == SHT_RELA &&
		    search_relocations(elf, section, &left, wanted))
			return true;
	}
	return false;
}

/* 0: nothing is written there. */
static uint64_t find_relocated(const struct ss_elf *elf, uint64_t address)
{
	struct relocation wanted = { .address = address };

	return find_relocation(elf, &wanted) ? wanted.addend : 0;
}

/* False: unknown layout. */
static bool read_head(const struct head *head, struct ss_go_table *ret)
{
	/* Go 1.18 inserted the start of the text. */
	bool text = head->magic == GO_1_18 || head->magic == GO_1_20;
	const uint64_t *offsets = &head->words[text ? 3 : 2];

	ret->word = text ? 4 : 8;
	ret->step = head->step;
	ret->count = head->words[WORD_COUNT];
	ret->text = text ? head->words[WORD_TEXT] : 0;
	if (head->magic == GO_1_2) {
		ret->functions = offsetof(struct head, words[1]);
		ret->names_end = ret->size;
		return true;
	}
	ret->names = offsets[0];
	ret->names_end = ret->units = offsets[1];
	ret->files = offsets[2];
	ret->has_first_line = head->magic == GO_1_20;
	ret->numbers = offsets[3];
	ret->functions = ret->base = offsets[4];
	return text || head->magic == GO_1_16;
}

static bool is_valid(const struct ss_go_table *go)
{
	return go->count > 0 && go->count <= FUNCTIONS_MAX && go->names_end <= go->size &&
	       go->names < go->names_end && go->functions <= go->size &&
	       go->numbers <= go->size &&
	       (go->size - go->functions) / (2 * go->word) > go->count;
}

/* A word of a section, before or after relocation. 0: not found. */
static uint64_t read_address(const struct ss_elf *elf, const Elf64_Shdr *section,
			     uint64_t at)
{
	uint64_t word = 0;

	if (section->sh_size < at + sizeof(word) ||
	    !ss_elf_read(elf, section->sh_offset + at, &word, sizeof(word)))
		return 0;
	return word ? word : find_relocated(elf, section->sh_addr + at);
}

/* The start of the text: since Go 1.26 the table's header has none. 0: not found. */
static uint64_t find_text(const struct ss_elf *elf, uint64_t table)
{
	const Elf64_Shdr *module = ss_elf_find_section(elf, ".go.module");
	uint64_t text =
		find_relocated(elf, table + offsetof(struct head, words[WORD_TEXT]));

	if (text || !module || read_address(elf, module, 0) != table)
		return text;
	return read_address(elf, module, MODULE_TEXT);
}

/* Reads a table that begins at an offset in a section. */
static bool read_table(const struct ss_elf *elf, const Elf64_Shdr *section,
		       uint64_t offset, struct ss_go_table *ret)
{
	struct head head = {};

	*ret = (struct ss_go_table){ .file_offset = section->sh_offset + offset,
				     .size = section->sh_size - offset,
				     .address = section->sh_addr + offset };
	if (!ss_elf_read(elf, ret->file_offset, &head, SS_MIN(sizeof(head), ret->size)) ||
	    head.zero != 0 || head.pointer_size != 8 || !read_head(&head, ret))
		return false;
	if (ret->word == 4 && ret->text == 0)
		ret->text = find_text(elf, section->sh_addr + offset);
	return (ret->word == 8 || ret->text) && is_valid(ret);
}

static bool may_be_head(const uint8_t *bytes)
{
	const struct head *head = (const void *)bytes;

	return (head->magic == GO_1_18 || head->magic == GO_1_20) && head->zero == 0 &&
	       head->pointer_size == 8;
}

static bool is_build_info(const uint8_t *bytes)
{
	static const char magic[] = "\xff Go buildinf:";

	return memcmp(bytes, magic, sizeof(magic) - 1) == 0;
}

/* Searches a section from offset *ret on for something that is aligned. */
static bool find_aligned(const struct ss_elf *elf, const Elf64_Shdr *section,
			 unsigned alignment, bool (*is_wanted)(const uint8_t *bytes),
			 uint64_t *ret)
{
	_Alignas(TABLE_ALIGNMENT) uint8_t part[SEARCHED_AT_ONCE];

	for (uint64_t at = *ret + -(section->sh_addr + *ret) % alignment;
	     at < section->sh_size; at += sizeof(part)) {
		const size_t size =
			(size_t)SS_MIN(section->sh_size - at, (uint64_t)sizeof(part));
		if (!ss_elf_read(elf, section->sh_offset + at, part, size))
			return false;
		for (size_t i = 0; i + alignment <= size; i += alignment) {
			if (!is_wanted(part + i))
				continue;
			*ret = at + i;
			return true;
		}
	}
	return false;
}

static bool is_code(const struct ss_elf *elf, uint64_t address)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
		    address - segment->p_vaddr < segment->p_filesz)
			return true;
	}
	return false;
}

/* Up to Go 1.25 the linker of C puts the table of programs with C code that are
   position-independent, and of libraries, between other data. */
static bool search_table(const struct ss_elf *elf, const Elf64_Shdr *section,
			 unsigned *tries, struct ss_go_table *ret)
{
	for (uint64_t at = 0;
	     find_aligned(elf, section, TABLE_ALIGNMENT, may_be_head, &at);
	     at += TABLE_ALIGNMENT) {
		if (read_table(elf, section, at, ret) && is_code(elf, ret->text))
			return true;
		if (--*tries == 0) /* each may search all relocations */
			return false;
	}
	return false;
}

/* Without section headers: the next segment that is to be searched, as a section. */
static bool next_segment(const struct ss_elf *elf, uint32_t flags, size_t *index,
			 uint64_t *left, Elf64_Shdr *ret)
{
	while (*index < elf->segment_count) {
		const Elf64_Phdr *segment = &elf->segments[(*index)++];
		if (segment->p_type != PT_LOAD || (segment->p_flags & flags) != flags ||
		    segment->p_filesz > *left)
			continue;
		*left -= segment->p_filesz;
		*ret = (Elf64_Shdr){ .sh_addr = segment->p_vaddr,
				     .sh_offset = segment->p_offset,
				     .sh_size = segment->p_filesz };
		return true;
	}
	return false;
}

bool ss_go_find_build_info(const struct ss_elf *elf, Elf64_Shdr *ret)
{
	const Elf64_Shdr *section = ss_elf_find_section(elf, ".go.buildinfo");
	uint64_t left = SS_ELF_SECTION_MAX;
	Elf64_Shdr segment;

	if (section)
		*ret = *section;
	if (elf->section_count > 0)
		return section != NULL;
	for (size_t i = 0; next_segment(elf, PF_W, &i, &left, &segment);) {
		uint64_t at = 0;
		if (!find_aligned(elf, &segment, BUILD_INFO_ALIGNMENT, is_build_info,
				  &at))
			continue;
		*ret = (Elf64_Shdr){ .sh_offset = segment.sh_offset + at,
				     .sh_size = segment.sh_size - at };
		return true;
	}
	return false;
}

/* The table of a program of Go without section headers. */
static bool search_segments(const struct ss_elf *elf, struct ss_go_table *ret)
{
	uint64_t left = SS_ELF_SECTION_MAX;
	unsigned tries = TRIES_MAX;
	Elf64_Shdr found;

	if (!ss_go_find_build_info(elf, &found))
		return false;
	for (size_t i = 0; tries && next_segment(elf, 0, &i, &left, &found);) {
		if (search_table(elf, &found, &tries, ret))
			return true;
	}
	return false;
}

bool ss_go_table_find(const struct ss_elf *elf, struct ss_go_table *ret)
{
	const Elf64_Shdr *section = ss_elf_find_section(elf, ".gopclntab");
	unsigned tries = TRIES_MAX;
	bool named = true;

	if (elf->section_count == 0)
		return search_segments(elf, ret);
	if (!section)
		section = ss_elf_find_section(elf, ".data.rel.ro.gopclntab");
	if (!section && ss_elf_find_section(elf, ".go.buildinfo")) {
		section = ss_elf_find_section(elf, ".data.rel.ro");
		named = false;
	}
	if (!section || section->sh_size > SS_ELF_SECTION_MAX)
		return false;
	return named ? read_table(elf, section, 0, ret) :
		       search_table(elf, section, &tries, ret);
}

static uint64_t read_word(const struct ss_go_table *go, const uint8_t *bytes,
			  uint64_t offset, unsigned size)
{
	uint64_t word = 0;

	if (offset <= go->size && go->size - offset >= size)
		memcpy(&word, bytes + offset, size);
	return word;
}

/* The entry address of a function. With number go->count: the end of the text. */
static uint64_t entry_of(const struct ss_go_table *go, const uint8_t *bytes,
			 uint64_t number)
{
	return go->text +
	       read_word(go, bytes, go->functions + number * 2 * go->word, go->word);
}

/* The offset of a function's name in the names. */
static uint64_t name_of(const struct ss_go_table *go, const uint8_t *bytes,
			uint64_t number)
{
	uint64_t at = go->functions + number * 2 * go->word + go->word;
	uint64_t description = go->base + read_word(go, bytes, at, go->word);

	return read_word(go, bytes, description + go->word, 4);
}

static bool add_functions(const struct ss_go_table *go, const uint8_t *bytes,
			  struct ss_table *table)
{
	table->symbols = calloc(go->count + 1, sizeof(Elf64_Sym));
	table->names_size = go->names_end - go->names;
	table->names = malloc(table->names_size + 1);
	if (!table->symbols || !table->names)
		return false;
	memcpy(table->names, bytes + go->names, table->names_size);
	table->names[table->names_size] = '\0';
	table->count = 1; /* the first symbol of a table is not used */
	for (uint64_t i = 0; i < go->count; i++) {
		uint64_t start = entry_of(go, bytes, i);
		uint64_t end = entry_of(go, bytes, i + 1);
		uint64_t name = name_of(go, bytes, i);
		if (end <= start || name >= table->names_size)
			continue;
		table->symbols[table->count++] = (Elf64_Sym){
			.st_name = (uint32_t)name,
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			.st_shndx = SHN_HIRESERVE, /* no section */
			.st_value = start,
			.st_size = end - start,
		};
	}
	return table->count > 1;
}

bool ss_go_table_read(const struct ss_elf *elf, struct ss_table *ret)
{
	_cleanup_table_ struct ss_table table = {};
	struct ss_go_table go;

	if (!ss_go_table_find(elf, &go))
		return false;
	_cleanup_free_ uint8_t *bytes = ss_elf_copy(elf, go.file_offset, go.size);
	if (!bytes || !add_functions(&go, bytes, &table))
		return false;
	*ret = table;
	table = (struct ss_table){};
	return true;
}

/* The data of functions ------------------------------------------------------ */

/* Of the module: what it has at an offset, before or after relocation. 0: not found. */
static uint64_t read_module(const struct ss_elf *elf, uint64_t module, uint64_t at)
{
	uint64_t offset;
	uint64_t word = 0;

	if (!ss_elf_locate(elf, module + at, &offset) ||
	    !ss_elf_read(elf, offset, &word, sizeof(word)))
		return 0;
	return word ? word : find_relocated(elf, module + at);
}

static bool is_module(const struct ss_elf *elf, const struct ss_go_table *go,
		      uint64_t address)
{
	return read_module(elf, address, 0) == go->address &&
	       read_module(elf, address, MODULE_NAMES) == go->address + go->names &&
	       read_module(elf, address, MODULE_TEXT) == go->text;
}

/* Searches a section for the address of the table, with which the module begins. */
static bool search_module(const struct ss_elf *elf, const struct ss_go_table *go,
			  const Elf64_Shdr *section, uint64_t *ret)
{
	uint64_t part[SEARCHED_AT_ONCE / sizeof(uint64_t)];

	for (uint64_t at = 0; at < section->sh_size; at += sizeof(part)) {
		const size_t size =
			(size_t)SS_MIN(section->sh_size - at, (uint64_t)sizeof(part));
		if (!ss_elf_read(elf, section->sh_offset + at, part, size))
			return false;
		for (size_t i = 0; i < size / sizeof(part[0]); i++) {
			*ret = section->sh_addr + at + i * sizeof(part[0]);
			if (part[i] == go->address && is_module(elf, go, *ret))
				return true;
		}
	}
	return false;
}

static bool find_module(const struct ss_elf *elf, const struct ss_go_table *go,
			uint64_t *ret)
{
	static const char *const names[] = { ".go.module", ".noptrdata", ".data" };
	struct relocation wanted = { .addend = go->address, .by_addend = true };
	uint64_t left = SS_ELF_SECTION_MAX;
	Elf64_Shdr segment;

	for (size_t i = 0;
	     elf->section_count == 0 && next_segment(elf, PF_W, &i, &left, &segment);) {
		if (search_module(elf, go, &segment, ret))
			return true;
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		const Elf64_Shdr *section = ss_elf_find_section(elf, names[i]);
		if (section && section->sh_size <= SS_ELF_SECTION_MAX &&
		    search_module(elf, go, section, ret))
			return true;
	}
	if (!find_relocation(elf, &wanted) || !is_module(elf, go, wanted.address))
		return false;
	*ret = wanted.address;
	return true;
}

uint64_t ss_go_table_find_data(const struct ss_elf *elf, const struct ss_go_table *go)
{
	uint64_t module;

	/* Before Go 1.18, each function has addresses instead. */
	if (go->word != 4 || !find_module(elf, go, &module))
		return 0;
	if (!go->has_first_line)
		return read_module(elf, module, MODULE_DATA);
	return read_module(elf, module,
			   read_module(elf, module, MODULE_TYPES_END) <
					   read_module(elf, module, MODULE_TYPES) ?
				   MODULE_DATA_1_27 :
				   MODULE_DATA_1_20);
}
