/*
 * The size of the words of an auxiliary vector.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <linux/auxvec.h>

#include "base/procfs.h"

enum { PAGE = 4096, SYSINFO_32 = 32 /* SYSINFO_32, of 32-bit x86 only */ };

TEST(test_64)
{
	const uint64_t words[] = { AT_SYSINFO_EHDR, 0x7fff12345000, AT_HWCAP, 0xbfebfbff,
				   AT_PAGESZ,	    PAGE,	    AT_NULL,  0 };

	assert_int_equal(ss_auxv_word(words, sizeof(words)), 8);
	assert_int_equal(ss_auxv_word(words, 5 * sizeof(*words)), 0); /* cut */
}

TEST(test_32)
{
	/* The page size at an even and at an odd entry. */
	const uint32_t even[] = { SYSINFO_32, 0xf7f0a550, AT_SYSINFO_EHDR, 0xf7f0a000,
				  AT_PAGESZ,  PAGE,	  AT_NULL,	   0 };
	const uint32_t odd[] = { SYSINFO_32, 0xf7f0a550, AT_PAGESZ, PAGE, AT_NULL, 0 };

	assert_int_equal(ss_auxv_word(even, sizeof(even)), 4);
	assert_int_equal(ss_auxv_word(odd, sizeof(odd)), 4);
}

TEST(test_invalid)
{
	const uint64_t zero[] = { AT_PAGESZ, 0, AT_NULL, 0 };
	char bytes[64];

	assert_int_equal(ss_auxv_word("", 0), 0);
	assert_int_equal(ss_auxv_word(zero, sizeof(zero)), 0);
	memset(bytes, 0xff, sizeof(bytes));
	for (size_t size = 0; size <= sizeof(bytes); size++)
		assert_int_equal(ss_auxv_word(bytes, size), 0);
}

TEST(test_own)
{
	char bytes[4096];
	FILE *file = fopen("/proc/self/auxv", "re");
	size_t size = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

	if (file)
		(void)fclose(file); /* only read from */
	if (size == 0)
		skip();
	assert_int_equal(ss_auxv_word(bytes, size), sizeof(void *));
}
