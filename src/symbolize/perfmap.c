#include "symbolize/perfmap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vector.h"
#include "symbolize/segments.h"

enum {
	TEXT_MAX = SS_PERFMAP_MAX,
	/* A line of node or java is 50 to 150 bytes long. */
	LINES_MAX = 1 << 20,
	NAME_STEP = 64, /* bytes that are compared in the time of a look */
	DOUBTS_MAX = 1 << 20,
};

struct piece {
	uint64_t start;
	uint64_t size;
	uint32_t name; /* where in text */
	uint32_t name_size;
};

struct ss_perfmap {
	char *text; /* the names, each terminated */
	SS_VECTOR(struct piece) pieces;
	size_t settled;		    /* pieces that were there before */
	struct ss_segments before;  /* values: index of piece */
	struct ss_segments changes; /* likewise, of the others */
	struct ss_segments doubts;  /* where changes of several names were */
	bool hopeless;		    /* too many of those */
};

/* A hexadecimal number, with or without "0x", and the space behind it. */
static bool scan_number(const char **at, const char *end, uint64_t *ret)
{
	const char *c = *at;
	uint64_t value = 0;

	if (end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	const char *first = c;
	for (; c < end && c - first < 16; c++) {
		char letter = (char)(*c | 0x20);
		if (*c >= '0' && *c <= '9')
			value = value << 4 | (uint64_t)(*c - '0');
		else if (letter >= 'a' && letter <= 'f')
			value = value << 4 | (uint64_t)(letter - 'a' + 10);
		else
			break;
	}
	if (c == first || c == end || *c != ' ')
		return false;
	*at = c + 1;
	*ret = value;
	return true;
}

/* end: where the line's newline was. False without memory. */
static bool add_line(struct ss_perfmap *map, const char *line, const char *end)
{
	uint64_t start;
	uint64_t size;
	uint64_t stop;

	if (!scan_number(&line, end, &start) || !scan_number(&line, end, &size) ||
	    line == end || size == 0 || __builtin_add_overflow(start, size, &stop))
		return true;
	struct piece *piece = ss_vector_push(&map->pieces);
	if (!piece)
		return false;
	*piece = (struct piece){ .start = start,
				 .size = size,
				 .name = (uint32_t)(line - map->text),
				 .name_size = (uint32_t)strlen(line) };
	return true;
}

/* What follows the last newline is still being written. */
static bool add_lines(struct ss_perfmap *map, size_t size)
{
	char *line = map->text;
	char *end = map->text + size;
	char *newline;

	while (line < end && map->pieces.count < LINES_MAX &&
	       (newline = memchr(line, '\n', (size_t)(end - line)))) {
		*newline = '\0';
		if (!add_line(map, line, newline))
			return false;
		line = newline + 1;
	}
	return true;
}

/* Of the pieces from first on; later ones win. */
static bool build_segments(const struct ss_perfmap *map, size_t first, size_t count,
			   struct ss_segments *ret)
{
	_cleanup_free_ struct ss_range *ranges = calloc(count + 1, sizeof(*ranges));

	for (size_t i = 0; ranges && i < count; i++) {
		const struct piece *piece = &map->pieces.items[first + i];
		ranges[i] = (struct ss_range){ .start = piece->start,
					       .end = piece->start + piece->size,
					       .value = (uint32_t)(first + i) };
	}
	return ranges && ss_ranges_sort(ranges, count) &&
	       ss_segments_build_by_value(ret, ranges, count);
}

static bool same_name(const struct ss_perfmap *map, const struct piece *a,
		      const struct piece *b)
{
	return a->name_size == b->name_size &&
	       memcmp(map->text + a->name, map->text + b->name, a->name_size) == 0;
}

struct doubts {
	SS_VECTOR(struct ss_range) ranges;
	size_t *looks; /* at overlaps, that are left */
};

/* Notes where a change has another name than what covers it. False: there is too much, or
   no memory. */
static bool compare_change(const struct ss_perfmap *map, const struct piece *piece,
			   struct doubts *doubts)
{
	const struct ss_segments *changes = &map->changes;
	uint64_t end = piece->start + piece->size;
	size_t behind = ss_segments_behind(changes, piece->start);

	for (size_t s = behind ? behind - 1 : 0;
	     s < changes->count && changes->starts[s] < end; s++) {
		uint64_t next = s + 1 < changes->count ? changes->starts[s + 1] : end;
		uint32_t value = changes->values[s];
		size_t cost = 1 + piece->name_size / NAME_STEP;
		if (*doubts->looks < cost || doubts->ranges.count >= DOUBTS_MAX)
			return false;
		*doubts->looks -= cost;
		if (value == SS_SEGMENT_NONE ||
		    same_name(map, piece, &map->pieces.items[value]))
			continue;
		struct ss_range *range = ss_vector_push(&doubts->ranges);
		if (!range)
			return false;
		*range = (struct ss_range){ .start = SS_MAX(changes->starts[s],
							    piece->start),
					    .end = SS_MIN(next, end) };
	}
	return true;
}

/* A map that overlaps itself too often has no names for what has changed. */
static void find_doubts(struct ss_perfmap *map, size_t *looks)
{
	struct doubts doubts = { .looks = looks };
	bool whole = true;

	for (size_t i = map->settled; i < map->pieces.count && whole; i++)
		whole = compare_change(map, &map->pieces.items[i], &doubts);
	map->hopeless = !whole ||
			!ss_ranges_sort(doubts.ranges.items, doubts.ranges.count) ||
			!ss_segments_build(&map->doubts, doubts.ranges.items,
					   doubts.ranges.count);
	ss_vector_free(&doubts.ranges);
}

static bool lay_out(struct ss_perfmap *map, uint64_t settled, size_t *looks)
{
	size_t count = map->pieces.count;

	while (map->settled < count && map->pieces.items[map->settled].name < settled)
		map->settled++;
	if (!build_segments(map, 0, map->settled, &map->before) ||
	    !build_segments(map, map->settled, count - map->settled, &map->changes))
		return false;
	find_doubts(map, looks);
	return true;
}

/* Takes over text. cut: it begins within a line, which must not be taken for another. */
static struct ss_perfmap *perfmap_make(char *text, size_t size, bool cut,
				       uint64_t settled, size_t *looks)
{
	_cleanup_(ss_perfmap_cleanup) struct ss_perfmap *map = calloc(1, sizeof(*map));
	const char *newline = cut ? memchr(text, '\n', size) : NULL;

	if (!map) {
		free(text);
		return NULL;
	}
	map->text = text;
	if (cut)
		memset(text, '\n', newline ? (size_t)(newline - text) : size);
	return add_lines(map, size) && lay_out(map, settled, looks) ? take_ptr(map) :
								      NULL;
}

/* Of what is left where so much was cut off. */
static uint64_t settled_of_rest(uint64_t settled, uint64_t cut)
{
	return settled > cut ? settled - cut : 0;
}

struct ss_perfmap *ss_perfmap_new(const char *text, size_t size, uint64_t settled)
{
	size_t used = SS_MIN(size, (size_t)TEXT_MAX);
	size_t looks = SS_PERFMAP_LOOKS;
	char *copy = malloc(used + 1);

	if (!copy)
		return NULL;
	if (used)
		memcpy(copy, text + (size - used), used);
	return perfmap_make(copy, used, used < size,
			    settled_of_rest(settled, size - used), &looks);
}

/* Of a file, or of bytes. */
static bool get_size(const struct ss_module_impl *file, uint64_t *ret)
{
	struct stat st;

	*ret = file->size;
	if (file->fd < 0)
		return file->bytes != NULL;
	if (fstat(file->fd, &st) != 0 || st.st_size < 0)
		return false;
	*ret = (uint64_t)st.st_size;
	return true;
}

struct ss_perfmap *ss_perfmap_read(const struct ss_module_impl *file, uint64_t settled,
				   size_t *looks)
{
	uint64_t size;

	if (!get_size(file, &size))
		return NULL;
	size_t used = SS_MIN(size, (size_t)TEXT_MAX);
	char *text = malloc(used + 1);
	ssize_t n = text ? ss_module_read(file, size - used, text, used) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	return perfmap_make(text, (size_t)n, used < size,
			    settled_of_rest(settled, size - used), looks);
}

void ss_perfmap_free(struct ss_perfmap *map)
{
	if (!map)
		return;
	free(map->text);
	ss_vector_free(&map->pieces);
	ss_segments_free(&map->before);
	ss_segments_free(&map->changes);
	ss_segments_free(&map->doubts);
	free(map);
}

bool ss_perfmap_find(const struct ss_perfmap *map, uint64_t address,
		     struct ss_symbol *ret)
{
	uint32_t old = ss_segments_find(&map->before, address);
	uint32_t new = ss_segments_find(&map->changes, address);
	const struct piece *pieces = map->pieces.items;

	if (new == SS_SEGMENT_NONE && old == SS_SEGMENT_NONE)
		return false;
	const struct piece *piece = &pieces[new != SS_SEGMENT_NONE ? new : old];
	if (new != SS_SEGMENT_NONE &&
	    (map->hopeless ||
	     ss_segments_find(&map->doubts, address) != SS_SEGMENT_NONE ||
	     (old != SS_SEGMENT_NONE && !same_name(map, piece, &pieces[old]))))
		return false;
	*ret = (struct ss_symbol){ .start = piece->start,
				   .size = piece->size,
				   .name = map->text + piece->name };
	return true;
}

bool ss_perfmaps_init(struct ss_perfmaps *maps, const struct ss_snapshot *snapshot)
{
	maps->snapshot = snapshot;
	maps->items = calloc(snapshot->perf_maps.count + 1, sizeof(*maps->items));
	maps->looks = SS_PERFMAP_LOOKS;
	return maps->items != NULL;
}

void ss_perfmaps_deinit(struct ss_perfmaps *maps)
{
	for (size_t i = 0; maps->items && i < maps->snapshot->perf_maps.count; i++)
		ss_perfmap_free(maps->items[i].map);
	free(maps->items);
}

bool ss_perfmaps_find(struct ss_perfmaps *maps, uint32_t number, uint64_t address,
		      struct ss_symbol *ret)
{
	if (number >= maps->snapshot->perf_maps.count)
		return false;
	const struct ss_perf_map_file *from = &maps->snapshot->perf_maps.items[number];
	struct ss_perfmaps_item *item = &maps->items[number];
	if (!item->read)
		item->map = ss_perfmap_read(from->file, from->settled, &maps->looks);
	item->read = true;
	return item->map && ss_perfmap_find(item->map, address, ret);
}
