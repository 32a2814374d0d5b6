#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/tables.h"
#include "symbolize_sample.h"

enum { EXPORTS = 5000 };

/* A library that exports many functions; its string table has a quarter of a megabyte. */
static struct ss_module_impl *build(const struct sample *sample, const char *style)
{
	assert_true(sample_run(
		sample,
		"(for i in $(seq %d); do echo \".globl a_name_that_is_rather_long_$i\"; "
		"echo \"a_name_that_is_rather_long_$i: nop\"; done) > many.s && "
		"cc -shared -nostdlib -Wl,--hash-style=%s many.s -o many.so",
		EXPORTS, style));
	return sample_module(sample, "many.so");
}

static void check(const struct sample *sample, const char *style)
{
	static const char *const names[] = { "a_name_that_is_rather_long_2",
					     "a_name_that_is_rather_long_4999",
					     "absent" };
	struct ss_module_impl *module = build(sample, style);
	struct ss_elf_symbol found[3];

	assert_true(ss_elf_find_symbols(module, names, 3, found));
	assert_true(found[0].address > 0);
	assert_int_equal(found[1].address - found[0].address, 4997);
	assert_int_equal(found[2].address, 0);
	assert_true(ss_elf_find_symbols(module, names + 2, 1, found));
	assert_int_equal(found[0].address, 0);
	ss_module_unref(module);
}

TEST_WITH(test_found, sample_setup, sample_teardown)
{
	check(*state, "gnu");
	check(*state, "sysv");
}

/* The names are not read for a symbol that is not exported. */
TEST_WITH(test_absent, sample_setup, sample_teardown)
{
	struct ss_module_impl *module = build(*state, "gnu");
	size_t longest = 0;

	for (int i = 0; i < 100; i++) {
		char name[32];
		const char *const names[] = { name };
		struct ss_elf_symbol found;
		(void)snprintf(name, sizeof(name), "absent_%d", i);
		unsigned long long before = sample_bytes_read();
		assert_true(ss_elf_find_symbols(module, names, 1, &found));
		assert_int_equal(found.address, 0);
		longest += sample_bytes_read() - before > 32 * 1024;
	}
	if (longest > 10) /* some have the hash of a name that is there */
		fail_msg("%zu of 100 searches read more than 32 KiB", longest);
	ss_module_unref(module);
}

/* Names that are exported are found by their hash: the others are not read, not even for a name
   that is not there. */
TEST_WITH(test_exported, sample_setup, sample_teardown)
{
	static const char *const names[] = { "a_name_that_is_rather_long_7",
					     "a_name_that_is_rather_long_4321",
					     "absent" };
	struct ss_module_impl *module = build(*state, "gnu");
	struct ss_elf_symbol found[3];

	unsigned long long before = sample_bytes_read();
	assert_true(ss_elf_find_symbols(module, names, 3, found));
	unsigned long long size = sample_bytes_read() - before;
	assert_int_equal(found[1].address - found[0].address, 4314);
	assert_int_equal(found[2].address, 0);
	if (size > 32 * 1024)
		fail_msg("%llu bytes were read", size);
	ss_module_unref(module);
}

/* A damaged table is not followed. */
TEST_WITH(test_damaged, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	static const char *const names[] = { "a_name_that_is_rather_long_2" };

	ss_module_unref(build(sample, "gnu"));
	for (int at = 0; at < 16; at++) {
		struct ss_elf_symbol found;
		assert_true(sample_run(sample,
				       "at=$(readelf -SW many.so | awk '/GNU_HASH/ { "
				       "print $(NF-6) }') && cp many.so bad.so && "
				       "printf '\\377' | dd of=bad.so bs=1 "
				       "seek=$((0x$at + %d)) conv=notrunc",
				       at));
		struct ss_module_impl *module = sample_module(sample, "bad.so");
		(void)ss_elf_find_symbols(module, names, 1, &found);
		ss_module_unref(module);
	}
}
