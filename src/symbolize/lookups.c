#include "symbolize/names.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vector.h"

/* The last byte is the version: change it with the layout, or when names change. */
static const char magic[8] = { 'S', 'S', 'N', 'A', 'M', 'E', 'S', 3 };

enum {
	HEADER_SIZE = 24,
	SIZE_AT = 8,
	HASH_AT = 16,
	COUNT_MAX = 1 << 20, /* of strings and of lookups: none is shorter than a byte */
};

struct lookup {
	uint64_t address;
	uint64_t start;
	const char *symbol;
	struct ss_location line;
	uint32_t first_inline;
	uint8_t inline_count;
	uint8_t kind;
	bool used; /* found or added since it was read */
};

struct ss_lookups {
	SS_VECTOR(struct lookup) items;
	SS_VECTOR(struct ss_inline) inlines;
	struct ss_hash table; /* of indexes into items */
	char *bytes;	      /* the strings of lookups that were read */
	bool changed;
};

struct ss_lookups *ss_lookups_new(void)
{
	return calloc(1, sizeof(struct ss_lookups));
}

static void clear(struct ss_lookups *lookups)
{
	ss_vector_free(&lookups->items);
	ss_vector_free(&lookups->inlines);
	ss_hash_deinit(&lookups->table);
	free(take_ptr(lookups->bytes));
}

void ss_lookups_free(struct ss_lookups *lookups)
{
	if (!lookups)
		return;
	clear(lookups);
	free(lookups);
}

/* Finding and adding --------------------------------------------------- */

struct query {
	const struct ss_lookups *lookups;
	uint64_t address;
	uint8_t kind;
};

static bool is_same(const void *context, uint32_t index)
{
	const struct query *query = context;
	const struct lookup *item = &query->lookups->items.items[index];

	return item->address == query->address && item->kind == query->kind;
}

static uint32_t find(const struct ss_lookups *lookups, uint64_t address, uint8_t kind)
{
	const struct query query = { lookups, address, kind };

	return ss_hash_find(&lookups->table, address + kind, is_same, &query);
}

bool ss_lookups_find(struct ss_lookups *lookups, uint64_t address, uint8_t kind,
		     struct ss_name *ret)
{
	uint32_t index = find(lookups, address, kind);

	if (index == SS_HASH_NONE)
		return false;
	struct lookup *item = &lookups->items.items[index];
	item->used = true;
	ret->symbol = item->symbol;
	ret->start = item->start;
	ret->line = item->line;
	ret->inline_count = item->inline_count;
	if (item->inline_count)
		memcpy(ret->inlines, &lookups->inlines.items[item->first_inline],
		       item->inline_count * sizeof(ret->inlines[0]));
	return true;
}

/* False without memory, or there is such a lookup already. */
static bool insert(struct ss_lookups *lookups, const struct lookup *item)
{
	if (find(lookups, item->address, item->kind) != SS_HASH_NONE ||
	    !ss_hash_reserve(&lookups->table))
		return false;
	struct lookup *slot = ss_vector_push(&lookups->items);
	if (!slot)
		return false;
	*slot = *item;
	ss_hash_insert(&lookups->table, item->address + item->kind,
		       (uint32_t)(lookups->items.count - 1));
	return true;
}

void ss_lookups_add(struct ss_lookups *lookups, uint64_t address, uint8_t kind,
		    const struct ss_name *name)
{
	struct lookup item = {
		.address = address,
		.start = name->start,
		.symbol = name->symbol,
		.line = name->line,
		.first_inline = (uint32_t)lookups->inlines.count,
		.inline_count = (uint8_t)name->inline_count,
		.kind = kind,
		.used = true,
	};

	if (lookups->items.count >= COUNT_MAX || name->inline_count > SS_INLINES_MAX)
		return;
	for (size_t i = 0; i < name->inline_count; i++) {
		struct ss_inline *slot = ss_vector_push(&lookups->inlines);
		if (!slot)
			return; /* it is looked up again */
		*slot = name->inlines[i];
	}
	lookups->changed |= insert(lookups, &item);
}

bool ss_lookups_changed(const struct ss_lookups *lookups)
{
	return lookups->changed;
}

/* Writing --------------------------------------------------------------- */

static void put(struct ss_buffer *out, uint64_t number)
{
	while (number >= 0x80) {
		ss_buffer_add_byte(out, (uint8_t)(number | 0x80));
		number >>= 7;
	}
	ss_buffer_add_byte(out, (uint8_t)number);
}

static void put_fixed(struct ss_buffer *out, uint64_t number)
{
	for (size_t i = 0; i < sizeof(number); i++)
		ss_buffer_add_byte(out, (uint8_t)(number >> 8 * i));
}

static void put_sources(struct ss_buffer *out, const struct ss_lookup_sources *sources)
{
	put(out, sources->build_id_size);
	ss_buffer_add(out, sources->build_id, sources->build_id_size);
	for (size_t i = 0; i < SS_ARRAY_SIZE(sources->files); i++) {
		const struct ss_lookup_file *file = &sources->files[i];
		put_fixed(out, file->device);
		put_fixed(out, file->inode);
		put_fixed(out, file->size);
		put_fixed(out, file->modified_ns);
		put_fixed(out, file->changed_ns);
	}
}

/* The number of a string; 0: NULL. Sets out->failed without memory. */
static uint64_t number_of(struct ss_idtable *strings, const char *text,
			  struct ss_buffer *out)
{
	if (!text)
		return 0;
	uint32_t id = ss_idtable_add(strings, text, strlen(text) + 1, NULL);
	out->failed |= id == SS_ID_NONE;
	return (uint64_t)id + 1;
}

static void put_line(struct ss_buffer *out, struct ss_idtable *strings,
		     const struct ss_location *line)
{
	put(out, number_of(strings, line->file, out));
	put(out, line->line);
	put(out, line->column);
}

static void put_lookup(struct ss_buffer *out, struct ss_idtable *strings,
		       const struct ss_lookups *lookups, const struct lookup *item)
{
	put(out, item->kind);
	put(out, item->address);
	put(out, item->start);
	put(out, number_of(strings, item->symbol, out));
	put_line(out, strings, &item->line);
	put(out, item->inline_count);
	for (size_t i = 0; i < item->inline_count; i++) {
		const struct ss_inline *call =
			&lookups->inlines.items[item->first_inline + i];
		put(out, number_of(strings, call->name, out));
		put_line(out, strings, &call->call);
	}
}

static void put_strings(struct ss_buffer *out, const struct ss_idtable *strings)
{
	put(out, strings->count);
	for (uint32_t i = 0; i < strings->count; i++) {
		size_t size = 0;
		const void *text = ss_idtable_key(strings, i, &size);
		put(out, size - 1);
		ss_buffer_add(out, text, size);
	}
}

static void set_header(uint8_t *header, const void *rest, uint64_t size)
{
	uint64_t hash = XXH3_64bits(rest, size);

	memcpy(header, magic, sizeof(magic));
	for (size_t i = 0; i < sizeof(size); i++) {
		header[SIZE_AT + i] = (uint8_t)(size >> 8 * i);
		header[HASH_AT + i] = (uint8_t)(hash >> 8 * i);
	}
}

static bool write_some(const struct ss_lookups *lookups, bool used_only,
		       const struct ss_lookup_sources *sources, struct ss_buffer *ret)
{
	_cleanup_buffer_ struct ss_buffer items = {};
	_cleanup_buffer_ struct ss_buffer rest = {};
	__attribute__((cleanup(ss_idtable_deinit))) struct ss_idtable strings = {};
	uint8_t header[HEADER_SIZE];
	size_t count = 0;

	for (size_t i = 0; i < lookups->items.count; i++) {
		const struct lookup *item = &lookups->items.items[i];
		if ((used_only || item->kind == SS_LOOKUP_NOTE) && !item->used)
			continue;
		put_lookup(&items, &strings, lookups, item);
		count++;
	}
	put_sources(&rest, sources);
	put_strings(&rest, &strings);
	put(&rest, count);
	ss_buffer_add(&rest, items.bytes, items.size);
	if (items.failed || rest.failed || HEADER_SIZE + rest.size > SS_LOOKUPS_SIZE_MAX)
		return false;
	set_header(header, rest.bytes, rest.size);
	ss_buffer_add(ret, header, sizeof(header));
	ss_buffer_add(ret, rest.bytes, rest.size);
	return !ret->failed;
}

bool ss_lookups_write(const struct ss_lookups *lookups,
		      const struct ss_lookup_sources *sources, struct ss_buffer *ret)
{
	return write_some(lookups, false, sources, ret) ||
	       write_some(lookups, true, sources, ret);
}

/* Reading --------------------------------------------------------------- */

static bool is_intact(const uint8_t *bytes, size_t size)
{
	uint8_t header[HEADER_SIZE];

	if (size < HEADER_SIZE || size > SS_LOOKUPS_SIZE_MAX)
		return false;
	set_header(header, bytes + HEADER_SIZE, size - HEADER_SIZE);
	return memcmp(bytes, header, HEADER_SIZE) == 0;
}

static bool take_sources(struct ss_cursor *cursor,
			 const struct ss_lookup_sources *sources)
{
	_cleanup_buffer_ struct ss_buffer expected = {};

	put_sources(&expected, sources);
	if (expected.failed)
		return false;
	const uint8_t *found = ss_cursor_take(cursor, expected.size);
	return found && memcmp(found, expected.bytes, expected.size) == 0;
}

struct strings {
	const char **items;
	size_t count;
};

static bool take_strings(struct ss_cursor *cursor, struct strings *ret)
{
	size_t count = ss_cursor_index(
		cursor, SS_MIN(ss_cursor_left(cursor), (size_t)COUNT_MAX) + 1);

	ret->items = calloc(count + 1, sizeof(*ret->items));
	if (!ret->items || cursor->failed)
		return false;
	for (; ret->count < count; ret->count++) {
		size_t size = ss_cursor_index(cursor, SS_LOOKUPS_SIZE_MAX);
		const uint8_t *text = ss_cursor_take(cursor, size + 1);
		if (!text || memchr(text, '\0', size + 1) != text + size)
			return false;
		ret->items[ret->count] = (const char *)text;
	}
	return true;
}

static const char *take_string(struct ss_cursor *cursor, const struct strings *strings)
{
	uint32_t number = ss_cursor_index(cursor, strings->count + 1);

	return number ? strings->items[number - 1] : NULL;
}

static struct ss_location take_line(struct ss_cursor *cursor,
				    const struct strings *strings)
{
	struct ss_location line = { .file = take_string(cursor, strings) };

	line.line = ss_cursor_index(cursor, UINT32_MAX);
	line.column = ss_cursor_index(cursor, UINT32_MAX);
	return line;
}

static bool take_lookup(struct ss_lookups *lookups, struct ss_cursor *cursor,
			const struct strings *strings)
{
	struct lookup item = { .first_inline = (uint32_t)lookups->inlines.count };

	item.kind = (uint8_t)ss_cursor_index(cursor, UINT8_MAX + 1);
	item.address = ss_cursor_uleb128(cursor);
	item.start = ss_cursor_uleb128(cursor);
	item.symbol = take_string(cursor, strings);
	item.line = take_line(cursor, strings);
	item.inline_count = (uint8_t)ss_cursor_index(cursor, SS_INLINES_MAX + 1);
	for (size_t i = 0; i < item.inline_count && !cursor->failed; i++) {
		struct ss_inline *call = ss_vector_push(&lookups->inlines);
		if (!call)
			return false;
		call->name = take_string(cursor, strings);
		call->call = take_line(cursor, strings);
	}
	return !cursor->failed && insert(lookups, &item);
}

static bool take_all(struct ss_lookups *lookups, struct ss_cursor *cursor,
		     const struct ss_lookup_sources *sources)
{
	struct strings strings = {};
	bool whole = take_sources(cursor, sources) && take_strings(cursor, &strings);

	uint32_t count = ss_cursor_index(cursor, COUNT_MAX);
	for (uint32_t i = 0; whole && i < count; i++)
		whole = take_lookup(lookups, cursor, &strings);
	free(strings.items);
	return whole && !cursor->failed && ss_cursor_left(cursor) == 0;
}

bool ss_lookups_read(struct ss_lookups *lookups, const void *bytes, size_t size,
		     const struct ss_lookup_sources *sources)
{
	if (!is_intact(bytes, size) || lookups->items.count)
		return false;
	lookups->bytes = malloc(size);
	if (!lookups->bytes)
		return false;
	memcpy(lookups->bytes, bytes, size);
	const uint8_t *copy = (const uint8_t *)lookups->bytes;
	struct ss_cursor cursor = { .at = copy + HEADER_SIZE, .end = copy + size };
	if (take_all(lookups, &cursor, sources))
		return true;
	clear(lookups);
	return false;
}
