#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/lines.h"
#include "symbolize_sample.h"

static void check_sample(const struct sample *sample)
{
	uint64_t address = sample_address(sample, "prog", "mark_inner");
	struct ss_dwarf *dwarf = sample_dwarf(sample, "prog", false);
	struct ss_inline inlines[SS_INLINES_MAX];
	const char *function = NULL;
	uint64_t start = 0;

	assert_non_null(dwarf);
	struct ss_unit *unit = ss_dwarf_find_unit(dwarf, address);
	assert_non_null(unit);
	assert_int_equal(
		ss_unit_find_inlines(unit, address, true, inlines, &function, &start), 2);
	assert_string_equal(inlines[0].name, "inner");
	assert_int_equal(inlines[0].call.line, 9);
	assert_true(strstr(inlines[0].call.file, "sample.c") != NULL);
	assert_string_equal(inlines[1].name, "middle");
	assert_int_equal(inlines[1].call.line, 13);
	assert_string_equal(function, "outer");
	assert_true(start == sample_address(sample, "prog", "outer"));

	address = sample_address(sample, "prog", "main");
	assert_int_equal(
		ss_unit_find_inlines(unit, address, true, inlines, &function, &start), 0);
	assert_string_equal(function, "main");
	assert_int_equal(ss_unit_find_inlines(unit, 1, true, inlines, &function, &start),
			 0);
	assert_null(function);
	ss_dwarf_close(dwarf);
}

TEST_WITH(test_versions, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc -O1 -gdwarf-4 sample.c -o prog"));
	check_sample(sample);
	assert_true(sample_run(sample, "cc -O1 -gdwarf-5 sample.c -o prog"));
	check_sample(sample);
}

/* A hundred calls inlined into each other: some are shown, and it ends. */
TEST_WITH(test_deep, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_inline inlines[SS_INLINES_MAX];
	const char *function = NULL;
	uint64_t start = 0;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/deep.c", sample->dir);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	(void)fprintf(file, "int s;\nstatic inline __attribute__((always_inline)) void "
			    "f0(void) { s++; __asm__ volatile(\".globl "
			    "mark_inner\\nmark_inner: nop\"); }\n");
	for (int i = 1; i < 100; i++)
		(void)fprintf(file,
			      "static inline __attribute__((always_inline)) void "
			      "f%d(void) { f%d(); s++; }\n",
			      i, i - 1);
	(void)fprintf(file, "int main(void) { f99(); return s; }\n");
	assert_int_equal(fclose(file), 0);
	assert_true(sample_run(sample, "cc -O1 -g deep.c -o prog"));
	uint64_t address = sample_address(sample, "prog", "mark_inner");
	struct ss_dwarf *dwarf = sample_dwarf(sample, "prog", false);
	assert_non_null(dwarf);
	struct ss_unit *unit = ss_dwarf_find_unit(dwarf, address);
	assert_non_null(unit);
	assert_int_equal(
		ss_unit_find_inlines(unit, address, true, inlines, &function, &start),
		SS_INLINES_MAX);
	assert_string_equal(inlines[0].name, "f0");
	assert_string_equal(function, "main");
	ss_dwarf_close(dwarf);
}

/* Damaged bytes in .debug_info and .debug_abbrev: anything may come out but a crash. */
TEST_WITH(test_damage, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_inline inlines[SS_INLINES_MAX];
	const char *function;
	uint64_t start;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o prog"));
	uint64_t address = sample_address(sample, "prog", "mark_inner");
	struct ss_module_impl *module = sample_module(sample, "prog");
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	static const char *const names[] = { ".debug_info", ".debug_abbrev",
					     ".debug_line" };
	srand(1);
	for (int round = 0; round < 600; round++) {
		const Elf64_Shdr *section =
			ss_elf_find_section(elf, names[(size_t)round % 3]);
		assert_non_null(section);
		char path[128];
		(void)snprintf(path, sizeof(path), "%s/damaged", sample->dir);
		uint8_t *bytes = ss_elf_copy(elf, 0, elf->size);
		assert_non_null(bytes);
		for (int i = 0; i <= round % 5; i++)
			bytes[section->sh_offset + (uint64_t)rand() % section->sh_size] =
				(uint8_t)rand();
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		assert_int_equal(fwrite(bytes, 1, elf->size, file), elf->size);
		assert_int_equal(fclose(file), 0);
		free(bytes);
		struct ss_dwarf *dwarf = sample_dwarf(sample, "damaged", false);
		struct ss_unit *unit = dwarf ? ss_dwarf_find_unit(dwarf, address) : NULL;
		if (unit) {
			(void)ss_unit_find_line(unit, address);
			(void)ss_unit_find_inlines(unit, address, true, inlines,
						   &function, &start);
		}
		ss_dwarf_close(dwarf);
	}
	ss_elf_free(elf);
	ss_module_unref(module);
}
