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
};

struct piece {
	uint64_t start;
	uint64_t size;
	size_t name; /* where in text */
};

struct ss_perfmap {
	char *text; /* the names, each terminated */
	SS_VECTOR(struct piece) pieces;
	struct ss_segments segments; /* values: index of piece */
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
				 .name = (size_t)(line - map->text) };
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

static bool build_segments(struct ss_perfmap *map)
{
	size_t count = map->pieces.count;
	_cleanup_free_ struct ss_range *ranges = calloc(count + 1, sizeof(*ranges));

	for (size_t i = 0; ranges && i < count; i++) {
		const struct piece *piece = &map->pieces.items[i];
		ranges[i] = (struct ss_range){ .start = piece->start,
					       .end = piece->start + piece->size,
					       .value = (uint32_t)i };
	}
	return ranges && ss_ranges_sort(ranges, count) &&
	       ss_segments_build_by_value(&map->segments, ranges, count);
}

/* Takes over text. cut: it begins within a line, which must not be taken for another. */
static struct ss_perfmap *perfmap_make(char *text, size_t size, bool cut)
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
	return add_lines(map, size) && build_segments(map) ? take_ptr(map) : NULL;
}

struct ss_perfmap *ss_perfmap_new(const char *text, size_t size)
{
	size_t used = SS_MIN(size, (size_t)TEXT_MAX);
	char *copy = malloc(used + 1);

	if (!copy)
		return NULL;
	if (used)
		memcpy(copy, text + (size - used), used);
	return perfmap_make(copy, used, used < size);
}

struct ss_perfmap *ss_perfmap_read(const struct ss_module_impl *file)
{
	struct stat st;

	if (file->fd < 0 || fstat(file->fd, &st) != 0 || st.st_size < 0)
		return NULL;
	uint64_t size = (uint64_t)st.st_size;
	size_t used = SS_MIN(size, (size_t)TEXT_MAX);
	char *text = malloc(used + 1);
	ssize_t n = text ? ss_module_read(file, size - used, text, used) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	return perfmap_make(text, (size_t)n, used < size);
}

void ss_perfmap_free(struct ss_perfmap *map)
{
	if (!map)
		return;
	free(map->text);
	ss_vector_free(&map->pieces);
	ss_segments_free(&map->segments);
	free(map);
}

bool ss_perfmap_find(const struct ss_perfmap *map, uint64_t address,
		     struct ss_symbol *ret)
{
	uint32_t index = ss_segments_find(&map->segments, address);

	if (index == SS_SEGMENT_NONE)
		return false;
	const struct piece *piece = &map->pieces.items[index];
	*ret = (struct ss_symbol){ .start = piece->start,
				   .size = piece->size,
				   .name = map->text + piece->name };
	return true;
}
