/*
 * In an index of the symbols at some addresses these find what they find in the index of
 * all: in libraries of this machine, and in tables with everything that is unusual.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "symbolize/symtab.h"

enum { SYMBOLS = 3000, NAMES = 64, ADDRESSES = 40, ROUNDS = 30, SPAN = 1 << 16 };

/* An ELF file with a symbol table. Sections: none, text, symbols, names. */
struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[SYMBOLS];
	char names[NAMES * 8];
};

/* Reproducible: the sequence of POSIX's rand_r(), with a seed of each round. */
static unsigned draw(unsigned *seed, unsigned below)
{
	return (unsigned)rand_r(seed) % below;
}

static void make_file(struct file *file, unsigned *seed)
{
	static const int bindings[] = { STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE };
	static const int types[] = { STT_NOTYPE, STT_FUNC,    STT_OBJECT,
				     STT_FILE,	 STT_SECTION, STT_GNU_IFUNC };
	unsigned labels = draw(seed, 3) * 40; /* percent of symbols without a size */
	unsigned odd = draw(seed, 2) * 3; /* percent with a name that does not count */

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
					  .sh_addr = 0x1000,
					  .sh_size = SPAN / 2 };
	file->sections[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
					  .sh_offset = offsetof(struct file, symbols),
					  .sh_size = sizeof(file->symbols),
					  .sh_link = 3,
					  .sh_entsize = sizeof(Elf64_Sym) };
	file->sections[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					  .sh_offset = offsetof(struct file, names),
					  .sh_size = sizeof(file->names) };
	for (unsigned i = 0; i < NAMES; i++)
		(void)snprintf(file->names + (size_t)i * 8, 8, i % 8 ? "n%u" : "$x", i);
	for (size_t i = 1; i < SYMBOLS; i++) {
		Elf64_Sym *symbol = &file->symbols[i];
		unsigned name = draw(seed, NAMES);
		if (name % 8 == 0 && draw(seed, 100) >= odd)
			name++;
		*symbol = (Elf64_Sym){
			.st_name = name * 8,
			.st_info = (unsigned char)ELF64_ST_INFO(bindings[draw(seed, 4)],
								types[draw(seed, 6)]),
			.st_shndx = (Elf64_Half)(draw(seed, 50) ? 1 : 0),
			/* Many begin at the same address. */
			.st_value = 0x1000 + draw(seed, SPAN / 16) * 16,
			.st_size = draw(seed, 100) < labels ? 0 : draw(seed, 64),
		};
		if (draw(seed, 500) == 0)
			symbol->st_size = draw(seed, SPAN);
		if (draw(seed, 1000) == 0)
			symbol->st_size = UINT64_MAX;
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct ss_symtab *build(const struct ss_elf *elf, uint32_t type,
			       const uint64_t *addresses, bool partial)
{
	struct ss_symtab *symtab = ss_symtab_new();

	assert_non_null(symtab);
	if (addresses)
		ss_symtab_expect(symtab, addresses, ADDRESSES);
	(void)ss_symtab_add(symtab, elf, type);
	if (partial)
		ss_symtab_set_partial(symtab);
	assert_true(ss_symtab_build(symtab));
	return symtab;
}

/* Returns the number of symbols that were left out. */
static size_t expect_equal(const char *what, const struct ss_elf *elf, uint32_t type,
			   uint64_t *addresses, bool partial)
{
	qsort(addresses, ADDRESSES, sizeof(*addresses), compare);
	struct ss_symtab *all = build(elf, type, NULL, partial);
	struct ss_symtab *some = build(elf, type, addresses, partial);
	size_t less = ss_symtab_count(all) - ss_symtab_count(some);

	assert_int_equal(ss_symtab_count(all) == 0, ss_symtab_count(some) == 0);
	for (size_t i = 0; i < ADDRESSES; i++) {
		struct ss_symbol a = {};
		struct ss_symbol b = {};
		bool in_all = ss_symtab_find(all, addresses[i], &a);
		bool in_some = ss_symtab_find(some, addresses[i], &b);
		if (in_all != in_some ||
		    (in_all && (a.start != b.start || a.size != b.size ||
				strcmp(a.name, b.name) != 0)))
			fail_msg("%s: 0x%lx is %s 0x%lx+0x%lx, not %s 0x%lx+0x%lx", what,
				 addresses[i], in_some ? b.name : "nothing", b.start,
				 b.size, in_all ? a.name : "nothing", a.start, a.size);
	}
	ss_symtab_free(all);
	ss_symtab_free(some);
	return less;
}

TEST(test_unusual_tables)
{
	static struct file file;
	size_t less = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned seed = round;
		uint64_t addresses[ADDRESSES];
		char what[32];

		make_file(&file, &seed);
		struct ss_elf *elf = ss_elf_from_memory(&file, sizeof(file));
		assert_non_null(elf);
		for (size_t i = 0; i < ADDRESSES; i++)
			addresses[i] = 0xff0 + draw(&seed, SPAN);
		addresses[0] = 0;
		addresses[1] = UINT64_MAX;
		(void)snprintf(what, sizeof(what), "round %u", round);
		less += expect_equal(what, elf, SHT_SYMTAB, addresses, round % 4 == 0);
		ss_elf_free(elf);
	}
	assert_true(less > SYMBOLS); /* otherwise all tables were read as a whole */
}

/* A table of names that ends within a name, and one that is cut off. */
TEST(test_damaged_tables)
{
	static struct file file;
	unsigned seed = 1;
	uint64_t addresses[ADDRESSES];

	make_file(&file, &seed);
	for (size_t i = 0; i < ADDRESSES; i++)
		addresses[i] = 0x1000 + draw(&seed, SPAN);
	struct ss_elf *elf = ss_elf_from_memory(&file, sizeof(file));
	assert_non_null(elf);
	memset(file.names, 'x', sizeof(file.names));
	(void)expect_equal("names without an end", elf, SHT_SYMTAB, addresses, false);
	ss_elf_free(elf);
	elf = ss_elf_from_memory(&file, sizeof(file) - 1);
	assert_non_null(elf);
	(void)expect_equal("a file that was cut off", elf, SHT_SYMTAB, addresses, false);
	ss_elf_free(elf);
}

struct libraries {
	unsigned seed;
	size_t less;
};

static int visit_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct libraries *libraries = data;
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ss_elf *elf = fd >= 0 ? ss_elf_from_fd(fd) : NULL;
	uint64_t addresses[ADDRESSES];
	uint64_t end = 1;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD)
			end = segment->p_vaddr + segment->p_memsz;
	}
	for (int round = 0; elf && round < 3; round++) {
		for (size_t i = 0; i < ADDRESSES; i++)
			addresses[i] = draw(&libraries->seed, (unsigned)end);
		libraries->less += expect_equal(path, elf, SHT_DYNSYM, addresses, true);
		libraries->less += expect_equal(path, elf, SHT_SYMTAB, addresses, false);
	}
	ss_elf_free(elf);
	return 0;
}

TEST(test_libraries)
{
	struct libraries libraries = { .seed = 1 };

	(void)dl_iterate_phdr(visit_library, &libraries);
	assert_true(libraries.less > 0);
}
