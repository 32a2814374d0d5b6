/* A Go program: its function table, and the unwind row of an address. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "symbolize/symtab.h"
#include "unwind/walk.h"

enum { PROBES = 64 };

static void probe(struct ss_image *image, const struct ss_symtab *symtab,
		  uint64_t address)
{
	struct ss_cfi_row row;
	struct ss_symbol symbol;

	if (image && ss_go_row_make(image, address, &row))
		FUZZ_REQUIRE(row.cfa_offset >= 8 && row.cfa_offset % 8 == 0);
	if (ss_symtab_find(symtab, address, &symbol)) {
		FUZZ_REQUIRE(symbol.start <= address);
		fuzz_touch(symbol.name, strlen(symbol.name));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_memory(data, size);
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *symtab = ss_symtab_new();
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new("fuzz", 0x400000, 0x600000);
	struct ss_go_table go = {};

	FUZZ_REQUIRE(symtab && module);
	if (!elf || !ss_go_table_find(elf, &go))
		return 0;
	(void)ss_symtab_add_go(symtab, elf);
	FUZZ_REQUIRE(ss_symtab_build(symtab));
	module->bytes = malloc(size);
	FUZZ_REQUIRE(module->bytes);
	memcpy(module->bytes, data, size);
	module->size = size;
	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);
	for (uint64_t i = 0; i < PROBES; i++)
		probe(image, symtab, go.text + i * 8);
	for (size_t at = 0; at + 8 <= size; at += size / PROBES + 8) {
		uint64_t address;
		memcpy(&address, data + at, sizeof(address));
		probe(image, symtab, address);
	}
	return 0;
}
