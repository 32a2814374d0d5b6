#include "elf/elffile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "elf/build_id.h"

/* Files with more than 65,280 sections have e_shnum 0. Object files may have that
   many, linked files do not. */
enum { SECTION_COUNT_MAX = 1 << 17, SEGMENT_COUNT_MAX = 4096 };

/* The build-id is among the first notes, and notes are small. */
enum { NOTES_SIZE_MAX = 1 << 16, NOTES_COUNT_MAX = 32 };

bool ss_elf_read(const struct ss_elf *elf, uint64_t offset, void *bytes, uint64_t size)
{
	if (offset > elf->size || size > elf->size - offset)
		return false;
	if (elf->fd >= 0)
		return ss_io_pread(elf->fd, bytes, size, offset) == (ssize_t)size;
	if (size)
		memcpy(bytes, elf->bytes + offset, size);
	return true;
}

void *ss_elf_copy(const struct ss_elf *elf, uint64_t offset, uint64_t size)
{
	/* Checked before malloc(): a size larger than the file must not cost memory. */
	if (size > SS_ELF_SECTION_MAX || offset > elf->size || size > elf->size - offset)
		return NULL;
	_cleanup_free_ char *bytes = malloc((size_t)size + 1);
	if (!bytes || !ss_elf_read(elf, offset, bytes, size))
		return NULL;
	bytes[size] = '\0';
	return take_ptr(bytes);
}

static bool is_supported(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == ELFDATA2LSB;
}

static void read_segments(struct ss_elf *elf)
{
	const Elf64_Ehdr *header = &elf->header;
	size_t count = header->e_phnum;

	if (!count || count > SEGMENT_COUNT_MAX ||
	    header->e_phentsize != sizeof(Elf64_Phdr))
		return;
	elf->segments = ss_elf_copy(elf, header->e_phoff, count * sizeof(Elf64_Phdr));
	elf->segment_count = elf->segments ? count : 0;
}

static void read_section_names(struct ss_elf *elf)
{
	size_t index = elf->header.e_shstrndx;

	if (index == SHN_XINDEX)
		index = elf->sections[0].sh_link;
	const Elf64_Shdr *names = ss_elf_section(elf, index);
	if (!names)
		return;
	elf->section_names = ss_elf_copy_section(elf, names);
	elf->section_names_size = elf->section_names ? names->sh_size : 0;
}

static void read_sections(struct ss_elf *elf)
{
	const Elf64_Ehdr *header = &elf->header;
	uint64_t count = header->e_shnum;
	Elf64_Shdr first;

	if (!header->e_shoff || header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	if (!count && ss_elf_read(elf, header->e_shoff, &first, sizeof(first)))
		count = first.sh_size;
	if (!count || count > SECTION_COUNT_MAX)
		return;
	elf->sections = ss_elf_copy(elf, header->e_shoff, count * sizeof(Elf64_Shdr));
	elf->section_count = elf->sections ? (size_t)count : 0;
	if (elf->sections)
		read_section_names(elf);
}

static struct ss_elf *elf_new(int fd, const void *bytes, uint64_t size)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = calloc(1, sizeof(*elf));

	if (!elf)
		return NULL;
	elf->fd = fd;
	elf->bytes = bytes;
	elf->size = size;
	if (!ss_elf_read(elf, 0, &elf->header, sizeof(elf->header)) ||
	    !is_supported(&elf->header))
		return NULL;
	read_segments(elf);
	read_sections(elf);
	return take_ptr(elf);
}

struct ss_elf *ss_elf_from_fd(int fd)
{
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return NULL;
	return elf_new(fd, NULL, (uint64_t)status.st_size);
}

struct ss_elf *ss_elf_from_memory(const void *bytes, size_t size)
{
	return bytes ? elf_new(-1, bytes, size) : NULL;
}

struct ss_elf *ss_elf_from_module(const struct ss_module_impl *module)
{
	return module->fd >= 0 ? ss_elf_from_fd(module->fd) :
				 ss_elf_from_memory(module->bytes, module->size);
}

void ss_elf_free(struct ss_elf *elf)
{
	if (!elf)
		return;
	if (elf->owns_fd)
		close_cleanup(&elf->fd);
	free(elf->owned_bytes);
	free(elf->path);
	free(elf->sections);
	free(elf->section_names);
	free(elf->segments);
	free(elf);
}

const Elf64_Shdr *ss_elf_find_section(const struct ss_elf *elf, const char *name)
{
	for (size_t i = 1; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		if (section->sh_type != SHT_NOBITS &&
		    section->sh_name < elf->section_names_size &&
		    strcmp(elf->section_names + section->sh_name, name) == 0)
			return section;
	}
	return NULL;
}

const Elf64_Shdr *ss_elf_section(const struct ss_elf *elf, size_t index)
{
	return index && index < elf->section_count ? &elf->sections[index] : NULL;
}

void *ss_elf_copy_section(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED)
		return NULL;
	return ss_elf_copy(elf, section->sh_offset, section->sh_size);
}

bool ss_elf_locate(const struct ss_elf *elf, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];
		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz) {
			*ret = segment->p_offset + (address - segment->p_vaddr);
			return true;
		}
	}
	return false;
}

static size_t build_id_at(const struct ss_elf *elf, uint64_t offset, uint64_t size,
			  uint8_t ret[SS_ELF_BUILD_ID_MAX])
{
	_cleanup_free_ uint8_t *notes =
		size <= NOTES_SIZE_MAX ? ss_elf_copy(elf, offset, size) : NULL;

	return notes ? ss_build_id_in_notes(notes, (size_t)size, ret,
					    SS_ELF_BUILD_ID_MAX) :
		       0;
}

static size_t build_id_in_sections(const struct ss_elf *elf,
				   uint8_t ret[SS_ELF_BUILD_ID_MAX])
{
	size_t found = 0;
	size_t tried = 0;

	for (size_t i = 1; i < elf->section_count && !found; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		if (section->sh_type != SHT_NOTE || tried++ >= NOTES_COUNT_MAX)
			continue;
		found = build_id_at(elf, section->sh_offset, section->sh_size, ret);
	}
	return found;
}

static size_t build_id_in_segments(const struct ss_elf *elf,
				   uint8_t ret[SS_ELF_BUILD_ID_MAX])
{
	size_t found = 0;
	size_t tried = 0;

	for (size_t i = 0; i < elf->segment_count && !found; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];
		if (segment->p_type != PT_NOTE || tried++ >= NOTES_COUNT_MAX)
			continue;
		found = build_id_at(elf, segment->p_offset, segment->p_filesz, ret);
	}
	return found;
}

size_t ss_elf_build_id(const struct ss_elf *elf, uint8_t ret[SS_ELF_BUILD_ID_MAX])
{
	/* The segments of a debug file refer to bytes that it does not contain. They are used
	   only without sections. */
	return elf->section_count ? build_id_in_sections(elf, ret) :
				    build_id_in_segments(elf, ret);
}
