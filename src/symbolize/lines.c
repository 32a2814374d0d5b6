#include "symbolize/lines.h"

#include <dwarf.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"
#include "symbolize/inlines.h"
#include "symbolize/segments.h"

/* Sections are read instead of mapped, because a mapped file can be truncated meanwhile.
   This limits their uncompressed size; the DWARF of a browser is that large. */
#define DWARF_SIZE_MAX ((uint64_t)2 << 30)

/* The limit of what compressed sections expand to, unless that is less than eight times as
   much: real ones expand to three to five times as much, zeros to a thousand times. */
#define EXPANDED_MAX ((uint64_t)256 << 20)
enum { EXPANSION_MAX = 8 };

/* Ten times as many as the largest known program has. */
enum { RANGES_MAX = 1 << 22 };

struct ss_dwarf {
	Elf *elf;
	Dwarf *dwarf;
	Elf *alternate_elf;
	Dwarf *alternate;
	SS_VECTOR(struct ss_unit) units;   /* the first indexed_count sorted by offset */
	size_t indexed_count;		   /* from .debug_aranges */
	SS_VECTOR(struct ss_range) ranges; /* value: index of unit */
	struct ss_segments segments;
	bool complete; /* units that .debug_aranges lacks were added */
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
   "" for a section that would make libdw open another file; NULL: not DWARF. */
static const char *dwarf_name(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	static const char *const prefixes[] = { ".debug_", ".zdebug_" };
	const char *name = "";

	if (section->sh_name < elf->section_names_size)
		name = elf->section_names + section->sh_name;
	for (size_t i = 0; i < SS_ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return name + strlen(prefixes[i]);
	}
	return strcmp(name, ".gnu_debugaltlink") == 0 ? "" : NULL;
}

/* The uncompressed size of a section. */
static uint64_t unpacked_size(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	Elf64_Chdr header;
	uint8_t old[12]; /* "ZLIB" and the size, big-endian */
	uint64_t size = 0;

	if (section->sh_flags & SHF_COMPRESSED)
		return ss_elf_read(elf, section->sh_offset, &header, sizeof(header)) ?
			       header.ch_size :
			       UINT64_MAX;
	if (!ss_elf_read(elf, section->sh_offset, old, sizeof(old)) ||
	    memcmp(old, "ZLIB", 4) != 0)
		return section->sh_size;
	for (size_t i = 4; i < sizeof(old); i++)
		size = size << 8 | old[i];
	return size;
}

/* libdw skips sections without bytes. The change affects only libelf's own copy of the
   section headers. */
static bool hide_section(Elf *elf, size_t index)
{
	Elf_Scn *section = elf_getscn(elf, index);
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header))
		return false;
	header.sh_type = SHT_NOBITS;
	return gelf_update_shdr(section, &header) != 0;
}

/* False: the other sections are too large, or a section cannot be hidden. */
static bool hide_other_sections(const struct ss_elf *elf, Elf *handle)
{
	uint64_t total = 0;
	uint64_t expanded = 0; /* of compressed sections, and what they are stored in */
	uint64_t stored = 0;

	for (size_t i = 1; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		const char *name = dwarf_name(elf, section);
		if (!name || section->sh_type == SHT_NOBITS)
			continue;
		uint64_t size = is_needed(name) ? unpacked_size(elf, section) : 0;
		if (size > DWARF_SIZE_MAX - total)
			return false;
		total += size;
		if (size > section->sh_size) {
			expanded += size;
			stored += section->sh_size;
		}
		if (!is_needed(name) && !hide_section(handle, i))
			return false;
	}
	return total != 0 &&
	       (expanded <= EXPANDED_MAX || expanded <= stored * EXPANSION_MAX);
}

/* libdw reads strings up to their NUL (0.188: even beyond the section). What libelf has read
   is checked, as the file may change meanwhile. */
static bool are_strings_terminated(const struct ss_elf *elf, Elf *handle)
{
	for (size_t i = 1; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		const char *name = dwarf_name(elf, section);
		if (!name || section->sh_type == SHT_NOBITS ||
		    (strcmp(name, "str") != 0 && strcmp(name, "line_str") != 0))
			continue;
		Elf_Data *data = elf_rawdata(elf_getscn(handle, i), NULL);
		if (data && data->d_size > 0 &&
		    (!data->d_buf || ((const char *)data->d_buf)[data->d_size - 1]))
			return false;
	}
	return true;
}

/* Only from files: a memory image has no DWARF, and its bytes are shared and must not
   change. */
static bool open_dwarf(const struct ss_elf *elf, Elf **ret_elf, Dwarf **ret_dwarf)
{
	if (elf->fd < 0 || elf->header.e_type == ET_REL ||
	    elf_version(EV_CURRENT) == EV_NONE)
		return false;
	Elf *handle = elf_begin(elf->fd, ELF_C_READ, NULL);
	Dwarf *dwarf = NULL;
	if (handle && hide_other_sections(elf, handle))
		dwarf = dwarf_begin_elf(handle, DWARF_C_READ, NULL);
	if (dwarf && !are_strings_terminated(elf, handle)) {
		(void)dwarf_end(dwarf); /* cannot fail */
		dwarf = NULL;
	}
	if (!dwarf) {
		(void)elf_end(handle); /* returns a reference count; accepts NULL */
		return false;
	}
	/* Everything has been read, so that the file may be closed. */
	(void)elf_cntl(handle, ELF_C_FDDONE);
	*ret_elf = handle;
	*ret_dwarf = dwarf;
	return true;
}

static struct ss_unit *find_indexed_unit(const struct ss_dwarf *dwarf, Dwarf_Off offset)
{
	size_t low = ss_lower_bound(dwarf->indexed_count, i,
				    dwarf->units.items[i].offset < offset);

	if (low < dwarf->indexed_count && dwarf->units.items[low].offset == offset)
		return &dwarf->units.items[low];
	return NULL;
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

static int compare_units(const void *a, const void *b)
{
	Dwarf_Off left = ((const struct ss_unit *)a)->offset;
	Dwarf_Off right = ((const struct ss_unit *)b)->offset;

	return (left > right) - (left < right);
}

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

struct ss_dwarf *ss_dwarf_open(const struct ss_elf *elf, const struct ss_elf *alternate)
{
	_cleanup_(ss_dwarf_cleanup) struct ss_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf || !open_dwarf(elf, &dwarf->elf, &dwarf->dwarf))
		return NULL;
	if (alternate && open_dwarf(alternate, &dwarf->alternate_elf, &dwarf->alternate))
		dwarf_setalt(dwarf->dwarf, dwarf->alternate);
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
	(void)dwarf_end(dwarf->dwarf); /* accepts NULL, cannot fail */
	(void)dwarf_end(dwarf->alternate);
	(void)elf_end(dwarf->elf);
	(void)elf_end(dwarf->alternate_elf);
	free(dwarf);
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
