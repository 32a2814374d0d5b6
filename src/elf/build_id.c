#include "elf/build_id.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"

enum { HEADERS_MAX = 128, NOTES_MAX = 4096 };

/* The parts of a note are padded to four bytes, whatever the alignment of the segment:
   GNU notes that are aligned to eight bytes are of other types. */
static size_t round_up(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

size_t ss_build_id_in_notes(const uint8_t *bytes, size_t size, uint8_t *ret,
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

	return reader(data, 0, ret, sizeof(*ret)) == sizeof(*ret) &&
	       memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0 &&
	       ret->e_ident[EI_CLASS] == ELFCLASS64 && ret->e_ident[EI_DATA] == order &&
	       ret->e_phentsize == sizeof(Elf64_Phdr);
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
	if (reader(data, header.e_phoff, headers, count * sizeof(*headers)) !=
	    (ssize_t)(count * sizeof(*headers)))
		return 0;
	uint64_t first = first_address(headers, count);
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type != PT_NOTE)
			continue;
		uint64_t at = layout == SS_LAYOUT_FILE ? headers[i].p_offset :
							 headers[i].p_vaddr - first;
		size_t size = SS_MIN((size_t)headers[i].p_filesz, (size_t)NOTES_MAX);
		ssize_t n = reader(data, at, notes, size);
		size_t found =
			n > 0 ? ss_build_id_in_notes(notes, (size_t)n, ret, capacity) : 0;
		if (found)
			return found;
	}
	return 0;
}
