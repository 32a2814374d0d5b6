#include "data/regions.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>

/* With the module that is being assembled from successive areas. */
struct ss_regions {
	struct ss_capture *capture;
	/* The file offset of each area; UINT64_MAX for areas without a file. */
	SS_VECTOR(uint64_t) offsets;
	size_t first_area; /* of the group */
	bool executable;
	struct ss_maps_entry first;
	uint64_t last_offset;
	uint64_t last_end; /* of any area, including anonymous ones (.bss) */
	size_t last_area;  /* of the file */
	bool open;
};

/*
 * Areas of a module are close together. Distant mappings of the same file (by a program
 * that reads its own symbols, for example) are not part of it.
 */
static const uint64_t gap_max = UINT64_C(1) << 30;

static const char *area_name(struct ss_capture *capture, const struct ss_maps_entry *e)
{
	char name[PATH_MAX];

	if (e->name_size == 0)
		return ss_intern_string(capture->strings, "//anon");
	size_t size = ss_maps_unescape(e->name, e->name_size, name, sizeof(name));
	return ss_capture_path(capture, name, size);
}

static bool is_vdso(const struct ss_maps_entry *e)
{
	return e->name_size == 6 && memcmp(e->name, "[vdso]", 6) == 0;
}

/* Anonymous memory that is shared: compilers of code for several processes (PHP's) use it. */
static bool is_shared_memory(const struct ss_maps_entry *e)
{
	return e->name_size == strlen(SS_SHARED_MEMORY) &&
	       memcmp(e->name, SS_SHARED_MEMORY, e->name_size) == 0;
}

static bool same_file(const struct ss_maps_entry *a, const struct ss_maps_entry *b)
{
	return a->inode != 0 && a->inode == b->inode && a->device == b->device &&
	       a->name_size == b->name_size &&
	       memcmp(a->name, b->name, a->name_size) == 0;
}

/* Another mapping at offset 0 means that the file is loaded a second time: another
   module. */
static bool continues(const struct ss_regions *g, const struct ss_maps_entry *e)
{
	return g->open && same_file(&g->first, e) && e->offset >= g->last_offset &&
	       !(e->offset == 0 && g->last_offset != 0);
}

static bool add_mappings(struct ss_module_impl *module, const struct ss_regions *g)
{
	const uint64_t *offsets = g->offsets.items;

	for (size_t i = g->first_area; i < g->capture->areas.count; i++) {
		const struct ss_area *area = &g->capture->areas.items[i];
		if (offsets[i] == UINT64_MAX)
			continue;
		struct ss_mapping mapping = { .start = area->start,
					      .end = area->end,
					      .offset = offsets[i],
					      .prot = area->prot };
		if (!ss_module_add_mapping(module, &mapping))
			return false;
	}
	return true;
}

/* Ends the group, which becomes a module if it has an executable area. */
static bool close_group(struct ss_regions *g)
{
	struct ss_capture *capture = g->capture;

	if (!g->open || !g->executable) {
		g->open = false;
		return true;
	}
	g->open = false;
	const struct ss_area *first = &capture->areas.items[g->first_area];
	struct ss_module_impl **slot = ss_vector_push(&capture->modules);
	if (!slot)
		return false;
	*slot = ss_module_new(first->name, first->start, first->end);
	if (!*slot) {
		capture->modules.count--;
		return false;
	}
	(*slot)->device = g->first.device;
	(*slot)->inode = g->first.inode;
	(*slot)->pub.deleted = g->first.deleted;
	/* Everything in between belongs to the module, even if pages of the file were
	   replaced by anonymous ones (text that was moved to huge pages). */
	for (size_t i = g->first_area; i <= g->last_area; i++)
		capture->areas.items[i].module = (int32_t)(capture->modules.count - 1);
	return add_mappings(*slot, g);
}

static bool push_area(struct ss_capture *capture, const struct ss_maps_entry *e)
{
	struct ss_area *area = ss_vector_push(&capture->areas);

	if (!area)
		return false;
	*area = (struct ss_area){ .start = e->start,
				  .end = e->end,
				  .prot = e->prot,
				  .shared = e->shared,
				  .module = -1,
				  .name = area_name(capture, e) };
	return area->name != NULL;
}

static bool add_entry(struct ss_regions *g, const struct ss_maps_entry *e)
{
	bool is_module = (e->inode != 0 && !is_shared_memory(e)) || is_vdso(e);
	bool far = e->start > g->last_end && e->start - g->last_end > gap_max;

	if (far && !close_group(g))
		return false;
	/* Anonymous areas inside a module (its .bss) do not end it. */
	if (is_module && !continues(g, e)) {
		if (!close_group(g))
			return false;
		g->first_area = g->capture->areas.count;
		g->first = *e;
		g->executable = false;
		g->open = true;
	}
	if (is_module) {
		g->executable |= (e->prot & PROT_EXEC) != 0;
		g->last_offset = e->offset;
		g->last_area = g->capture->areas.count;
	}
	g->last_end = e->end;
	return push_area(g->capture, e);
}

struct ss_regions *ss_regions_begin(struct ss_capture *capture)
{
	struct ss_regions *regions = calloc(1, sizeof(*regions));

	if (regions)
		regions->capture = capture;
	return regions;
}

void ss_regions_free(struct ss_regions *regions)
{
	if (!regions)
		return;
	ss_vector_free(&regions->offsets);
	free(regions);
}

bool ss_regions_add(struct ss_regions *regions, const struct ss_maps_entry *entry)
{
	uint64_t *offset;

	if (regions->capture->areas.count >= SS_AREAS_MAX)
		return true;
	if (!add_entry(regions, entry) ||
	    (offset = ss_vector_push(&regions->offsets)) == NULL)
		return false;
	*offset = entry->inode != 0 || is_vdso(entry) ? entry->offset : UINT64_MAX;
	return true;
}

bool ss_regions_end(struct ss_regions *regions)
{
	return close_group(regions);
}

struct ss_error *ss_regions_read(struct ss_capture *capture, const struct ss_buffer *maps)
{
	_cleanup_(ss_regions_cleanup) struct ss_regions *regions =
		ss_regions_begin(capture);
	const char *cursor = maps->bytes;
	const char *end = maps->bytes + maps->size;
	struct ss_maps_entry e;
	bool ok = regions != NULL;

	while (ok && capture->areas.count < SS_AREAS_MAX &&
	       ss_maps_next(&cursor, end, &e))
		ok = ss_regions_add(regions, &e);
	return ok && ss_regions_end(regions) ? NULL : ss_error_no_memory();
}

bool ss_regions_share(struct ss_capture *capture, const struct ss_capture *from)
{
	if (!ss_vector_reserve(&capture->areas, from->areas.count) ||
	    !ss_vector_reserve(&capture->modules, from->modules.count))
		return false;
	for (size_t i = 0; i < from->areas.count; i++)
		capture->areas.items[i] = from->areas.items[i];
	for (size_t i = 0; i < from->modules.count; i++)
		capture->modules.items[i] = ss_module_ref(from->modules.items[i]);
	capture->areas.count = from->areas.count;
	capture->modules.count = from->modules.count;
	return true;
}

bool ss_regions_copy(struct ss_capture *capture, const struct ss_capture *from)
{
	if (!ss_regions_share(capture, from))
		return false;
	for (size_t i = 0; i < capture->areas.count; i++) {
		struct ss_area *area = &capture->areas.items[i];
		area->name = ss_intern_string(capture->strings, area->name);
		if (!area->name) {
			ss_regions_clear(capture);
			return false;
		}
	}
	return true;
}

void ss_regions_clear(struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->modules.count; i++)
		ss_module_unref(capture->modules.items[i]);
	capture->modules.count = 0;
	capture->areas.count = 0;
}

static bool next_executable(const char **cursor, const char *end,
			    struct ss_maps_entry *ret)
{
	while (ss_maps_next(cursor, end, ret)) {
		if ((ret->prot & PROT_EXEC) && ret->inode != 0)
			return true;
	}
	return false;
}

bool ss_regions_conflict(const struct ss_buffer *before, const struct ss_buffer *after)
{
	const char *old_at = before->bytes;
	const char *new_at = after->bytes;
	const char *old_end = old_at + before->size;
	const char *new_end = new_at + after->size;
	struct ss_maps_entry old_entry;
	struct ss_maps_entry new_entry = {};

	if (before->size == after->size && memcmp(old_at, new_at, before->size) == 0)
		return false;
	/* Both are sorted: each old mapping must be found again, unchanged. */
	while (next_executable(&old_at, old_end, &old_entry)) {
		do {
			if (!next_executable(&new_at, new_end, &new_entry))
				return true;
		} while (new_entry.end <= old_entry.start);
		if (new_entry.start != old_entry.start ||
		    new_entry.end != old_entry.end ||
		    new_entry.offset != old_entry.offset ||
		    new_entry.inode != old_entry.inode ||
		    new_entry.device != old_entry.device)
			return true;
	}
	return false;
}
