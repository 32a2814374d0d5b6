#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize_sample.h"

static bool has_symbol(const struct ss_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->symbols[i].st_name < table->names_size &&
		    strcmp(table->names + table->symbols[i].st_name, name) == 0)
			return true;
	}
	return false;
}

/* The exported symbols of a library, through its sections and through its dynamic
   segment, with each kind of hash table. */
static void check_library(const struct sample *sample, const char *style)
{
	struct ss_table by_section = {};
	struct ss_table by_segment = {};

	assert_true(sample_run(sample,
			       "cc -shared -fPIC -Wl,--hash-style=%s sample.c "
			       "-o lib.so",
			       style));
	struct ss_module_impl *module = sample_module(sample, "lib.so");
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	assert_true(ss_table_read(elf, SHT_DYNSYM, &by_section));
	assert_true(has_symbol(&by_section, "outer"));
	assert_true(ss_table_read_dynamic(elf, 0x7f0000000000, &by_segment));
	assert_true(has_symbol(&by_segment, "outer"));
	assert_true(has_symbol(&by_segment, "main"));
	assert_true(by_segment.count <= by_section.count);
	ss_table_free(&by_section);
	ss_table_free(&by_segment);
	ss_elf_free(elf);
	ss_module_unref(module);
}

/* Its names take several reads, and each read ends within one of them. */
TEST_WITH(test_beginnings, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample,
			       "for i in $(seq 10000 14000); do echo "
			       "\"int symbol_${i}_long_name_of_it;\"; done >many.c; "
			       "cc -shared -fPIC many.c -o lib.so"));
	struct ss_module_impl *module = sample_module(sample, "lib.so");
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	for (int i = 10000; i <= 14000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "symbol_%d_long", i);
		assert_true(ss_table_has_name(elf, SHT_DYNSYM, name));
	}
	assert_false(ss_table_has_name(elf, SHT_DYNSYM, "symbol_14001"));
	assert_false(ss_table_has_name(elf, SHT_DYNSYM, "ymbol_10000"));
	ss_elf_free(elf);
	ss_module_unref(module);
}

TEST_WITH(test_hash_styles, sample_setup, sample_teardown)
{
	check_library(*state, "gnu");
	check_library(*state, "sysv");
	check_library(*state, "both");
}

/* Loaded, glibc has made the pointers of the dynamic segment absolute. */
TEST_WITH(test_relocated_pointers, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	const uint64_t base = 0x7f1234560000;
	struct ss_table table = {};

	assert_true(sample_run(sample, "cc -shared -fPIC sample.c -o lib.so"));
	struct ss_module_impl *module = sample_module(sample, "lib.so");
	struct ss_elf *file = ss_elf_from_fd(module->fd);
	assert_non_null(file);
	uint8_t *image = ss_elf_copy(file, 0, file->size);
	assert_non_null(image);
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segments[i].p_type != PT_DYNAMIC)
			continue;
		Elf64_Dyn *entry = (Elf64_Dyn *)(image + file->segments[i].p_offset);
		for (; entry->d_tag != DT_NULL; entry++) {
			if (entry->d_tag == DT_SYMTAB || entry->d_tag == DT_STRTAB ||
			    entry->d_tag == DT_GNU_HASH)
				entry->d_un.d_ptr += base;
		}
	}
	struct ss_elf *elf = ss_elf_from_memory(image, file->size);
	assert_non_null(elf);
	assert_false(ss_table_read_dynamic(elf, 0, &table));
	assert_true(ss_table_read_dynamic(elf, base, &table));
	assert_true(has_symbol(&table, "outer"));
	ss_table_free(&table);
	ss_elf_free(elf);
	ss_elf_free(file);
	free(image);
	ss_module_unref(module);
}

/* Random bytes in the data that describes the tables. */
TEST_WITH(test_damage, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc -shared -fPIC sample.c -o lib.so"));
	struct ss_module_impl *module = sample_module(sample, "lib.so");
	struct ss_elf *file = ss_elf_from_fd(module->fd);
	assert_non_null(file);
	srand(1);
	for (int round = 0; round < 2000; round++) {
		uint8_t *image = ss_elf_copy(file, 0, file->size);
		struct ss_table table = {};
		assert_non_null(image);
		for (int i = 0; i < 20; i++)
			image[sizeof(Elf64_Ehdr) +
			      (size_t)rand() % (file->size - sizeof(Elf64_Ehdr))] =
				(uint8_t)rand();
		struct ss_elf *elf = ss_elf_from_memory(image, file->size);
		if (elf && ss_table_read(elf, SHT_DYNSYM, &table))
			ss_table_free(&table);
		if (elf && ss_table_read_dynamic(elf, 0x1000, &table))
			ss_table_free(&table);
		ss_elf_free(elf);
		free(image);
	}
	ss_elf_free(file);
	ss_module_unref(module);
}
