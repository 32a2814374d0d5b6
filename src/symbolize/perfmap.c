#include "symbolize/perfmap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vector.h"
#include "symbolize/symtab.h"

enum {
	TEXT_MAX = SS_PERFMAP_MAX,
	/* A line of node or java is 50 to 150 bytes long. */
	LINES_MAX = 1 << 20,
	NAME_STEP = 64, /* bytes of names that count as one comparison */
	AMBIGUOUS_MAX = 1 << 20,
};

struct piece {
	uint64_t start;
	uint64_t size;
	uint32_t name; /* offset in text */
	uint32_t name_size;
};

struct ss_perfmap {
	char *text; /* the names, each terminated */
	SS_VECTOR(struct piece) pieces;
	size_t stable_count;	      /* pieces that precede the recording */
	struct ss_segments stable;    /* values: index of piece */
	struct ss_segments added;     /* the same for the other pieces */
	struct ss_segments ambiguous; /* where added pieces have several names */
	bool unresolved;	      /* too many of these to find out */
};

/* Scans a hexadecimal number, with or without "0x", and the space after it. */
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

/* end: the position of the newline. False without memory. */
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

/* A last line without a newline is still being written. */
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

/* Of the pieces from first on, later ones win. */
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

struct ambiguous {
	SS_VECTOR(struct ss_range) ranges;
	size_t *comparisons; /* that remain */
};

/* Collects the ranges where an added piece has another name than the one that covers it.
   False: too many, or no memory. */
static bool compare_added(const struct ss_perfmap *map, const struct piece *piece,
			  struct ambiguous *ambiguous)
{
	const struct ss_segments *added = &map->added;
	uint64_t end = piece->start + piece->size;
	size_t behind = ss_segments_after(added, piece->start);

	for (size_t s = behind ? behind - 1 : 0;
	     s < added->count && added->starts[s] < end; s++) {
		uint64_t next = s + 1 < added->count ? added->starts[s + 1] : end;
		uint32_t value = added->values[s];
		size_t cost = 1 + piece->name_size / NAME_STEP;
		if (*ambiguous->comparisons < cost ||
		    ambiguous->ranges.count >= AMBIGUOUS_MAX)
			return false;
		*ambiguous->comparisons -= cost;
		if (value == SS_SEGMENT_NONE ||
		    same_name(map, piece, &map->pieces.items[value]))
			continue;
		struct ss_range *range = ss_vector_push(&ambiguous->ranges);
		if (!range)
			return false;
		*range = (struct ss_range){ .start = SS_MAX(added->starts[s],
							    piece->start),
					    .end = SS_MIN(next, end) };
	}
	return true;
}

/* If pieces overlap too often, added pieces give no names at all. */
static void find_ambiguities(struct ss_perfmap *map, size_t *comparisons)
{
	struct ambiguous ambiguous = { .comparisons = comparisons };
	bool whole = true;

	for (size_t i = map->stable_count; i < map->pieces.count && whole; i++)
		whole = compare_added(map, &map->pieces.items[i], &ambiguous);
	map->unresolved =
		!whole ||
		!ss_ranges_sort(ambiguous.ranges.items, ambiguous.ranges.count) ||
		!ss_segments_build(&map->ambiguous, ambiguous.ranges.items,
				   ambiguous.ranges.count);
	ss_vector_free(&ambiguous.ranges);
}

static bool build_index(struct ss_perfmap *map, uint64_t stable_size, size_t *comparisons)
{
	size_t count = map->pieces.count;

	while (map->stable_count < count &&
	       map->pieces.items[map->stable_count].name < stable_size)
		map->stable_count++;
	if (!build_segments(map, 0, map->stable_count, &map->stable) ||
	    !build_segments(map, map->stable_count, count - map->stable_count,
			    &map->added))
		return false;
	find_ambiguities(map, comparisons);
	return true;
}

/* Takes ownership of text. cut: it begins within a line, which is erased. */
static struct ss_perfmap *perfmap_make(char *text, size_t size, bool cut,
				       uint64_t stable_size, size_t *comparisons)
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
	return add_lines(map, size) && build_index(map, stable_size, comparisons) ?
		       take_ptr(map) :
		       NULL;
}

/* The stable size of the tail that remains after cut bytes were dropped. */
static uint64_t stable_after_cut(uint64_t stable_size, uint64_t cut)
{
	return stable_size > cut ? stable_size - cut : 0;
}

struct ss_perfmap *ss_perfmap_new(const char *text, size_t size, uint64_t stable_size)
{
	size_t used = SS_MIN(size, (size_t)TEXT_MAX);
	size_t comparisons = SS_PERFMAP_COMPARISONS;
	char *copy = malloc(used + 1);

	if (!copy)
		return NULL;
	if (used)
		memcpy(copy, text + (size - used), used);
	return perfmap_make(copy, used, used < size,
			    stable_after_cut(stable_size, size - used), &comparisons);
}

/* The size of a file or memory image. */
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

struct ss_perfmap *ss_perfmap_read(const struct ss_module_impl *file,
				   uint64_t stable_size, size_t *comparisons)
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
			    stable_after_cut(stable_size, size - used), comparisons);
}

void ss_perfmap_free(struct ss_perfmap *map)
{
	if (!map)
		return;
	free(map->text);
	ss_vector_free(&map->pieces);
	ss_segments_free(&map->stable);
	ss_segments_free(&map->added);
	ss_segments_free(&map->ambiguous);
	free(map);
}

bool ss_perfmap_find(const struct ss_perfmap *map, uint64_t address,
		     struct ss_symbol *ret)
{
	uint32_t old = ss_segments_find(&map->stable, address);
	uint32_t new = ss_segments_find(&map->added, address);
	const struct piece *pieces = map->pieces.items;

	if (new == SS_SEGMENT_NONE && old == SS_SEGMENT_NONE)
		return false;
	const struct piece *piece = &pieces[new != SS_SEGMENT_NONE ? new : old];
	if (new != SS_SEGMENT_NONE &&
	    (map->unresolved ||
	     ss_segments_find(&map->ambiguous, address) != SS_SEGMENT_NONE ||
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
	maps->comparisons = SS_PERFMAP_COMPARISONS;
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
		item->map = ss_perfmap_read(from->file, from->stable_size,
					    &maps->comparisons);
	item->read = true;
	return item->map && ss_perfmap_find(item->map, address, ret);
}
