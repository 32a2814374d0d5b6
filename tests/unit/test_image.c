#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <sys/mman.h>

#include "elf/cfi_table.h"

enum { SEGMENTS = 4, BODY = 0x400 };

/* A file whose text is loaded at its offset + 0x5000. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr programs[SEGMENTS];
	uint8_t body[BODY];
};

static struct file make_file(void)
{
	struct file file = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_machine = EM_X86_64,
			    .e_phoff = offsetof(struct file, programs),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = SEGMENTS },
		.programs = { { .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_vaddr = 0x5000,
				.p_filesz = sizeof(struct file) } },
	};

	for (size_t i = 0; i < BODY; i++)
		file.body[i] = (uint8_t)i;
	return file;
}

static struct ss_image *open_bytes(const void *bytes, size_t size)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new("/x", 0x100000, 0x200000);
	const struct ss_mapping mapping = { .start = 0x100000, .end = 0x200000 };

	assert_true(ss_module_add_mapping(module, &mapping));
	module->bytes = malloc(size ? size : 1);
	memcpy(module->bytes, bytes, size);
	module->size = size;
	return ss_image_new(module);
}

static struct ss_image *open_file(const struct file *file)
{
	return open_bytes(file, sizeof(*file));
}

TEST(test_read)
{
	struct file file = make_file();
	_cleanup_(ss_image_cleanup) struct ss_image *image = open_file(&file);
	uint64_t body = 0x5000 + offsetof(struct file, body);
	uint8_t bytes[8] = {};

	assert_non_null(image);
	assert_int_equal(ss_image_read(image, body + 1, bytes, 8), 8);
	assert_int_equal(bytes[0], 1);
	assert_int_equal(ss_image_read(image, body + BODY - 3, bytes, 8), 3);
	assert_int_equal(ss_image_read(image, body + BODY, bytes, 8), 0);
	assert_int_equal(ss_image_read(image, 0x4fff, bytes, 8), 0);
	assert_int_equal(ss_image_read(image, UINT64_MAX, bytes, 8), 0);
	assert_int_equal(ss_image_bias(image, image->module), 0x100000 - 0x5000);
}

/* A part of the file is mapped once more. */
TEST(test_part)
{
	struct file file = make_file();
	_cleanup_(ss_image_cleanup) struct ss_image *image = open_file(&file);
	_cleanup_(ss_module_cleanup) struct ss_module_impl *part =
		ss_module_new("/x", 0x300000, 0x301000);
	const struct ss_mapping mapping = { .start = 0x300000,
					    .end = 0x301000,
					    .offset = 0x40 };

	assert_non_null(image);
	assert_true(ss_module_add_mapping(part, &mapping));
	assert_int_equal(ss_image_bias(image, part), 0x300000 - 0x5040);
}

TEST(test_truncated)
{
	struct file file = make_file();

	for (size_t size = 0; size < offsetof(struct file, body); size++)
		assert_null(open_bytes(&file, size));
	_cleanup_(ss_image_cleanup) struct ss_image *image =
		open_bytes(&file, offsetof(struct file, body) + 1);
	uint8_t bytes[8];
	assert_int_equal(
		ss_image_read(image, 0x5000 + offsetof(struct file, body), bytes, 8), 1);
}

/* Each absurd header separately: whether the image opens or not, its claims are not
   believed. */
TEST(test_absurd)
{
	static const uint64_t values[] = { 0,
					   1,
					   0x5000,
					   UINT64_C(1) << 36,
					   UINT64_C(1) << 40,
					   UINT64_MAX - 4096,
					   UINT64_MAX };
	uint8_t bytes[64];

	for (size_t i = 0; i < SS_ARRAY_SIZE(values) * 4; i++) {
		struct file file = make_file();
		uint64_t value = values[i / 4];
		uint64_t *fields[] = { &file.programs[0].p_vaddr,
				       &file.programs[0].p_offset,
				       &file.programs[0].p_filesz, &file.header.e_phoff };
		*fields[i % 4] = value;
		struct ss_image *image = open_file(&file);
		for (size_t k = 0; image && k < SS_ARRAY_SIZE(values); k++)
			(void)ss_image_read(image, values[k], bytes, sizeof(bytes));
		ss_image_free(image);
	}
	struct file file = make_file();
	file.header.e_phnum = UINT16_MAX;
	assert_null(open_file(&file)); /* the file is shorter */
	file = make_file();
	file.header.e_machine = EM_386;
	assert_null(open_file(&file));
	assert_null(open_bytes("", 0));
	ss_image_free(NULL);
}

/* Overlapping segments: the first one that is not writable wins. */
TEST(test_overlapping)
{
	struct file file = make_file();
	uint8_t byte;

	file.programs[1] = file.programs[0];
	file.programs[1].p_offset = offsetof(struct file, body);
	file.programs[1].p_filesz = BODY;
	file.programs[0].p_flags = PF_R | PF_W;
	_cleanup_(ss_image_cleanup) struct ss_image *image = open_file(&file);
	assert_int_equal(ss_image_read(image, 0x5000 + 7, &byte, 1), 1);
	assert_int_equal(byte, 7);
	assert_int_equal(ss_image_read(image, 0x5000 + BODY, &byte, 1), 0);
}

static void set_frame_header(struct file *file, const uint8_t *encodings, uint32_t count)
{
	file->programs[1] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
					  .p_vaddr = 0x5000 + offsetof(struct file, body),
					  .p_memsz = BODY };
	memcpy(file->body, encodings, 4);
	memcpy(file->body + 8, &count, sizeof(count));
}

static bool find_table(const struct file *file, struct ss_cfi_table *table)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image = open_file(file);

	assert_non_null(image);
	return ss_cfi_table_find(image, table);
}

TEST(test_table)
{
	static const uint8_t usual[] = { 1, 0x1b, 0x03, 0x3b };
	static const uint8_t unusual[][4] = {
		{ 2, 0x1b, 0x03, 0x3b }, { 1, 0xff, 0x03, 0x3b }, { 1, 0x1b, 0xff, 0x3b },
		{ 1, 0x1b, 0x03, 0xff }, { 1, 0x1b, 0x01, 0x3b }, { 1, 0x1b, 0x03, 0x1b },
	};
	struct file file = make_file();
	struct ss_cfi_table table;

	assert_false(find_table(&file, &table));
	set_frame_header(&file, usual, 2);
	assert_true(find_table(&file, &table));
	assert_int_equal(table.count, 2);
	set_frame_header(&file, usual, 0);
	assert_false(find_table(&file, &table));
	set_frame_header(&file, usual, UINT32_MAX); /* not more than fit */
	assert_true(find_table(&file, &table));
	assert_int_equal(table.count, (BODY - 12) / 8);
	file.programs[1].p_memsz = 12;
	assert_false(find_table(&file, &table));
	for (size_t i = 0; i < SS_ARRAY_SIZE(unusual); i++) {
		set_frame_header(&file, unusual[i], 2);
		assert_false(find_table(&file, &table));
	}
	set_frame_header(&file, usual, 2);
	file.programs[1].p_vaddr = 0x4000; /* in no segment */
	assert_false(find_table(&file, &table));
}

/* Symbols, their names, and relocations of two slots, in the body. */
static struct file make_imports(void)
{
	enum { DYNAMIC = 0, SYMBOLS = 0x100, STRINGS = 0x200, TABLE = 0x240 };
	const uint64_t body = 0x5000 + offsetof(struct file, body);
	const Elf64_Dyn dynamic[] = {
		{ DT_SYMTAB, { body + SYMBOLS } },
		{ DT_STRTAB, { body + STRINGS } },
		{ DT_STRSZ, { 16 } },
		{ DT_JMPREL, { body + TABLE } },
		{ DT_PLTRELSZ, { 24 } },
		{ DT_RELA, { body + TABLE + 24 } },
		{ DT_RELASZ, { 48 } },
		{ DT_NULL, { 0 } },
	};
	const Elf64_Sym symbols[] = {
		{}, { .st_name = 1 }, { .st_name = 6 }, { .st_name = 99 }
	};
	const Elf64_Rela table[] = { { 0x9000, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0 },
				     { 0x9008, ELF64_R_INFO(2, R_X86_64_GLOB_DAT), 0 },
				     { 0x9010, ELF64_R_INFO(3, R_X86_64_GLOB_DAT), 0 } };
	struct file file = make_file();

	memset(file.body, 0, sizeof(file.body));
	memcpy(file.body + DYNAMIC, dynamic, sizeof(dynamic));
	memcpy(file.body + SYMBOLS, symbols, sizeof(symbols));
	memcpy(file.body + STRINGS, "\0lock\0wait\0rest", 16);
	memcpy(file.body + TABLE, table, sizeof(table));
	file.programs[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
					 .p_offset = offsetof(struct file, body),
					 .p_filesz = sizeof(dynamic) };
	return file;
}

TEST(test_imports)
{
	const struct file file = make_imports();
	_cleanup_(ss_image_cleanup) struct ss_image *image = open_file(&file);
	const struct file plain = make_file();
	_cleanup_(ss_image_cleanup) struct ss_image *without = open_file(&plain);
	char name[16];

	assert_true(image && without);
	assert_true(ss_image_find_import(image, 0x9000, name, sizeof(name)));
	assert_string_equal(name, "lock");
	assert_true(ss_image_find_import(image, 0x9008, name, sizeof(name)));
	assert_string_equal(name, "wait");
	assert_false(ss_image_find_import(image, 0x9008, name, 4));
	/* its name is beyond the strings; there is no such slot; no dynamic section */
	assert_false(ss_image_find_import(image, 0x9010, name, sizeof(name)));
	assert_false(ss_image_find_import(image, 0x9018, name, sizeof(name)));
	assert_false(ss_image_find_import(without, 0x9000, name, sizeof(name)));
}
