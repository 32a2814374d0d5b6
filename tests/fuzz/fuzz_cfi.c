/* The unwind tables of a module: headers, search table, entries and rows. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "unwind/cfi.h"

enum { PROBES = 32 };

static void probe(struct ss_image *image, const struct ss_cfi_table *table,
		  uint64_t address)
{
	struct ss_cfi_entry entry;
	struct ss_cfi_row row = {};
	uint64_t start;
	uint64_t fde;

	/* As a caller may have it: what is not set is noticed. */
	memset(&entry, 0xa5, sizeof(entry));
	(void)ss_cfi_table_search(image, table, address, &start, &fde);
	if (ss_cfi_entry_find(image, table, address, &entry) != SS_CFI_FOUND)
		return;
	FUZZ_REQUIRE(entry.start <= address && address < entry.end);
	FUZZ_REQUIRE(entry.initial.size <= SS_CFI_PROGRAM_MAX);
	FUZZ_REQUIRE(entry.program.size <= SS_CFI_PROGRAM_MAX);
	if (!ss_cfi_row_make(image->arch, &entry, address, &row))
		return;
	FUZZ_REQUIRE(row.cfa_register < image->arch->reg_count);
	FUZZ_REQUIRE(row.saved_count <= SS_ROW_SAVED_MAX);
	for (size_t i = 0; i < row.saved_count; i++)
		FUZZ_REQUIRE(row.saved[i].reg < image->arch->reg_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new("fuzz", 0x10000, 0x10000 + size);
	struct ss_cfi_table table;

	FUZZ_REQUIRE(module);
	module->bytes = malloc(size ? size : 1);
	FUZZ_REQUIRE(module->bytes);
	memcpy(module->bytes, data, size);
	module->size = size;

	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);

	if (!image)
		return 0;
	/* Without a table there may be .debug_frame. */
	(void)ss_cfi_table_find(image, &table);

	uint64_t span = image->high - image->low;

	for (uint64_t i = 0; i < PROBES; i++)
		probe(image, &table, image->low + span / PROBES * i);
	for (uint64_t i = 0; i < PROBES; i++)
		probe(image, &table, image->low + i * 16);
	probe(image, &table, 0);
	probe(image, &table, UINT64_MAX);
	return 0;
}
