#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/lines.h"
#include "symbolize_sample.h"

static void expect_line_in(struct ss_dwarf *dwarf, uint64_t address, uint32_t line)
{
	assert_non_null(dwarf);
	struct ss_unit *unit = ss_dwarf_find_unit(dwarf, address);
	assert_non_null(unit);
	struct ss_location location = ss_unit_find_line(unit, address);
	assert_int_equal(location.line, line);
	assert_non_null(location.file);
	assert_true(strstr(location.file, "sample.c") != NULL);
	/* No code of any unit. */
	assert_null(ss_dwarf_find_unit(dwarf, 0x10));
	assert_null(ss_dwarf_find_unit(dwarf, UINT64_MAX));
	ss_dwarf_close(dwarf);
}

static void expect_line(const struct sample *sample, const char *name, uint32_t line)
{
	uint64_t address = sample_address(sample, name, "mark_inner");

	for (int may_fault = 0; may_fault <= 1; may_fault++)
		expect_line_in(sample_dwarf(sample, name, may_fault != 0), address, line);
}

TEST_WITH(test_versions, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	static const char *const options[] = { "-gdwarf-4", "-gdwarf-5",
					       "-gdwarf-5 -gz" };

	for (size_t i = 0; i < SS_ARRAY_SIZE(options); i++) {
		assert_true(sample_run(sample, "cc -O1 %s sample.c -o prog", options[i]));
		expect_line(sample, "prog", 5);
	}
}

/* Each compression that linkers offer; binutils may lack the last one. */
TEST_WITH(test_compressions, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	static const char *const kinds[] = { "zlib-gabi", "zlib-gnu", "zstd" };

	for (size_t i = 0; i < SS_ARRAY_SIZE(kinds); i++) {
		bool made = sample_run(sample,
				       "cc -O1 -g sample.c -o prog && objcopy "
				       "--compress-debug-sections=%s prog 2>objcopy.log",
				       kinds[i]);
		assert_true(made || i == 2);
		if (made)
			expect_line(sample, "prog", 5);
	}
}

/* Compressed bytes that are damaged: no DWARF, and nothing worse. */
TEST_WITH(test_damaged_compression, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample,
			       "cc -O1 -g -gz sample.c -o prog && objcopy --dump-section "
			       ".debug_info=info prog && printf 'damaged!' | dd of=info "
			       "bs=1 seek=40 conv=notrunc 2>dd.log && objcopy "
			       "--update-section .debug_info=info prog damaged"));
	struct ss_dwarf *dwarf = sample_dwarf(sample, "damaged", false);
	if (dwarf) /* objcopy unpacked it */
		assert_null(ss_dwarf_find_unit(dwarf, 0x10));
	ss_dwarf_close(dwarf);
}

/* Sections that are large enough to be mapped, where that is allowed. Where it is not, a file
   that is truncated afterwards does no harm. */
TEST_WITH(test_large, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(
		sample, "seq 4000 | sed 's/.*/int large_&(int a) { return a + &; }/' > "
			"large.c && cc -O0 -g -c large.c && cc -O1 -g -c sample.c && "
			"cc large.o sample.o -o prog"));
	expect_line(sample, "prog", 5);
	uint64_t address = sample_address(sample, "prog", "mark_inner");
	struct ss_dwarf *dwarf = sample_dwarf(sample, "prog", false);
	assert_true(sample_run(sample, ": > prog"));
	expect_line_in(dwarf, address, 5);
}

/* As Clang writes it. */
TEST_WITH(test_without_aranges, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o prog && objcopy "
				       "--remove-section .debug_aranges prog"));
	expect_line(sample, "prog", 5);
}

/* One unit has an index, the other has none. */
TEST_WITH(test_two_units, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(
		sample, "echo 'int other(void) { return 1; }' > other.c && "
			"cc -O1 -g -c other.c && cc -O1 -g -c sample.c && "
			"objcopy --remove-section .debug_aranges --remove-section "
			".rela.debug_aranges sample.o && cc other.o sample.o -o prog"));
	expect_line(sample, "prog", 5);
}

TEST_WITH(test_without_dwarf, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc sample.c -o prog && strip prog"));
	assert_null(sample_dwarf(sample, "prog", false));
	ss_dwarf_close(NULL);
}

/* Not a file that a name in the module leads to, and not more memory than is sane. */
TEST_WITH(test_hostile_sections, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample,
			       "mkfifo pipe && printf 'pipe\\0001234' > link && "
			       "cc -O1 -g sample.c -o prog && objcopy --add-section "
			       ".gnu_debugaltlink=link prog"));
	expect_line(sample, "prog", 5);
	/* A packed section that says it is of 2^63 bytes when unpacked. */
	assert_true(sample_run(sample,
			       "{ printf 'ZLIB\\177\\0\\0\\0\\0\\0\\0\\0'; head -c 99 "
			       "prog; } > huge && cc sample.c -o prog && objcopy "
			       "--add-section .zdebug_info=huge prog"));
	assert_null(sample_dwarf(sample, "prog", false));
}
