#include "symbolize/sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#ifdef SS_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

/* Limits the uncompressed size of what is read or mapped; the DWARF of a browser is that
   large. */
#define DWARF_SIZE_MAX ((uint64_t)2 << 30)

/* The limit of what compressed sections expand to, unless that is less than eight times as
   much: real ones expand to three to five times as much, zeros to a thousand times. */
#define EXPANDED_MAX ((uint64_t)256 << 20)
enum { EXPANSION_MAX = 8 };

enum {
	SECTIONS_MAX = 64, /* that are needed: each kind once, in normal files */
	NAME_MAX_SIZE = 24,
	PAGE = 4096,
	MAPPED_MIN = 64 * 1024, /* smaller sections are read */
	OLD_HEADER = 12,	/* of .zdebug: "ZLIB" and the size, big-endian */
};

/* ch_type of ELF; older headers lack the second. */
enum { ZLIB = 1, ZSTD = 2 };

enum packing { PLAIN, DEFLATED, ZSTANDARD };

struct part {
	const Elf64_Shdr *header;
	const char *name; /* without the prefix */
	enum packing packing;
	uint64_t skip; /* bytes before the data */
	uint64_t size; /* uncompressed */
	bool mapped;   /* rather than read; in the image, if it is plain */
	uint64_t at;   /* in the image */
};

struct parts {
	struct part items[SECTIONS_MAX];
	size_t count;
};

/* The sections that names, lines and inlines need. */
static bool is_needed(const char *name)
{
	static const char *const needed[] = {
		"info", "abbrev", "aranges", "line",	 "line_str",
		"str",	"addr",	  "ranges",  "rnglists", "str_offsets",
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(needed); i++) {
		if (strcmp(name, needed[i]) == 0)
			return true;
	}
	return false;
}

/* The rest of the name of a section after ".debug_" or ".zdebug_" (the old compression);
   NULL: not DWARF. */
static const char *dwarf_name(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	static const char *const prefixes[] = { ".debug_", ".zdebug_" };

	if (section->sh_name >= elf->section_names_size)
		return NULL;
	const char *name = elf->section_names + section->sh_name;
	for (size_t i = 0; i < SS_ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return name + strlen(prefixes[i]);
	}
	return NULL;
}

/* False: it cannot be read. */
static bool examine(const struct ss_elf *elf, struct part *part)
{
	const Elf64_Shdr *header = part->header;
	Elf64_Chdr packed;
	uint8_t old[OLD_HEADER];

	part->size = header->sh_size;
	if (header->sh_flags & SHF_COMPRESSED) {
		if (!ss_elf_read(elf, header->sh_offset, &packed, sizeof(packed)) ||
		    header->sh_size < sizeof(packed))
			return false;
		part->packing = packed.ch_type == ZSTD ? ZSTANDARD : DEFLATED;
		part->skip = sizeof(packed);
		part->size = packed.ch_size;
		return packed.ch_type == ZLIB || packed.ch_type == ZSTD;
	}
	if (header->sh_size < sizeof(old) ||
	    !ss_elf_read(elf, header->sh_offset, old, sizeof(old)) ||
	    memcmp(old, "ZLIB", 4) != 0)
		return true;
	part->packing = DEFLATED;
	part->skip = sizeof(old);
	part->size = 0;
	for (size_t i = 4; i < sizeof(old); i++)
		part->size = part->size << 8 | old[i];
	return true;
}

static bool is_known(const struct parts *parts, const char *name)
{
	for (size_t i = 0; i < parts->count; i++) {
		if (strcmp(parts->items[i].name, name) == 0)
			return true;
	}
	return false;
}

/* False: too much, or it cannot be read. */
static bool find_parts(const struct ss_elf *elf, struct parts *ret)
{
	uint64_t total = 0;
	uint64_t expanded = 0; /* of compressed sections, and what they are stored in */
	uint64_t stored = 0;

	for (size_t i = 1; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		struct part part = { .header = section,
				     .name = dwarf_name(elf, section) };
		if (!part.name || section->sh_type == SHT_NOBITS ||
		    !is_needed(part.name) || is_known(ret, part.name))
			continue;
		if (!examine(elf, &part) || part.size > DWARF_SIZE_MAX - total)
			return false;
		total += part.size;
		if (part.packing != PLAIN) {
			expanded += part.size;
			stored += section->sh_size;
		}
		ret->items[ret->count++] = part;
	}
	return total != 0 &&
	       (expanded <= EXPANDED_MAX || expanded <= stored * EXPANSION_MAX);
}

/* Unpacking --------------------------------------------------------------- */

static bool inflate_all(const void *from, size_t from_size, void *to, size_t to_size)
{
#ifdef SS_HAVE_LIBDEFLATE
	struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
	size_t size = 0;

	if (!decompressor)
		return false;
	enum libdeflate_result result = libdeflate_zlib_decompress(
		decompressor, from, from_size, to, to_size, &size);
	libdeflate_free_decompressor(decompressor);
	return result == LIBDEFLATE_SUCCESS && size == to_size;
#else
	uLongf size = to_size;

	return uncompress(to, &size, from, from_size) == Z_OK && size == to_size;
#endif
}

static bool unpack(const struct part *part, const char *packed, uint64_t size, char *to)
{
	if (part->packing == DEFLATED)
		return inflate_all(packed, size, to, part->size);
	return ZSTD_decompress(to, part->size, packed, size) == part->size;
}

/* Without a copy of the packed bytes. */
static bool unpack_mapped(const struct ss_elf *elf, const struct part *part, char *to)
{
	uint64_t begin = part->header->sh_offset % PAGE;
	uint64_t size = part->header->sh_size + begin;
	char *pages = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, elf->fd,
			   (off_t)(part->header->sh_offset - begin));

	if (pages == MAP_FAILED)
		return false;
	bool done = unpack(part, pages + begin + part->skip,
			   part->header->sh_size - part->skip, to);
	(void)munmap(pages, size); /* it is mapped */
	return done;
}

static bool read_part(const struct ss_elf *elf, const struct part *part, char *to)
{
	uint64_t offset = part->header->sh_offset + part->skip;
	uint64_t size = part->header->sh_size - part->skip;

	if (part->packing == PLAIN)
		return ss_elf_read(elf, offset, to, part->size);
	if (part->mapped)
		return unpack_mapped(elf, part, to);
	_cleanup_free_ char *packed = ss_elf_copy(elf, offset, size);
	return packed && unpack(part, packed, size, to);
}

/* The image --------------------------------------------------------------- */

/* libdw reads strings up to their NUL (0.188: even beyond the section). */
static bool is_terminated(const struct part *part, const char *bytes)
{
	return (strcmp(part->name, "str") != 0 && strcmp(part->name, "line_str") != 0) ||
	       part->size == 0 || bytes[part->size - 1] == '\0';
}

static uint64_t align(uint64_t size, uint64_t alignment)
{
	return (size + alignment - 1) & ~(alignment - 1);
}

static bool is_part_of_image(const struct part *part)
{
	return part->mapped && part->packing == PLAIN;
}

/* Sets where each part is, behind headers of a size. Of a mapped part, whole pages of the file
   are mapped, so it begins at the same offset in its page. Returns the size of the image. */
static uint64_t place(struct parts *parts, uint64_t at)
{
	for (size_t i = 0; i < parts->count; i++) {
		struct part *part = &parts->items[i];
		bool pages = is_part_of_image(part);
		uint64_t unit = pages ? PAGE : 8;
		at = align(at, unit);
		part->at = at + (pages ? part->header->sh_offset % PAGE : 0);
		at = align(part->at + part->size, unit);
	}
	return align(at, PAGE);
}

static bool map_part(const struct ss_elf *elf, const struct part *part, char *image)
{
	uint64_t skip = part->header->sh_offset % PAGE;

	return mmap(image + part->at - skip, part->size + skip, PROT_READ,
		    MAP_PRIVATE | MAP_FIXED, elf->fd,
		    (off_t)(part->header->sh_offset - skip)) != MAP_FAILED;
}

/* Headers first, then the names of the sections, which all have the same room. */
static void lay_out(const struct ss_elf *elf, const struct parts *parts, char *image)
{
	size_t count = parts->count + 2; /* with the first one, and that of names */
	Elf64_Ehdr *header = (Elf64_Ehdr *)image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(image + sizeof(*header));
	uint64_t names = sizeof(*header) + count * sizeof(*sections);

	memcpy(header->e_ident, elf->header.e_ident, sizeof(header->e_ident));
	header->e_type = elf->header.e_type;
	header->e_machine = elf->header.e_machine;
	header->e_version = EV_CURRENT;
	header->e_shoff = sizeof(*header);
	header->e_ehsize = sizeof(*header);
	header->e_shentsize = sizeof(*sections);
	header->e_shnum = (uint16_t)count;
	header->e_shstrndx = (uint16_t)(count - 1);
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->items[i];
		char *name = image + names + (i + 1) * NAME_MAX_SIZE;
		(void)snprintf(name, NAME_MAX_SIZE, ".debug_%s", part->name); /* fits */
		sections[i + 1] = (Elf64_Shdr){
			.sh_name = (uint32_t)((i + 1) * NAME_MAX_SIZE),
			.sh_type = SHT_PROGBITS,
			.sh_offset = part->at,
			.sh_size = part->size,
			.sh_addralign = 1,
		};
	}
	sections[count - 1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					    .sh_offset = names,
					    .sh_size = count * NAME_MAX_SIZE,
					    .sh_addralign = 1 };
}

static bool fill(const struct ss_elf *elf, const struct parts *parts, char *image)
{
	lay_out(elf, parts, image);
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->items[i];
		if (!(is_part_of_image(part) ? map_part(elf, part, image) :
					       read_part(elf, part, image + part->at)) ||
		    !is_terminated(part, image + part->at))
			return false;
	}
	return true;
}

/* Whether all bytes are in the file now. */
static bool may_map(const struct ss_elf *elf, const struct part *part)
{
	const Elf64_Shdr *header = part->header;

	return elf->fd >= 0 && header->sh_size >= MAPPED_MIN &&
	       sysconf(_SC_PAGESIZE) == PAGE && header->sh_offset <= elf->size &&
	       header->sh_size <= elf->size - header->sh_offset;
}

bool ss_sections_read(const struct ss_elf *elf, bool may_fault, struct ss_sections *ret)
{
	struct ss_sections sections = {};
	struct parts parts = {};

	if (!find_parts(elf, &parts))
		return false;
	for (size_t i = 0; i < parts.count; i++)
		parts.items[i].mapped = may_fault && may_map(elf, &parts.items[i]);
	sections.size = place(
		&parts, sizeof(Elf64_Ehdr) +
				(parts.count + 2) * (sizeof(Elf64_Shdr) + NAME_MAX_SIZE));
	sections.bytes = mmap(NULL, sections.size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sections.bytes == MAP_FAILED)
		return false;
	/* Half of the time to unpack is spent on page faults. Refused: it takes longer. */
	(void)madvise(sections.bytes, sections.size, MADV_HUGEPAGE);
	if (!fill(elf, &parts, sections.bytes)) {
		ss_sections_deinit(&sections);
		return false;
	}
	*ret = sections;
	return true;
}

void ss_sections_deinit(struct ss_sections *sections)
{
	if (sections->bytes)
		(void)munmap(sections->bytes, sections->size); /* our mapping */
	*sections = (struct ss_sections){};
}
