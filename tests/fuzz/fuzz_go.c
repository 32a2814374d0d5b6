/* A Go program: its function table; the unwind row, the lines and the inlined calls of an address. */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "fuzz.h"
#include "symbolize/symtab.h"
#include "unwind/walk.h"

enum { PROBES = 64 };

static void probe(struct ss_image *image, const struct ss_symtab *symtab,
		  uint64_t address, uint64_t data, struct ss_intern *strings)
{
	struct ss_go_call calls[8];
	struct ss_cfi_row row;
	struct ss_symbol symbol;
	size_t count = image ? ss_go_find_calls(image, address, data, strings, calls, 8) :
			       0;

	FUZZ_REQUIRE(count <= 8);
	for (size_t i = 0; i < count; i++) {
		FUZZ_REQUIRE(!calls[i].line == !calls[i].file);
		if (calls[i].file)
			fuzz_touch(calls[i].file, strlen(calls[i].file));
		if (calls[i].function)
			fuzz_touch(calls[i].function, strlen(calls[i].function));
	}

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
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	struct ss_go_table go = {};

	FUZZ_REQUIRE(symtab && module && strings);
	if (!elf || !ss_go_table_find(elf, &go))
		return 0;
	(void)ss_symtab_add_go(symtab, elf);
	FUZZ_REQUIRE(ss_symtab_build(symtab));
	module->bytes = malloc(size);
	FUZZ_REQUIRE(module->bytes);
	memcpy(module->bytes, data, size);
	module->size = size;
	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);
	const uint64_t found = ss_go_table_find_data(elf, &go);
	for (uint64_t i = 0; i < PROBES; i++)
		probe(image, symtab, go.text + i * 8, found, strings);
	for (size_t at = 0; at + 8 <= size; at += size / PROBES + 8) {
		uint64_t address;
		memcpy(&address, data + at, sizeof(address));
		probe(image, symtab, address, address, strings);
	}
	return 0;
}
