/* The symbol index of a module: from the sections of its file, and from its image. Input that is no
   ELF file is turned into a table that is large enough for an excerpt: an index of the symbols at
   some addresses has what the index of all has there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "symbolize/symtab.h"

enum {
	PROBES = 64,
	SYMBOLS = 1024 + 256, /* smaller tables are read as a whole */
	NAMES = 32,
	NAME_SIZE = 8,
	EDGE = 0xff00, /* values from here on are at the end of the address space */
};

/* An ELF file. Sections: none, text, symbols, names. */
struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[SYMBOLS];
	char names[NAMES * NAME_SIZE];
};

/* What the input has of a symbol. */
struct item {
	uint16_t value;
	uint16_t size;
	uint8_t name;
	uint8_t info;
	uint8_t section;
	uint8_t skipped; /* empty symbols before it */
};

static void probe(const struct ss_symtab *symtab, uint64_t address)
{
	struct ss_symbol symbol;

	if (!ss_symtab_find(symtab, address, &symbol))
		return;
	FUZZ_REQUIRE(symbol.start <= address);
	FUZZ_REQUIRE(symbol.size == 0 || address - symbol.start < symbol.size);
	fuzz_touch(symbol.name, strlen(symbol.name));
}

static void probe_all(const struct ss_symtab *symtab, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < PROBES; i++)
		probe(symtab, i * 64);
	for (size_t at = 0; at + 8 <= size; at += size / PROBES + 8) {
		uint64_t address;

		memcpy(&address, data + at, sizeof(address));
		probe(symtab, address);
	}
	probe(symtab, UINT64_MAX);
}

static struct ss_symtab *build(const struct ss_elf *elf, uint32_t type, bool partial,
			       const uint64_t *addresses, size_t count)
{
	struct ss_symtab *symtab = ss_symtab_new();

	FUZZ_REQUIRE(symtab);
	if (addresses)
		ss_symtab_expect(symtab, addresses, count);
	(void)ss_symtab_add(symtab, elf, type);
	if (partial)
		ss_symtab_set_partial(symtab);
	FUZZ_REQUIRE(ss_symtab_build(symtab));
	return symtab;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return (*x > *y) - (*x < *y);
}

static void compare_excerpt(const struct ss_elf *elf, uint32_t type, bool partial,
			    uint64_t *addresses, size_t count)
{
	qsort(addresses, count, sizeof(*addresses), compare);
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *all =
		build(elf, type, partial, NULL, 0);
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *some =
		build(elf, type, partial, addresses, count);

	FUZZ_REQUIRE((ss_symtab_count(all) == 0) == (ss_symtab_count(some) == 0));
	for (size_t i = 0; i < count; i++) {
		struct ss_symbol a;
		struct ss_symbol b;
		const bool found = ss_symtab_find(all, addresses[i], &a);
		FUZZ_REQUIRE(ss_symtab_find(some, addresses[i], &b) == found);
		FUZZ_REQUIRE(!found || (a.start == b.start && a.size == b.size &&
					strcmp(a.name, b.name) == 0));
	}
}

static uint64_t widen(uint16_t value)
{
	return value < EDGE ? value : UINT64_MAX - (uint64_t)(UINT16_MAX - value);
}

static void fill_file(struct file *file, const uint8_t *data, size_t size)
{
	struct item item;
	size_t at = 1;

	memset(file, 0, sizeof(*file));
	memcpy(file->header.e_ident, ELFMAG, SELFMAG);
	file->header.e_ident[EI_CLASS] = ELFCLASS64;
	file->header.e_ident[EI_DATA] = ELFDATA2LSB;
	file->header.e_ident[EI_VERSION] = EV_CURRENT;
	file->header.e_machine = EM_X86_64;
	file->header.e_type = ET_DYN;
	file->header.e_version = EV_CURRENT;
	file->header.e_ehsize = sizeof(Elf64_Ehdr);
	file->header.e_shentsize = sizeof(Elf64_Shdr);
	file->header.e_shoff = offsetof(struct file, sections);
	file->header.e_shnum = 4;
	file->sections[1] = (Elf64_Shdr){ .sh_type = SHT_NOBITS,
					  .sh_addr = 0x100,
					  .sh_size = 0x8000 };
	file->sections[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
					  .sh_offset = offsetof(struct file, symbols),
					  .sh_size = sizeof(file->symbols),
					  .sh_link = 3,
					  .sh_entsize = sizeof(Elf64_Sym) };
	file->sections[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					  .sh_offset = offsetof(struct file, names),
					  .sh_size = sizeof(file->names) };
	/* Some do not count, as $x, and the last one has no end. */
	for (unsigned i = 1; i < NAMES - 1; i++)
		(void)snprintf(file->names + (size_t)i * NAME_SIZE, NAME_SIZE,
			       i % 8 ? "n%u" : "$x", i);
	memset(file->names + (size_t)(NAMES - 1) * NAME_SIZE, 'z', NAME_SIZE);
	for (; size >= sizeof(item); data += sizeof(item), size -= sizeof(item), at++) {
		memcpy(&item, data, sizeof(item));
		at += item.skipped;
		if (at >= SYMBOLS)
			break;
		file->symbols[at] = (Elf64_Sym){
			.st_name = item.name * 2u, /* also in the middle, and outside */
			.st_info = item.info,
			.st_shndx = item.section % 5, /* 4: there is none */
			.st_value = widen(item.value),
			.st_size = widen(item.size),
		};
	}
}

/* A byte of flags, the number of addresses, addresses, symbols. */
static void make_table(const uint8_t *data, size_t size)
{
	static struct file file;
	uint64_t addresses[PROBES];
	size_t count = 0;

	if (size < 2)
		return;
	const bool partial = data[0] & 1;
	const size_t wanted = data[1] % (PROBES + 1);
	data += 2;
	size -= 2;
	for (; count < wanted && size >= 2; data += 2, size -= 2) {
		uint16_t address;
		memcpy(&address, data, sizeof(address));
		addresses[count++] = widen(address);
	}
	fill_file(&file, data, size);
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
		ss_elf_from_memory(&file, sizeof(file));
	FUZZ_REQUIRE(elf);
	compare_excerpt(elf, SHT_SYMTAB, partial, addresses, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < SELFMAG || memcmp(data, ELFMAG, SELFMAG) != 0) {
		make_table(data, size);
		return 0;
	}
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *image =
		ss_symtab_from_memory(data, size, 0x10000);
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_memory(data, size);
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *file = ss_symtab_new();

	if (image)
		probe_all(image, data, size);
	FUZZ_REQUIRE(file);
	if (!elf)
		return 0;
	(void)ss_symtab_add(file, elf, SHT_SYMTAB);
	(void)ss_symtab_add(file, elf, SHT_DYNSYM);
	if (ss_symtab_build(file))
		probe_all(file, data, size);
	return 0;
}
