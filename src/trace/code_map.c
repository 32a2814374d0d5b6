#include "trace/code_map.h"

#include <sys/mman.h>

void ss_code_map_deinit(struct ss_code_map *map)
{
	for (size_t i = 0; i < map->modules.count; i++)
		ss_module_unref(map->modules.items[i]);
	ss_vector_free(&map->modules);
	ss_vector_free(&map->ranges);
}

/* The next run of executable areas without gaps, from area *at on. False: there is none. */
static bool next_range(const struct ss_capture *capture, size_t *at,
		       struct ss_code_range *ret)
{
	const struct ss_area *areas = capture->areas.items;
	size_t count = capture->areas.count;

	while (*at < count && !(areas[*at].prot & PROT_EXEC))
		(*at)++;
	if (*at == count)
		return false;
	*ret = (struct ss_code_range){ areas[*at].start, areas[*at].end };
	for ((*at)++;
	     *at < count && (areas[*at].prot & PROT_EXEC) && areas[*at].start == ret->end;
	     (*at)++)
		ret->end = areas[*at].end;
	return true;
}

static bool add_all(struct ss_code_map *map, const struct ss_capture *capture)
{
	struct ss_code_range range;

	for (size_t at = 0; next_range(capture, &at, &range);) {
		struct ss_code_range *slot = ss_vector_push(&map->ranges);
		if (!slot)
			return false;
		*slot = range;
	}
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl **slot = ss_vector_push(&map->modules);
		if (!slot)
			return false;
		*slot = ss_module_ref(capture->modules.items[i]);
	}
	return true;
}

bool ss_code_map_set(struct ss_code_map *map, const struct ss_capture *capture)
{
	ss_code_map_deinit(map);
	if (add_all(map, capture))
		return true;
	ss_code_map_deinit(map);
	return false;
}

bool ss_code_map_is_of(const struct ss_code_map *map, const struct ss_capture *capture)
{
	struct ss_code_range range;
	size_t at = 0;

	/* Modules that remain mapped keep their objects (sample/address_space.h). */
	if (map->modules.count != capture->modules.count)
		return false;
	for (size_t i = 0; i < map->modules.count; i++) {
		if (map->modules.items[i] != capture->modules.items[i])
			return false;
	}
	for (size_t i = 0; i < map->ranges.count; i++) {
		if (!next_range(capture, &at, &range) ||
		    range.start != map->ranges.items[i].start ||
		    range.end != map->ranges.items[i].end)
			return false;
	}
	return !next_range(capture, &at, &range);
}
