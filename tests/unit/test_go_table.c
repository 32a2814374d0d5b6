/*
 * Handmade function tables of Go in each layout, with three functions: the first moves
 * the stack pointer, and the name of the last lies beyond the table of names.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "symbolize/symtab.h"
#include "unwind/walk.h"

enum {
	TEXT = 0x401000,
	TABLE = 0x500000,
	NAMES = 0x100,
	PAIRS = 0x200,
	NUMBERS = 0x380,
	MOVES = 4, /* after NUMBERS */
	SIZE = 0x400,
};
enum { NONE, GO_TABLE, SECTION_NAMES, RELOCATIONS, GO_MODULE, SECTIONS };

static const char section_names[] =
	"\0.gopclntab\0.data.rel.ro.gopclntab\0.shstrtab\0.go.module";
enum { MODULE = 0x600000, MODULE_NAME = 45 };

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr programs[4];
	Elf64_Shdr sections[SECTIONS];
	Elf64_Rela relocations[2];
	char names[sizeof(section_names)];
	_Alignas(32) uint8_t table[SIZE];
	uint64_t module[23];
	Elf64_Dyn dynamic[3];
	_Alignas(16) char build_info[64];
};

static void put(struct image *image, size_t offset, uint64_t value, size_t size)
{
	memcpy(image->table + offset, &value, size);
}

static void begin(struct image *image, uint32_t magic)
{
	*image = (struct image){ .header = { .e_type = ET_EXEC,
					     .e_machine = EM_X86_64,
					     .e_phoff = offsetof(struct image, programs),
					     .e_phentsize = sizeof(Elf64_Phdr),
					     .e_phnum = 1,
					     .e_shoff = offsetof(struct image, sections),
					     .e_shentsize = sizeof(Elf64_Shdr),
					     .e_shnum = SECTIONS,
					     .e_shstrndx = SECTION_NAMES } };
	memcpy(image->header.e_ident, ELFMAG, SELFMAG);
	image->header.e_ident[EI_CLASS] = ELFCLASS64;
	image->header.e_ident[EI_DATA] = ELFDATA2LSB;
	image->programs[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
					   .p_flags = PF_R,
					   .p_vaddr = 0x400000,
					   .p_filesz = sizeof(*image) };
	image->sections[GO_TABLE] =
		(Elf64_Shdr){ .sh_name = 1,
			      .sh_type = SHT_PROGBITS,
			      .sh_addr = TABLE,
			      .sh_offset = offsetof(struct image, table),
			      .sh_size = SIZE };
	image->sections[SECTION_NAMES] =
		(Elf64_Shdr){ .sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct image, names),
			      .sh_size = sizeof(section_names) };
	memcpy(image->names, section_names, sizeof(section_names));
	put(image, 0, magic, 4);
	put(image, 6, 1, 1);
	put(image, 7, 8, 1);
	put(image, 8, 3, 8);
	memcpy(image->table + NAMES, "main.main\0runtime.goexit", 25);
	/* 0 for 4 bytes, 0x18 for 0x20 bytes, then 0 again. */
	memcpy(image->table + NUMBERS + MOVES, "\x02\x04\x30\x20\x2f\x0c\0", 7);
}

/* Entries and offsets have size bytes; offsets are relative to base. */
static void put_functions(struct image *image, size_t pairs, size_t size, uint64_t text,
			  size_t base, uint32_t names, uint32_t numbers)
{
	static const uint64_t starts[] = { 0x10, 0x40, 0x80, 0xc0 };
	static const uint32_t name_offsets[] = { 0, 10, 0x100000 };

	for (size_t i = 0; i < 4; i++) {
		size_t function = PAIRS + 0x80 + i * 0x20;
		put(image, pairs + i * 2 * size, text + starts[i], size);
		if (i == 3)
			break;
		put(image, pairs + (i * 2 + 1) * size, function - base, size);
		put(image, function, text + starts[i], size);
		put(image, function + size, names + name_offsets[i], 4);
		put(image, function + size + 12, i ? 0 : numbers + MOVES, 4);
	}
}

static struct ss_symtab *build(const struct image *image)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
		ss_elf_from_memory(image, sizeof(*image));
	struct ss_symtab *symtab = ss_symtab_new();

	assert_non_null(elf);
	assert_non_null(symtab);
	(void)ss_symtab_add_go(symtab, elf);
	assert_true(ss_symtab_build(symtab));
	return symtab;
}

static void assert_name(const struct ss_symtab *symtab, uint64_t address,
			const char *wanted)
{
	struct ss_symbol symbol;

	if (!wanted) {
		assert_false(ss_symtab_find(symtab, address, &symbol));
		return;
	}
	assert_true(ss_symtab_find(symtab, address, &symbol));
	assert_string_equal(symbol.name, wanted);
}

static struct ss_image *open_image(const struct image *image)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new("/x", 0x400000, 0x600000);

	module->bytes = malloc(sizeof(*image));
	memcpy(module->bytes, image, sizeof(*image));
	module->size = sizeof(*image);
	return ss_image_new(module);
}

static void assert_depth(struct ss_image *image, uint64_t address, int32_t wanted)
{
	struct ss_cfi_row row;

	assert_true(ss_go_row_make(image, address, &row));
	assert_int_equal(row.cfa_register, ss_arch_host.sp);
	assert_int_equal(row.cfa_offset, wanted + 8);
	assert_int_equal(row.return_rule, SS_RETURN_SAVED);
	assert_int_equal(row.return_offset, -8);
	assert_int_equal(row.saved_count, wanted != 0);
	if (wanted)
		assert_int_equal(row.saved[0].reg, ss_arch_host.fp);
	if (wanted)
		assert_int_equal(row.saved[0].offset, -16);
}

static void check_rows(const struct image *bytes)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image = open_image(bytes);
	struct ss_cfi_row row;

	assert_non_null(image);
	assert_depth(image, TEXT + 0x10, 0);
	assert_depth(image, TEXT + 0x13, 0);
	assert_depth(image, TEXT + 0x14, 0x18);
	assert_depth(image, TEXT + 0x33, 0x18);
	assert_depth(image, TEXT + 0x34, 0);
	assert_depth(image, TEXT + 0x3f, 0);
	/* Before the first function; a function without information; after the last
	   one. */
	assert_false(ss_go_row_make(image, TEXT + 0xf, &row));
	assert_false(ss_go_row_make(image, TEXT + 0x40, &row));
	assert_false(ss_go_row_make(image, TEXT + 0xc0, &row));
}

static void check(const struct image *image)
{
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *symtab = build(image);

	assert_int_equal(ss_symtab_count(symtab), 2);
	assert_name(symtab, TEXT + 0xf, NULL);
	assert_name(symtab, TEXT + 0x10, "main.main");
	assert_name(symtab, TEXT + 0x3f, "main.main");
	assert_name(symtab, TEXT + 0x40, "runtime.goexit");
	assert_name(symtab, TEXT + 0x80, NULL);
	assert_name(symtab, TEXT + 0xc0, NULL);
	check_rows(image);
}

static void check_none(const struct image *image)
{
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *symtab = build(image);

	assert_int_equal(ss_symtab_count(symtab), 0);
}

static void make_1_2(struct image *image)
{
	begin(image, 0xfffffffb);
	put_functions(image, 16, 8, TEXT, 0, NAMES, NUMBERS);
}

static void make_1_16(struct image *image)
{
	begin(image, 0xfffffffa);
	put(image, 24, NAMES, 8);
	put(image, 32, PAIRS, 8);
	put(image, 56, PAIRS, 8);
	put(image, 48, NUMBERS, 8);
	put_functions(image, PAIRS, 8, TEXT, PAIRS, 0, 0);
}

static void make_1_18(struct image *image, uint32_t magic)
{
	begin(image, magic);
	put(image, 24, TEXT, 8);
	put(image, 32, NAMES, 8);
	put(image, 40, PAIRS, 8);
	put(image, 64, PAIRS, 8);
	put(image, 56, NUMBERS, 8);
	put_functions(image, PAIRS, 4, 0, PAIRS, 0, 0);
}

TEST(test_layouts)
{
	struct image image;

	make_1_2(&image);
	check(&image);
	make_1_16(&image);
	check(&image);
	make_1_18(&image, 0xfffffff0);
	check(&image);
	make_1_18(&image, 0xfffffff1);
	check(&image);
}

/* The loader writes the start of the text. */
TEST(test_position_independent)
{
	struct image image;

	make_1_18(&image, 0xfffffff1);
	put(&image, 24, 0, 8);
	check_none(&image);
	image.sections[GO_TABLE].sh_name = 12;
	image.sections[RELOCATIONS] =
		(Elf64_Shdr){ .sh_type = SHT_RELA,
			      .sh_offset = offsetof(struct image, relocations),
			      .sh_size = sizeof(image.relocations),
			      .sh_entsize = sizeof(Elf64_Rela) };
	image.relocations[1] = (Elf64_Rela){ .r_offset = TABLE + 24, .r_addend = TEXT };
	check(&image);
}

/* Since Go 1.26 the start of the text is in the module's description only. */
TEST(test_text_of_module)
{
	struct image image;

	make_1_18(&image, 0xfffffff1);
	put(&image, 24, 0, 8);
	image.sections[GO_MODULE] =
		(Elf64_Shdr){ .sh_name = MODULE_NAME,
			      .sh_type = SHT_PROGBITS,
			      .sh_addr = MODULE,
			      .sh_offset = offsetof(struct image, module),
			      .sh_size = sizeof(image.module) };
	image.module[22] = TEXT;
	check_none(&image); /* of another table */
	image.module[0] = TABLE;
	check(&image);
	image.sections[GO_MODULE].sh_size = sizeof(image.module) - 1;
	check_none(&image);
	/* The loader writes both words. */
	image.sections[GO_MODULE].sh_size = sizeof(image.module);
	image.module[0] = image.module[22] = 0;
	image.sections[RELOCATIONS] =
		(Elf64_Shdr){ .sh_type = SHT_RELA,
			      .sh_offset = offsetof(struct image, relocations),
			      .sh_size = sizeof(image.relocations),
			      .sh_entsize = sizeof(Elf64_Rela) };
	image.relocations[0] = (Elf64_Rela){ .r_offset = MODULE, .r_addend = TABLE };
	image.relocations[1] =
		(Elf64_Rela){ .r_offset = MODULE + 22 * 8, .r_addend = TEXT };
	check(&image);
}

static Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t address, size_t offset,
			  size_t size)
{
	return (Elf64_Phdr){ .p_type = type,
			     .p_flags = flags,
			     .p_vaddr = address,
			     .p_offset = offset,
			     .p_filesz = size };
}

/* The code, and the data with the version of Go, are recognised by their segments. */
static void remove_sections(struct image *image)
{
	image->header.e_shoff = image->header.e_shnum = image->header.e_shstrndx = 0;
	image->header.e_phnum = 3;
	image->programs[1] = segment(PT_LOAD, PF_R | PF_X, TEXT, 0, 0x100);
	image->programs[2] = segment(PT_LOAD, PF_R | PF_W, 0x700000,
				     offsetof(struct image, build_info),
				     sizeof(image->build_info));
	memcpy(image->build_info + 16, "\xff Go buildinf:", 14);
}

TEST(test_without_sections)
{
	struct image image;

	make_1_18(&image, 0xfffffff1);
	remove_sections(&image);
	check(&image);
	image.build_info[16] = 0;
	check_none(&image);
	image.build_info[16] = '\xff';
	image.programs[1].p_flags = PF_R;
	check_none(&image);
	/* The loader writes the start of the text. */
	image.programs[1].p_flags = PF_R | PF_X;
	put(&image, 24, 0, 8);
	check_none(&image);
	image.header.e_phnum = 4;
	image.programs[3] = segment(PT_DYNAMIC, PF_R, 0, offsetof(struct image, dynamic),
				    sizeof(image.dynamic));
	image.dynamic[0] = (Elf64_Dyn){ .d_tag = DT_RELASZ,
					.d_un.d_val = sizeof(image.relocations) };
	image.dynamic[1] = (Elf64_Dyn){ .d_tag = DT_RELA,
					.d_un.d_ptr = 0x400000 + offsetof(struct image,
									  relocations) };
	image.relocations[1] = (Elf64_Rela){
		.r_offset = 0x400000 + offsetof(struct image, table) + 24,
		.r_addend = TEXT,
	};
	check(&image);
	image.dynamic[0].d_un.d_val = sizeof(*image.relocations);
	check_none(&image);
	image.dynamic[0].d_un.d_val = UINT64_MAX;
	image.dynamic[1].d_un.d_ptr = UINT64_MAX - 7;
	check_none(&image);
}

static void use(const struct image *bytes)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image = open_image(bytes);
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	struct ss_go_call calls[4];
	struct ss_cfi_row row;

	ss_symtab_free(build(bytes));
	for (uint64_t address = TEXT; image && address < TEXT + 0xd0; address += 0x10) {
		(void)ss_go_row_make(image, address, &row);
		(void)ss_go_find_calls(image, address, 0x400000, strings, calls, 4);
	}
}

/* Changes each byte of the table: nothing is read beyond its end. */
TEST(test_hostile)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct image image;

	make_1_18(&image, 0xffffffff);
	check_none(&image);
	for (size_t i = 0; i < SIZE; i++) {
		for (size_t j = 0; j < sizeof(values); j++) {
			for (unsigned layout = 0; layout < 4; layout++) {
				if (layout == 0)
					make_1_2(&image);
				else if (layout == 1)
					make_1_16(&image);
				else
					make_1_18(&image, 0xfffffff0);
				if (layout == 3)
					remove_sections(&image);
				image.table[i] = values[j];
				use(&image);
			}
		}
	}
	for (size_t size = 0; size < SIZE; size++) {
		make_1_18(&image, 0xfffffff0);
		image.sections[GO_TABLE].sh_size = size;
		use(&image);
	}
}
