#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <sys/auxv.h>

#include "elf_builder.h"
#include "symbolize/symtab.h"

static struct ss_symtab *build(const struct elf_builder *elf)
{
	struct ss_symtab *symtab = ss_symtab_from_memory(elf, sizeof(*elf), 0);

	assert_non_null(symtab);
	return symtab;
}

/* name NULL: nothing is to be found. */
static void expect(const struct ss_symtab *symtab, uint64_t address, const char *name)
{
	struct ss_symbol symbol = {};
	bool found = ss_symtab_find(symtab, address, &symbol);

	if (name) {
		assert_true(found);
		assert_string_equal(symbol.name, name);
		assert_true(symbol.start <= address);
	} else {
		assert_false(found);
	}
}

TEST(test_bounds)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_add(&elf, "f", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "g", 0x1020, 0x10, STB_LOCAL, STT_FUNC, BUILDER_TEXT);
	struct ss_symtab *symtab = build(&elf);
	assert_int_equal(ss_symtab_count(symtab), 2);
	expect(symtab, 0xfff, NULL);
	expect(symtab, 0x1000, "f");
	expect(symtab, 0x100f, "f");
	expect(symtab, 0x1010, NULL);
	expect(symtab, 0x102f, "g");
	expect(symtab, 0x1030, NULL);
	ss_symtab_free(symtab);
}

TEST(test_aliases)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_add(&elf, "local", 0x1000, 0x10, STB_LOCAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "weak", 0x1000, 0x10, STB_WEAK, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "first", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "second", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "large", 0x1100, 0x20, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "small", 0x1100, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	/* A local one inside a global one does not count, a global one does. */
	elf_builder_add(&elf, "outer", 0x1200, 0x40, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "hidden", 0x1210, 8, STB_LOCAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "inner", 0x1220, 8, STB_WEAK, STT_FUNC, BUILDER_TEXT);
	struct ss_symtab *symtab = build(&elf);
	expect(symtab, 0x1008, "first");
	expect(symtab, 0x1108, "small");
	expect(symtab, 0x1118, "large");
	expect(symtab, 0x1214, "outer");
	expect(symtab, 0x1224, "inner");
	expect(symtab, 0x1228, "outer");
	ss_symtab_free(symtab);
}

TEST(test_labels)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_add(&elf, "f", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "f_label", 0x1000, 0, STB_LOCAL, STT_NOTYPE, BUILDER_TEXT);
	elf_builder_add(&elf, "inside", 0x1008, 0, STB_LOCAL, STT_NOTYPE, BUILDER_TEXT);
	elf_builder_add(&elf, "one", 0x1100, 0, STB_GLOBAL, STT_NOTYPE, BUILDER_TEXT);
	elf_builder_add(&elf, "two", 0x1200, 0, STB_LOCAL, STT_NOTYPE, BUILDER_TEXT);
	elf_builder_add(&elf, "g", 0x1300, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "last", 0x1f00, 0, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "_end", 0x2000, 0, STB_GLOBAL, STT_NOTYPE, BUILDER_TEXT);
	struct ss_symtab *symtab = build(&elf);
	expect(symtab, 0x1008, "f");
	expect(symtab, 0x1010, NULL); /* no label reaches out of f */
	expect(symtab, 0x11ff, "one");
	expect(symtab, 0x12ff, "two");
	expect(symtab, 0x1310, NULL);
	expect(symtab, 0x1fff, "last");
	expect(symtab, 0x2000, NULL); /* another section */
	ss_symtab_free(symtab);
}

/* In a table that leaves functions out nothing can follow from the next symbol. */
TEST(test_partial)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_add(&elf, "memset", 0x1000, 0, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "sized", 0x1100, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	struct ss_elf *image = ss_elf_from_memory(&elf, sizeof(elf));
	struct ss_symtab *symtab = ss_symtab_new();
	assert_true(ss_symtab_add(symtab, image, SHT_SYMTAB) > 0);
	ss_symtab_set_partial(symtab);
	assert_true(ss_symtab_build(symtab));
	expect(symtab, 0x1000, "memset");
	expect(symtab, 0x1001, NULL);
	expect(symtab, 0x110f, "sized");
	ss_symtab_free(symtab);
	ss_elf_free(image);
}

TEST(test_ignored_symbols)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_add(&elf, "file.c", 0x1000, 4, STB_LOCAL, STT_FILE, SHN_ABS);
	elf_builder_add(&elf, "tls", 0x1000, 4, STB_GLOBAL, STT_TLS, BUILDER_TEXT);
	elf_builder_add(&elf, "s", 0x1000, 4, STB_LOCAL, STT_SECTION, BUILDER_TEXT);
	elf_builder_add(&elf, "undef", 0x1000, 4, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
	elf_builder_add(&elf, "$x", 0x1000, 4, STB_LOCAL, STT_NOTYPE, BUILDER_TEXT);
	elf_builder_add(&elf, "$x.1", 0x1000, 4, STB_LOCAL, STT_NOTYPE, BUILDER_TEXT);
	elf_builder_add(&elf, "", 0x1000, 4, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf_builder_add(&elf, "far", 0x1000, 4, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	elf.symbols[elf.symbol_count - 1].st_name = 0x7fffffff;
	struct ss_symtab *symtab = build(&elf);
	assert_int_equal(ss_symtab_count(symtab), 0);
	expect(symtab, 0x1000, NULL);
	ss_symtab_free(symtab);
}

TEST(test_hostile_sizes)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_add(&elf, "all", 0x10, UINT64_MAX, STB_GLOBAL, STT_FUNC,
			BUILDER_TEXT);
	elf_builder_add(&elf, "f", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	memcpy(elf.names + BUILDER_NAMES_MAX - 1, "x", 1);
	struct ss_symtab *symtab = build(&elf);
	expect(symtab, 0x1008, "f");
	expect(symtab, 0x1010, "all");
	expect(symtab, UINT64_MAX - 1, "all");
	ss_symtab_free(symtab);
}

/* Every cut of the image, and a table that claims more than there is. */
TEST(test_damaged_images)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_add(&elf, "f", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, BUILDER_TEXT);
	for (size_t size = 0; size < sizeof(elf); size += 7)
		ss_symtab_free(ss_symtab_from_memory(&elf, size, 0));
	assert_null(ss_symtab_from_memory(NULL, 0, 0));
	elf.sections[BUILDER_SYMTAB].sh_size = UINT64_MAX;
	struct ss_symtab *symtab = build(&elf);
	assert_int_equal(ss_symtab_count(symtab), 0);
	ss_symtab_free(symtab);
	elf.header.e_ident[EI_CLASS] = ELFCLASSNONE;
	assert_null(ss_symtab_from_memory(&elf, sizeof(elf), 0));
}

/* A whole ELF image that is always at hand. */
TEST(test_vdso)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(uintptr_t)base;
	const void *image = header;
	struct ss_symbol symbol;

	if (!base)
		skip();
	size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	struct ss_symtab *symtab = ss_symtab_from_memory(image, size, base);
	assert_non_null(symtab);
	assert_true(ss_symtab_count(symtab) >= 4);
	ss_symtab_free(symtab);

	/* Without section headers the dynamic segment leads to the same symbols. */
	uint8_t *bytes = malloc(size);
	assert_non_null(bytes);
	memcpy(bytes, image, size);
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	symtab = ss_symtab_from_memory(bytes, size, base);
	free(bytes);
	assert_non_null(symtab);
	assert_true(ss_symtab_count(symtab) >= 4);
	bool found = false;
	for (uint64_t at = 0; at < size && !found; at += 16)
		found = ss_symtab_find(symtab, at, &symbol) &&
			strstr(symbol.name, "clock_gettime") != NULL;
	assert_true(found);
	ss_symtab_free(symtab);
}
