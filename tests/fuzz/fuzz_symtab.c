/* The symbol index of a module: from the sections of its file, and from its image. */
#include <string.h>

#include "fuzz.h"
#include "symbolize/symtab.h"

enum { PROBES = 64 };

static void probe(const struct ss_symtab *symtab, uint64_t address)
{
	struct ss_symbol symbol;

	if (!ss_symtab_find(symtab, address, &symbol))
		return;
	FUZZ_REQUIRE(symbol.start <= address);
	FUZZ_REQUIRE(symbol.size == 0 || address - symbol.start < symbol.size);
	fuzz_touch(symbol.name, strlen(symbol.name));
}

static void probe_all(const struct ss_symtab *symtab, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < PROBES; i++)
		probe(symtab, i * 64);
	for (size_t at = 0; at + 8 <= size; at += size / PROBES + 8) {
		uint64_t address;

		memcpy(&address, data + at, sizeof(address));
		probe(symtab, address);
	}
	probe(symtab, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *image =
		ss_symtab_from_memory(data, size, 0x10000);
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_memory(data, size);
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *file = ss_symtab_new();

	if (image)
		probe_all(image, data, size);
	FUZZ_REQUIRE(file);
	if (!elf)
		return 0;
	(void)ss_symtab_add(file, elf, SHT_SYMTAB);
	(void)ss_symtab_add(file, elf, SHT_DYNSYM);
	if (ss_symtab_build(file))
		probe_all(file, data, size);
	return 0;
}
