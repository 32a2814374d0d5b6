#include "elf/elffile.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { HEADERS_MAX = 128, NOTES_MAX = 4096 };

/* The parts of a note are padded to four bytes, whatever the alignment of the segment:
   GNU notes that are aligned to eight bytes are of other types. */
static size_t round_up(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* The same for the notes of a segment or section. */
static size_t build_id_in_notes(const uint8_t *bytes, size_t size, uint8_t *ret,
				size_t capacity)
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		memcpy(&note, bytes + at, sizeof(note));
		at += sizeof(note);
		size_t name_size = round_up(note.n_namesz);
		if (name_size > size - at || note.n_descsz > size - at - name_size)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(bytes + at, "GNU", 4) == 0) {
			size_t used = SS_MIN((size_t)note.n_descsz, capacity);
			memcpy(ret, bytes + at + name_size, used);
			return used;
		}
		size_t step = name_size + round_up(note.n_descsz);
		if (step > size - at)
			return 0;
		at += step;
	}
	return 0;
}

static bool read_header(ss_build_id_reader *reader, void *data, Elf64_Ehdr *ret)
{
	const unsigned char order =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

	if (reader(data, 0, ret, sizeof(*ret)) != sizeof(*ret) ||
	    memcmp(ret->e_ident, ELFMAG, SELFMAG) != 0 || ret->e_ident[EI_DATA] != order)
		return false;
	const uint8_t class = ret->e_ident[EI_CLASS];
	ss_elf_widen(class, SS_ELF_HEADER, ret, 1);
	return (class == ELFCLASS64 || class == ELFCLASS32) &&
	       ret->e_phentsize == ss_elf_record_size(class, SS_ELF_SEGMENT);
}

/* The ELF virtual address of the first page of the file. */
static uint64_t first_address(const Elf64_Phdr *headers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_LOAD)
			return headers[i].p_vaddr - headers[i].p_offset;
	}
	return 0;
}

size_t ss_build_id_find(ss_build_id_reader *reader, void *data,
			enum ss_build_id_layout layout, uint8_t *ret, size_t capacity)
{
	Elf64_Ehdr header;
	Elf64_Phdr headers[HEADERS_MAX];
	uint8_t notes[NOTES_MAX];

	if (!read_header(reader, data, &header))
		return 0;
	size_t count = SS_MIN((size_t)header.e_phnum, (size_t)HEADERS_MAX);
	if (reader(data, header.e_phoff, headers, count * header.e_phentsize) !=
	    (ssize_t)(count * header.e_phentsize))
		return 0;
	ss_elf_widen(header.e_ident[EI_CLASS], SS_ELF_SEGMENT, headers, count);
	uint64_t first = first_address(headers, count);
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type != PT_NOTE)
			continue;
		uint64_t at = layout == SS_LAYOUT_FILE ? headers[i].p_offset :
							 headers[i].p_vaddr - first;
		size_t size = SS_MIN((size_t)headers[i].p_filesz, (size_t)NOTES_MAX);
		ssize_t n = reader(data, at, notes, size);
		size_t found =
			n > 0 ? build_id_in_notes(notes, (size_t)n, ret, capacity) : 0;
		if (found)
			return found;
	}
	return 0;
}

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

bool ss_elf_read_records(const struct ss_elf *elf, enum ss_elf_record record,
			 uint64_t offset, void *ret, size_t count)
{
	const uint8_t class = elf->header.e_ident[EI_CLASS];

	if (!ss_elf_read(elf, offset, ret, count * ss_elf_record_size(class, record)))
		return false;
	ss_elf_widen(class, record, ret, count);
	return true;
}

void *ss_elf_copy_records(const struct ss_elf *elf, enum ss_elf_record record,
			  uint64_t offset, uint64_t count)
{
	const uint8_t class = elf->header.e_ident[EI_CLASS];
	const size_t size = ss_elf_record_size(class, record);
	const size_t wide = ss_elf_record_size(ELFCLASS64, record);
	_cleanup_free_ void *bytes = count <= SS_ELF_SECTION_MAX / wide ?
					     ss_elf_copy(elf, offset, count * size) :
					     NULL;

	if (!bytes || size == wide)
		return take_ptr(bytes);
	void *grown = realloc(bytes, count * wide + 1);
	if (!grown)
		return NULL;
	bytes = grown;
	ss_elf_widen(class, record, bytes, count);
	return take_ptr(bytes);
}

static bool is_supported(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       (header->e_ident[EI_CLASS] == ELFCLASS64 ||
		header->e_ident[EI_CLASS] == ELFCLASS32) &&
	       header->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* Whether the structs of the file have the size that they have in its class. */
static bool has_size(const Elf64_Ehdr *header, enum ss_elf_record record, size_t size)
{
	return size == ss_elf_record_size(header->e_ident[EI_CLASS], record);
}

static void read_segments(struct ss_elf *elf)
{
	const Elf64_Ehdr *header = &elf->header;
	size_t count = header->e_phnum;

	if (!count || count > SEGMENT_COUNT_MAX ||
	    !has_size(header, SS_ELF_SEGMENT, header->e_phentsize))
		return;
	elf->segments = ss_elf_copy_records(elf, SS_ELF_SEGMENT, header->e_phoff, count);
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

	if (!header->e_shoff || !has_size(header, SS_ELF_SECTION, header->e_shentsize))
		return;
	if (!count &&
	    ss_elf_read_records(elf, SS_ELF_SECTION, header->e_shoff, &first, 1))
		count = first.sh_size;
	if (!count || count > SECTION_COUNT_MAX)
		return;
	elf->sections = ss_elf_copy_records(elf, SS_ELF_SECTION, header->e_shoff, count);
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
	ss_elf_widen(elf->header.e_ident[EI_CLASS], SS_ELF_HEADER, &elf->header, 1);
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

size_t ss_elf_symbol_count(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	return section->sh_size /
	       ss_elf_record_size(elf->header.e_ident[EI_CLASS], SS_ELF_SYMBOL);
}

Elf64_Sym *ss_elf_copy_symbols(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED)
		return NULL;
	return ss_elf_copy_records(elf, SS_ELF_SYMBOL, section->sh_offset,
				   ss_elf_symbol_count(elf, section));
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

	return notes ? build_id_in_notes(notes, (size_t)size, ret, SS_ELF_BUILD_ID_MAX) :
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

static ssize_t read_mapped_header(void *data, uint64_t position, void *bytes, size_t size)
{
	const struct ss_module_impl *module = data;

	if (position >= module->header_size)
		return 0;
	size_t n = SS_MIN(size, module->header_size - (size_t)position);
	memcpy(bytes, module->header + position, n);
	return (ssize_t)n;
}

static ssize_t read_module(void *data, uint64_t position, void *bytes, size_t size)
{
	return ss_module_read(data, position, bytes, size);
}

/* Finds the build-id of the mapped image, without its file. */
static size_t find_mapped(struct ss_module_impl *module, uint8_t ret[SS_BUILD_ID_MAX])
{
	if (module->build_id_size) {
		memcpy(ret, module->build_id, module->build_id_size);
		return module->build_id_size;
	}
	return ss_build_id_find(read_mapped_header, module, SS_LAYOUT_MEMORY, ret,
				SS_BUILD_ID_MAX);
}

/* Closes the file unless it has the build-id of the mapped image. */
static void verify(struct ss_module_impl *module)
{
	uint8_t mapped[SS_BUILD_ID_MAX];
	uint8_t file[SS_BUILD_ID_MAX];
	size_t mapped_size = find_mapped(module, mapped);
	size_t file_size =
		ss_build_id_find(read_module, module, SS_LAYOUT_FILE, file, sizeof(file));

	if (mapped_size && mapped_size == file_size &&
	    memcmp(mapped, file, mapped_size) == 0)
		return;
	close_cleanup(&module->fd);
	module->fd = -1;
	ss_module_set_problem(module, mapped_size ? "another build is at its path now" :
						    "another file is at its path now");
	if (mapped_size && !module->build_id_size)
		(void)ss_module_set_build_id(module, mapped, mapped_size); /* or none */
}

static void identify(struct ss_module_impl *module)
{
	uint8_t id[SS_BUILD_ID_MAX];

	if (module->fd >= 0 && module->unverified)
		verify(module);
	if (module->build_id_size)
		return;
	size_t size =
		ss_build_id_find(read_module, module, SS_LAYOUT_FILE, id, sizeof(id));
	if (size)
		(void)ss_module_set_build_id(module, id, size); /* or none is known */
}

void ss_module_identify(struct ss_module_impl *module)
{
	(void)pthread_mutex_lock(&module->identify_lock); /* cannot fail */
	if (!module->identified)
		identify(module);
	module->identified = true;
	(void)pthread_mutex_unlock(&module->identify_lock);
}
