#include "symbolize/lines.h"

#include <dwarf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"
#include "symbolize/inlines.h"
#include "symbolize/sections.h"
#include "symbolize/segments.h"

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
	ss_sections_deinit(&image->sections);
}

static bool open_image(const struct ss_elf *elf, bool may_fault, struct image *ret)
{
	struct image image = {};

	if (elf->header.e_type == ET_REL || elf_version(EV_CURRENT) == EV_NONE)
		return false;
	if (!ss_sections_read(elf, may_fault, &image.sections))
		return false;
	image.elf = elf_memory(image.sections.bytes, image.sections.size);
	image.dwarf = image.elf ? dwarf_begin_elf(image.elf, DWARF_C_READ, NULL) : NULL;
	*ret = image;
	return image.dwarf != NULL;
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

Dwarf *ss_dwarf_handle(struct ss_dwarf *dwarf)
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
