#include "proc/auxv.h"

#include <linux/auxvec.h>
#include <string.h>

bool ss_auxv_find(const void *bytes, size_t size, uint64_t type, uint64_t *ret)
{
	uint64_t entry[2]; /* type and value */

	for (size_t at = 0; size - at >= sizeof(entry); at += sizeof(entry)) {
		memcpy(entry, (const char *)bytes + at, sizeof(entry));
		if (entry[0] == type) {
			*ret = entry[1];
			return true;
		}
	}
	return false;
}

static bool has_page_size_64(const char *bytes, size_t size)
{
	uint64_t page;

	return ss_auxv_find(bytes, size, AT_PAGESZ, &page) && page != 0;
}

static bool has_page_size_32(const char *bytes, size_t size)
{
	uint32_t entry[2];

	for (size_t at = 0; size - at >= sizeof(entry); at += sizeof(entry)) {
		memcpy(entry, bytes + at, sizeof(entry));
		if (entry[0] == AT_PAGESZ)
			return entry[1] != 0;
	}
	return false;
}

unsigned ss_auxv_word_bits(const void *bytes, size_t size)
{
	/* In a vector of 32-bit words no pair looks like a 64-bit type: the upper half
	   would be the page size. */
	if (has_page_size_64(bytes, size))
		return 64;
	return has_page_size_32(bytes, size) ? 32 : 0;
}
