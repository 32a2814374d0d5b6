/* An ELF file: its sections, its build-id, and the contents of .gnu_debugdata. */
#include <string.h>

#include "fuzz.h"
#include "elf/debugfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_memory(data, size);
	uint8_t id[SS_ELF_BUILD_ID_MAX];

	if (!elf)
		return 0;
	FUZZ_REQUIRE(ss_elf_build_id(elf, id) <= sizeof(id));

	_cleanup_(ss_elf_cleanup) struct ss_elf *embedded = ss_debugfile_embedded(elf);

	if (embedded)
		(void)ss_elf_build_id(embedded, id);
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *section = ss_elf_section(elf, i);
		_cleanup_free_ uint8_t *copy =
			section ? ss_elf_copy_section(elf, section) : NULL;

		if (copy)
			fuzz_touch(copy, (size_t)section->sh_size + 1);
		if (i == 64)
			break;
	}
	return 0;
}
