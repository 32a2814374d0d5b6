/* DWARF: units, source lines and inlined calls, by libdw. The input has the contents of the
   sections, each after its size in two bytes, and then the start of the code. The ELF file
   around them is generated. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/io.h"
#include "fuzz.h"
#include "elf/elffile.h"
#include "symbolize/lines.h"

enum { PLACES = 64, STEP = 4 };

static const char names[] = "\0.debug_abbrev\0.debug_info\0.debug_line\0.debug_str\0"
			    ".debug_line_str\0.debug_aranges\0.debug_ranges\0"
			    ".debug_rnglists\0.shstrtab";

enum { SECTIONS = 8, ALL = SECTIONS + 2 }; /* none, these, .shstrtab */

struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[ALL];
	char names[sizeof(names)];
	uint8_t bytes[];
};

static void touch(const char *text)
{
	if (text)
		fuzz_touch(text, strlen(text));
}

static void look_up(struct ss_dwarf *dwarf, uint64_t address)
{
	struct ss_inline inlines[SS_INLINES_MAX];
	struct ss_unit *unit = ss_dwarf_find_unit(dwarf, address);
	const char *function = NULL;
	uint64_t start = 0;

	if (!unit)
		return;
	touch(ss_unit_find_line(unit, address).file);
	size_t count =
		ss_unit_find_inlines(unit, address, true, inlines, &function, &start);
	FUZZ_REQUIRE(count <= SS_INLINES_MAX);
	touch(function);
	for (size_t i = 0; i < count; i++) {
		touch(inlines[i].name);
		touch(inlines[i].call.file);
	}
}

static size_t take_number(const uint8_t **data, size_t *size)
{
	size_t number = 0;

	for (unsigned i = 0; i < 2 && *size; i++, (*size)--)
		number |= (size_t) * (*data)++ << 8 * i;
	return number;
}

static struct file *make_file(const uint8_t *data, size_t size, uint64_t *start)
{
	struct file *file = calloc(1, sizeof(*file) + size);
	size_t at = 0;
	uint32_t name = 1;

	if (!file)
		return NULL;
	file->header = (Elf64_Ehdr){ .e_type = ET_DYN,
				     .e_machine = EM_X86_64,
				     .e_version = EV_CURRENT,
				     .e_shoff = offsetof(struct file, sections),
				     .e_ehsize = sizeof(Elf64_Ehdr),
				     .e_shentsize = sizeof(Elf64_Shdr),
				     .e_shnum = ALL,
				     .e_shstrndx = ALL - 1 };
	memcpy(file->header.e_ident, ELFMAG "\2\1\1", 7);
	memcpy(file->names, names, sizeof(names));
	for (size_t i = 1; i < ALL; i++) {
		size_t taken = i < ALL - 1 ? take_number(&data, &size) : 0;
		taken = taken < size ? taken : size;
		file->sections[i] =
			(Elf64_Shdr){ .sh_name = name,
				      .sh_type = SHT_PROGBITS,
				      .sh_offset = offsetof(struct file, bytes) + at,
				      .sh_size = taken,
				      .sh_addralign = 1 };
		name += (uint32_t)strlen(names + name) + 1;
		if (taken)
			memcpy(file->bytes + at, data, taken);
		data += taken;
		size -= taken;
		at += taken;
	}
	file->sections[ALL - 1].sh_type = SHT_STRTAB;
	file->sections[ALL - 1].sh_offset = offsetof(struct file, names);
	file->sections[ALL - 1].sh_size = sizeof(names);
	*start = take_number(&data, &size);
	return file;
}

/* libdw reads files only. */
static int write_file(const struct file *file, size_t size)
{
	int fd = memfd_create("dwarf", MFD_CLOEXEC);

	FUZZ_REQUIRE(fd >= 0 && ss_io_write_all(fd, file, size) == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t start = 0;
	_cleanup_free_ struct file *file = make_file(data, size, &start);
	_cleanup_close_ int fd = file ? write_file(file, sizeof(*file) + size) : -1;
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_fd(fd);
	_cleanup_(ss_dwarf_cleanup) struct ss_dwarf *dwarf =
		elf ? ss_dwarf_open(elf, NULL, false) : NULL;

	if (!dwarf)
		return 0;
	look_up(dwarf, 0);
	look_up(dwarf, UINT64_MAX);
	for (uint64_t i = 0; i < PLACES; i++)
		look_up(dwarf, start + STEP * i);
	return 0;
}
