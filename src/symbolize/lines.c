#include "symbolize/lines.h"

#include <dwarf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/search.h"
#include "base/vector.h"
#include "elf/elffile.h"
#include "symbolize/names.h"
#include "symbolize/symtab.h"

#ifdef SS_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

/*
 * The DWARF sections of a file that names, lines and inlined calls need, uncompressed, as
 * an ELF image in memory. libdw reads only this image: it cannot open another file whose
 * name the module supplies, and does not have to decompress anything, for which
 * libdeflate, if it is there, takes half the time.
 */

struct ss_sections {
	char *bytes; /* the image; NULL: none */
	size_t size;
};

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

	return ss_any(SS_ARRAY_SIZE(needed), i, strcmp(name, needed[i]) == 0);
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
		const size_t size =
			ss_elf_record_size(elf->header.e_ident[EI_CLASS], SS_ELF_PACKED);
		if (!ss_elf_read_records(elf, SS_ELF_PACKED, header->sh_offset, &packed,
					 1) ||
		    header->sh_size < size)
			return false;
		part->packing = packed.ch_type == ZSTD ? ZSTANDARD : DEFLATED;
		part->skip = size;
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
	return ss_any(parts->count, i, strcmp(parts->items[i].name, name) == 0);
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
static void lay_out_image(const struct ss_elf *elf, const struct parts *parts,
			  char *image)
{
	size_t count = parts->count + 2; /* with the first one, and that of names */
	Elf64_Ehdr *header = (Elf64_Ehdr *)image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(image + sizeof(*header));
	uint64_t names = sizeof(*header) + count * sizeof(*sections);

	memcpy(header->e_ident, elf->header.e_ident, sizeof(header->e_ident));
	header->e_ident[EI_CLASS] =
		ELFCLASS64; /* DWARF says how long its addresses are */
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
	lay_out_image(elf, parts, image);
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

static void sections_deinit(struct ss_sections *sections)
{
	if (sections->bytes)
		(void)munmap(sections->bytes, sections->size); /* our mapping */
	*sections = (struct ss_sections){};
}

/* Reads the image. False: no DWARF, too much of it, a compression that is not supported,
   strings without an end, or no memory. may_fault: large sections may be mapped, which takes
   no time. Where they are used, SIGBUS kills the process if the file was truncated meanwhile:
   only for a process that may die. */
static bool sections_read(const struct ss_elf *elf, bool may_fault,
			  struct ss_sections *ret)
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
		sections_deinit(&sections);
		return false;
	}
	*ret = sections;
	return true;
}

/* Ten times as many as the largest known program has. */
enum { RANGES_MAX = 1 << 22 };

/* Sections of a file, as libdw reads them. */
struct image {
	struct ss_sections sections;
	Elf *elf;
	Dwarf *dwarf;
};

struct ss_dwarf {
	struct image image;
	struct image alternate;
	Dwarf *dwarf;			   /* of image */
	SS_VECTOR(struct ss_unit) units;   /* the first indexed_count sorted by offset */
	size_t indexed_count;		   /* from .debug_aranges */
	SS_VECTOR(struct ss_range) ranges; /* value: index of unit */
	struct ss_segments segments;
	bool complete; /* units that .debug_aranges lacks were added */
};

static void image_deinit(struct image *image)
{
	(void)dwarf_end(image->dwarf); /* accepts NULL, cannot fail */
	(void)elf_end(image->elf);     /* the same, it returns a reference count */
	sections_deinit(&image->sections);
}

static bool open_image(const struct ss_elf *elf, bool may_fault, struct image *ret)
{
	struct image image = {};

	if (elf->header.e_type == ET_REL || elf_version(EV_CURRENT) == EV_NONE)
		return false;
	if (!sections_read(elf, may_fault, &image.sections))
		return false;
	image.elf = elf_memory(image.sections.bytes, image.sections.size);
	image.dwarf = image.elf ? dwarf_begin_elf(image.elf, DWARF_C_READ, NULL) : NULL;
	*ret = image;
	return image.dwarf != NULL;
}

static struct ss_unit *find_indexed_unit(const struct ss_dwarf *dwarf, Dwarf_Off offset)
{
	return ss_search(dwarf->units.items, dwarf->indexed_count, offset, offset);
}

static bool add_range(struct ss_dwarf *dwarf, uint64_t start, uint64_t end, size_t unit)
{
	/* Linkers write 0 for functions that they discarded. */
	if (!start || end <= start)
		return true;
	if (dwarf->ranges.count >= RANGES_MAX)
		return false;
	struct ss_range *range = ss_vector_push(&dwarf->ranges);
	if (range)
		*range = (struct ss_range){ start, end, (uint32_t)unit };
	return range != NULL;
}

SS_DEFINE_COMPARE(compare_units, struct ss_unit, offset)

/* The units that .debug_aranges names, each once, sorted. */
static void index_units(struct ss_dwarf *dwarf, Dwarf_Aranges *aranges, size_t count)
{
	size_t kept = 0;
	Dwarf_Off offset;

	for (size_t i = 0; i < count; i++) {
		Dwarf_Arange *one = dwarf_onearange(aranges, i);
		struct ss_unit *unit = NULL;
		if (one && dwarf_getarangeinfo(one, NULL, NULL, &offset) == 0)
			unit = ss_vector_push(&dwarf->units);
		if (unit)
			unit->offset = offset;
	}
	if (dwarf->units.count)
		qsort(dwarf->units.items, dwarf->units.count, sizeof(struct ss_unit),
		      compare_units);
	for (size_t i = 0; i < dwarf->units.count; i++) {
		if (!kept ||
		    dwarf->units.items[kept - 1].offset != dwarf->units.items[i].offset)
			dwarf->units.items[kept++] = dwarf->units.items[i];
	}
	dwarf->units.count = dwarf->indexed_count = kept;
}

static void index_aranges(struct ss_dwarf *dwarf)
{
	Dwarf_Aranges *aranges = NULL;
	size_t count = 0;
	Dwarf_Addr start;
	Dwarf_Word size;
	Dwarf_Off offset;

	if (dwarf_getaranges(dwarf->dwarf, &aranges, &count) != 0)
		return;
	count = SS_MIN(count, (size_t)RANGES_MAX);
	index_units(dwarf, aranges, count);
	for (size_t i = 0; i < count; i++) {
		Dwarf_Arange *one = dwarf_onearange(aranges, i);
		if (!one || dwarf_getarangeinfo(one, &start, &size, &offset) != 0)
			continue;
		struct ss_unit *unit = find_indexed_unit(dwarf, offset);
		if (unit && size <= UINT64_MAX - start)
			(void)add_range(dwarf, start, start + size,
					(size_t)(unit - dwarf->units.items));
	}
}

static void add_unit(struct ss_dwarf *dwarf, Dwarf_Off offset)
{
	Dwarf_Die die;
	Dwarf_Addr base;
	Dwarf_Addr start;
	Dwarf_Addr end;
	ptrdiff_t next = 0;

	if (!dwarf_offdie(dwarf->dwarf, offset, &die) ||
	    dwarf_tag(&die) != DW_TAG_compile_unit)
		return;
	struct ss_unit *unit = ss_vector_push(&dwarf->units);
	if (!unit)
		return;
	unit->offset = offset;
	while ((next = dwarf_ranges(&die, next, &base, &start, &end)) > 0) {
		if (!add_range(dwarf, start, end, dwarf->units.count - 1))
			break;
	}
}

/* Clang writes no .debug_aranges, and assembly code may be missing in it. */
static void complete_units(struct ss_dwarf *dwarf)
{
	Dwarf_Off offset = 0;
	Dwarf_Off next;
	size_t header;

	while (dwarf_next_unit(dwarf->dwarf, offset, &next, &header, NULL, NULL, NULL,
			       NULL, NULL, NULL) == 0 &&
	       next > offset) {
		if (!find_indexed_unit(dwarf, offset + header))
			add_unit(dwarf, offset + header);
		offset = next;
	}
	dwarf->complete = true;
}

static void lay_out(struct ss_dwarf *dwarf)
{
	ss_segments_free(&dwarf->segments);
	/* Without memory nothing is found, which is not an error. */
	if (ss_ranges_sort(dwarf->ranges.items, dwarf->ranges.count))
		(void)ss_segments_build(&dwarf->segments, dwarf->ranges.items,
					dwarf->ranges.count);
}

struct ss_dwarf *ss_dwarf_open(const struct ss_elf *elf, const struct ss_elf *alternate,
			       bool may_fault)
{
	_cleanup_(ss_dwarf_cleanup) struct ss_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf || !open_image(elf, may_fault, &dwarf->image))
		return NULL;
	dwarf->dwarf = dwarf->image.dwarf;
	if (alternate && open_image(alternate, may_fault, &dwarf->alternate))
		dwarf_setalt(dwarf->dwarf, dwarf->alternate.dwarf);
	index_aranges(dwarf);
	lay_out(dwarf);
	return take_ptr(dwarf);
}

void ss_dwarf_close(struct ss_dwarf *dwarf)
{
	if (!dwarf)
		return;
	for (size_t i = 0; i < dwarf->units.count; i++)
		ss_scopes_free(dwarf->units.items[i].scopes);
	ss_vector_free(&dwarf->units);
	ss_vector_free(&dwarf->ranges);
	ss_segments_free(&dwarf->segments);
	image_deinit(&dwarf->image);
	image_deinit(&dwarf->alternate);
	free(dwarf);
}

/* For functions that search all units. */
static Dwarf *dwarf_handle(struct ss_dwarf *dwarf)
{
	return dwarf->dwarf;
}

struct ss_unit *ss_dwarf_find_unit(struct ss_dwarf *dwarf, uint64_t address)
{
	uint32_t found = ss_segments_find(&dwarf->segments, address);

	if (found == SS_SEGMENT_NONE && !dwarf->complete) {
		complete_units(dwarf);
		lay_out(dwarf);
		found = ss_segments_find(&dwarf->segments, address);
	}
	if (found == SS_SEGMENT_NONE)
		return NULL;
	struct ss_unit *unit = &dwarf->units.items[found];
	if (!unit->opened)
		unit->valid = dwarf_offdie(dwarf->dwarf, unit->offset, &unit->die) !=
			      NULL;
	unit->opened = true;
	return unit->valid ? unit : NULL;
}

struct ss_location ss_unit_find_line(struct ss_unit *unit, uint64_t address)
{
	struct ss_location location = {};
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
	int number = 0;

	if (!line)
		return location;
	location.file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		location.line = (uint32_t)number;
	if (dwarf_linecol(line, &number) == 0 && number > 0)
		location.column = (uint32_t)number;
	return location;
}

/* Entries of DWARF that are visited: some seconds. Code is nested at most some dozens deep. */
enum { ENTRIES_MAX = 1 << 23, DEPTH_MAX = 200 };

static bool next_unit(Dwarf *dwarf, Dwarf_Off *offset, Dwarf_Die *ret)
{
	Dwarf_Off next;
	size_t header;

	while (dwarf_next_unit(dwarf, *offset, &next, &header, NULL, NULL, NULL, NULL,
			       NULL, NULL) == 0 &&
	       next > *offset) {
		bool found = dwarf_offdie(dwarf, *offset + header, ret) &&
			     dwarf_tag(ret) == DW_TAG_compile_unit;
		*offset = next;
		if (found)
			return true;
	}
	return false;
}

/* Lines -------------------------------------------------------------------- */

/* Whether a path ends in these parts. */
static bool is_file(const char *path, const char *wanted)
{
	size_t size = strlen(path);
	size_t end = strlen(wanted);

	return size >= end && strcmp(path + size - end, wanted) == 0 &&
	       (size == end || path[size - end - 1] == '/');
}

struct lines {
	const char *file;
	uint32_t line;
	uint32_t next; /* the nearest line behind it that has code */
	bool any;
	ss_line_found *found;
	void *data;
};

static bool has_file(Dwarf_Die *unit, const char *wanted)
{
	Dwarf_Files *files = NULL;
	size_t count = 0;

	if (dwarf_getsrcfiles(unit, &files, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);
		if (path && is_file(path, wanted))
			return true;
	}
	return false;
}

static void search_lines(struct lines *lines, Dwarf_Die *unit)
{
	Dwarf_Lines *all = NULL;
	size_t count = 0;
	bool within = false; /* the row before is of the line, too */

	if (dwarf_getsrclines(unit, &all, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *row = dwarf_onesrcline(all, i);
		const char *path = dwarf_linesrc(row, NULL, NULL);
		Dwarf_Addr address = 0;
		bool statement = false;
		bool end = false;
		int number = 0;
		if (!path || dwarf_lineno(row, &number) != 0 || number <= 0 ||
		    !is_file(path, lines->file) ||
		    dwarf_lineendsequence(row, &end) != 0 || end ||
		    dwarf_linebeginstatement(row, &statement) != 0) {
			within = false;
			continue;
		}
		uint32_t line = (uint32_t)number;
		if (line > lines->line && (!lines->next || line < lines->next))
			lines->next = line;
		bool same = line == lines->line;
		if (same && statement && !within && dwarf_lineaddr(row, &address) == 0) {
			lines->any = true;
			lines->found(lines->data, address, path, line);
		}
		within = same;
	}
}

uint32_t ss_dwarf_find_line(struct ss_dwarf *dwarf, const char *file, uint32_t line,
			    ss_line_found *found, void *data)
{
	struct lines lines = { .file = file, .line = line, .found = found, .data = data };
	Dwarf_Off offset = 0;
	Dwarf_Die unit;

	while (next_unit(dwarf_handle(dwarf), &offset, &unit)) {
		if (has_file(&unit, file))
			search_lines(&lines, &unit);
	}
	return lines.any ? 0 : lines.next;
}

/* Inlined calls ------------------------------------------------------------ */

struct inlined {
	Dwarf *dwarf;
	ss_inlined_wanted *wanted;
	ss_inlined_found *found;
	void *data;
	size_t entries;
	size_t budget;	    /* of the demangler */
	Dwarf_Files *files; /* of the current unit */
	Dwarf_Off last;	    /* the function that was looked at last, */
	bool last_wanted;
};

/* The linkage name, demangled, or the name. The caller frees it. */
static char *read_name(struct inlined *inlined, Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *linkage = NULL;
	char *result = NULL;

	if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute))
		linkage = dwarf_formstring(&attribute);
	if (linkage)
		result = ss_name_demangle(linkage, &inlined->budget);
	if (!result)
		linkage = dwarf_diename(function);
	return result || !linkage ? result : strdup(linkage);
}

static void visit_call(struct inlined *inlined, Dwarf_Die *call)
{
	Dwarf_Attribute attribute;
	Dwarf_Die function;
	Dwarf_Word number = 0;
	Dwarf_Word file = 0;

	if (!dwarf_attr(call, DW_AT_abstract_origin, &attribute) ||
	    !dwarf_formref_die(&attribute, &function))
		return;
	Dwarf_Off offset = dwarf_dieoffset(&function);
	if (offset == inlined->last && !inlined->last_wanted)
		return;
	char *name = read_name(inlined, &function);
	inlined->last = offset;
	inlined->last_wanted = name && inlined->wanted(inlined->data, name);
	if (inlined->last_wanted) {
		if (dwarf_attr(call, DW_AT_call_line, &attribute))
			(void)dwarf_formudata(&attribute, &number); /* or 0 */
		if (dwarf_attr(call, DW_AT_call_file, &attribute))
			(void)dwarf_formudata(&attribute, &file); /* or 0 */
		inlined->found(inlined->data, name,
			       inlined->files ?
				       dwarf_filesrc(inlined->files, file, NULL, NULL) :
				       NULL,
			       (uint32_t)number);
	}
	free(name);
}

static bool has_code(unsigned tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_inlined_subroutine || tag == DW_TAG_namespace ||
	       tag == DW_TAG_module;
}

static void visit_children(struct inlined *inlined, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		if (++inlined->entries > ENTRIES_MAX)
			return;
		if (tag == DW_TAG_inlined_subroutine)
			visit_call(inlined, &die);
		if (has_code((unsigned)tag))
			visit_children(inlined, &die, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

void ss_dwarf_find_inlined(struct ss_dwarf *dwarf, ss_inlined_wanted *wanted,
			   ss_inlined_found *found, void *data)
{
	struct inlined inlined = {
		.dwarf = dwarf_handle(dwarf),
		.wanted = wanted,
		.found = found,
		.data = data,
		.budget = SS_DEMANGLE_BUDGET,
	};
	Dwarf_Off offset = 0;
	Dwarf_Die unit;

	while (next_unit(inlined.dwarf, &offset, &unit) &&
	       inlined.entries <= ENTRIES_MAX) {
		size_t count;
		inlined.files = NULL;
		(void)dwarf_getsrcfiles(&unit, &inlined.files, &count); /* or NULL */
		visit_children(&inlined, &unit, 0);
	}
}
