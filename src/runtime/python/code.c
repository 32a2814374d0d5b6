#include "runtime/python/code.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/load.h"
#include "base/utf8.h"
#include "runtime/python/kept.h"

/* Objects of all versions with a GIL: PyObject, PyVarObject, PyTypeObject, PyBytesObject, the
   start of PyASCIIObject. */
enum {
	OBJECT_TYPE = 8,
	TYPE_NAME = 24,
	BYTES_SIZE = 16,
	BYTES_DATA = 32,
	STRING_LENGTH = 16,
	STRING_STATE = 32,
	STRING_HEAD = 40,
	TYPE_NAME_MAX = 64,
	CODES_MAX = 1 << 18,
};

static bool type_is(const struct ss_memory *memory, uint64_t type, const char *name)
{
	char text[TYPE_NAME_MAX];
	uint64_t address;

	return type % 8 == 0 && ss_memory_read_u64(memory, type + TYPE_NAME, &address) &&
	       ss_memory_read_string(memory, address, text, sizeof(text)) &&
	       strcmp(text, name) == 0;
}

bool ss_python_has_type(const struct ss_memory *memory, uint64_t address,
			const char *name)
{
	uint64_t type;

	return address && address % 8 == 0 &&
	       ss_memory_read_u64(memory, address + OBJECT_TYPE, &type) &&
	       type_is(memory, type, name);
}

/* Strings ------------------------------------------------------------------ */

/* False: a character that no string has, or a NUL, which no name has. */
static bool convert(const uint8_t *bytes, size_t length, unsigned kind, char *ret)
{
	for (size_t i = 0; i < length; i++) {
		uint32_t c = 0;
		memcpy(&c, bytes + i * kind, kind); /* little-endian, as the process */
		if (c == 0 || c > 0x10ffff)
			return false;
		ret = ss_utf8_encode(c, ret);
	}
	*ret = '\0';
	return true;
}

bool ss_python_string(const struct ss_python_layout *layout,
		      const struct ss_memory *memory, uint64_t address, char *ret)
{
	uint8_t head[STRING_HEAD];
	uint8_t bytes[4 * SS_PYTHON_NAME_MAX];
	uint32_t state;

	if (!ss_python_has_type(memory, address, "str") ||
	    !ss_memory_read(memory, address, head, sizeof(head)))
		return false;
	uint64_t length = ss_load_u64(head, STRING_LENGTH);
	memcpy(&state, head + STRING_STATE, sizeof(state));
	/* interned:2, kind:3, compact:1, ascii:1; up to 3.11 also ready:1 */
	unsigned kind = state >> 2 & 7;
	bool compact = state >> 5 & 1;
	bool ascii = state >> 6 & 1;
	if (!compact || (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1) ||
	    length > SS_PYTHON_NAME_MAX)
		return false;
	address += ascii ? layout->ascii : layout->compact;
	return ss_memory_read(memory, address, bytes, length * kind) &&
	       convert(bytes, length, kind, ret);
}

/* Line tables -------------------------------------------------------------- */

struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

static uint8_t take_byte(struct cursor *cursor)
{
	if (cursor->at == cursor->end) {
		cursor->failed = true;
		return 0;
	}
	return *cursor->at++;
}

static int64_t take_varint(struct cursor *cursor)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = take_byte(cursor);
		if (shift > 30)
			cursor->failed = true;
		else
			value |= (uint64_t)(byte & 0x3f) << shift;
		shift += 6;
	} while ((byte & 0x40) && !cursor->failed);
	return (int64_t)value;
}

static int64_t take_signed(struct cursor *cursor)
{
	int64_t value = take_varint(cursor);

	return value & 1 ? -(value >> 1) : value >> 1;
}

/* What a line table says: the line of an instruction, or none. */
struct line {
	int64_t number;
	bool none;
};

/* Objects/lnotab_notes.txt: pairs of a byte increment and a signed line increment. */
static bool find_in_lnotab(struct cursor *cursor, int64_t offset, struct line *line)
{
	int64_t address = 0;

	while (cursor->at + 1 < cursor->end) {
		address += take_byte(cursor);
		int8_t delta = (int8_t)take_byte(cursor);
		if (address > offset)
			break;
		line->number += delta;
	}
	return true;
}

/* PEP 626: pairs of the size of a range and a signed line increment; -128: no line. */
static bool find_in_pairs(struct cursor *cursor, int64_t offset, struct line *line)
{
	int64_t end = 0;

	while (cursor->at + 1 < cursor->end) {
		end += take_byte(cursor);
		int8_t delta = (int8_t)take_byte(cursor);
		line->none = delta == INT8_MIN;
		if (!line->none)
			line->number += delta;
		if (end > offset)
			return true;
	}
	return false;
}

enum {
	LOCATION_SHORT_MAX = 9,
	LOCATION_ONE_LINE_MAX = 12,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Objects/locations.md */
static bool find_in_locations(struct cursor *cursor, int64_t offset, struct line *line)
{
	int64_t end = 0;

	while (cursor->at < cursor->end && !cursor->failed) {
		uint8_t first = take_byte(cursor);
		unsigned kind = first >> 3 & 15;
		if (!(first & 0x80))
			return false;
		end += ((first & 7) + 1) * 2;
		line->none = kind == LOCATION_NONE;
		if (kind <= LOCATION_SHORT_MAX) {
			(void)take_byte(cursor);
		} else if (kind <= LOCATION_ONE_LINE_MAX) {
			line->number += kind - (LOCATION_SHORT_MAX + 1);
			(void)take_byte(cursor);
			(void)take_byte(cursor);
		} else if (kind != LOCATION_NONE) {
			line->number += take_signed(cursor);
		}
		for (int i = 0; kind == LOCATION_LONG && i < 3; i++)
			(void)take_varint(cursor);
		if (end > offset)
			return !cursor->failed;
	}
	return false;
}

bool ss_python_line(enum ss_python_lines encoding, const uint8_t *table, size_t size,
		    uint32_t first_line, int64_t offset, uint32_t *ret)
{
	struct cursor cursor = { .at = table, .end = table + size };
	struct line line = { .number = first_line };
	bool found = true;

	/* A function that has not begun yet */
	if (offset >= 0 && encoding == SS_PYTHON_LNOTAB)
		found = find_in_lnotab(&cursor, offset, &line);
	else if (offset >= 0 && encoding == SS_PYTHON_LINE_PAIRS)
		found = find_in_pairs(&cursor, offset, &line);
	else if (offset >= 0)
		found = find_in_locations(&cursor, offset, &line);
	if (!found || line.number < 0 || line.number > INT32_MAX)
		return false;
	*ret = line.none ? 0 : (uint32_t)line.number;
	return true;
}

uint64_t ss_python_frame_code(const struct ss_python_layout *layout, const uint8_t *frame)
{
	const uint64_t code = ss_load_u64(frame, layout->frame_code);

	return layout->frame_code_mask ? code & layout->frame_code_mask : code;
}

bool ss_python_offset(const struct ss_python_layout *layout, const uint8_t *frame,
		      uint64_t code, int64_t *ret)
{
	int32_t index;

	if (layout->frames == SS_PYTHON_COUNT) {
		memcpy(&index, frame + layout->frame_instruction, sizeof(index));
		*ret = layout->lines == SS_PYTHON_LNOTAB ? index : (int64_t)index * 2;
		return index >= -1;
	}
	*ret = (int64_t)(ss_load_u64(frame, layout->frame_instruction) -
			 (code + layout->code_bytes));
	return *ret >= -2 && *ret % 2 == 0;
}

/* Code objects ------------------------------------------------------------- */

void ss_python_codes_deinit(struct ss_python_codes *codes)
{
	for (size_t i = 0; i < codes->items.count; i++)
		if (!codes->items.items[i].kept)
			free(codes->items.items[i].table);
	ss_vector_free(&codes->items);
	ss_hash_deinit(&codes->table);
}

bool ss_python_identity_read(const struct ss_python_layout *layout,
			     const struct ss_memory *memory, uint64_t address,
			     struct ss_python_identity *ret)
{
	uint8_t bytes[SS_PYTHON_HEADER_MAX];

	return address && address % 8 == 0 && layout->code_size <= sizeof(bytes) &&
	       ss_memory_read(memory, address, bytes, layout->code_size) &&
	       ss_python_identity_parse(layout, bytes, ret);
}

bool ss_python_identity_parse(const struct ss_python_layout *layout, const uint8_t *bytes,
			      struct ss_python_identity *ret)
{
	int32_t first_line;

	memcpy(&first_line, bytes + layout->code_first_line, sizeof(first_line));
	*ret = (struct ss_python_identity){
		.type = ss_load_u64(bytes, OBJECT_TYPE),
		.filename = ss_load_u64(bytes, layout->code_filename),
		.name = ss_load_u64(bytes, layout->code_name),
		.qualname = layout->code_qualname ?
				    ss_load_u64(bytes, layout->code_qualname) :
				    0,
		.lines = ss_load_u64(bytes, layout->code_lines),
		.first_line = first_line < 0 ? 0 : (uint32_t)first_line,
	};
	/* A freed object has no references. */
	return (int32_t)ss_load_u64(bytes, 0) != 0;
}

bool ss_python_identity_equal(const struct ss_python_identity *a,
			      const struct ss_python_identity *b)
{
	return a->type == b->type && a->filename == b->filename && a->name == b->name &&
	       a->qualname == b->qualname && a->lines == b->lines &&
	       a->first_line == b->first_line;
}

static bool is_unchanged(const struct ss_python_codes *codes,
			 const struct ss_python_code *code)
{
	struct ss_python_identity now;

	return ss_python_identity_read(codes->layout, codes->fresh, code->address,
				       &now) &&
	       ss_python_identity_equal(&now, &code->identity);
}

static bool read_table(const struct ss_memory *memory, uint64_t address,
		       struct ss_python_code *code)
{
	uint64_t size;

	if (!ss_python_has_type(memory, address, "bytes") ||
	    !ss_memory_read_u64(memory, address + BYTES_SIZE, &size) ||
	    size > SS_PYTHON_LINES_MAX)
		return false;
	code->table = malloc(size + 1);
	code->table_size = size;
	return code->table &&
	       ss_memory_read(memory, address + BYTES_DATA, code->table, size);
}

/* Takes a code object that was read for an earlier capture, and has been found to be the same.
   False without memory. */
static bool take_kept(const struct ss_python_codes *codes, struct ss_python_code *code)
{
	const struct ss_python_code *kept =
		codes->kept ? ss_python_kept_find(codes->kept, code->address) : NULL;

	if (!kept)
		return true;
	*code = *kept;
	code->kept = true;
	code->name = ss_intern_string(codes->strings, kept->name);
	code->file = ss_intern_string(codes->strings, kept->file);
	return code->name && code->file;
}

/* False without memory; code->valid says whether it is a code object. */
static bool read_code(const struct ss_python_codes *codes, struct ss_python_code *code)
{
	const struct ss_python_layout *layout = codes->layout;
	const struct ss_memory *memory = codes->memory;
	struct ss_python_identity *identity = &code->identity;
	char text[4 * SS_PYTHON_NAME_MAX + 1];

	if (!ss_python_identity_read(layout, memory, code->address, identity) ||
	    !type_is(memory, identity->type, "code"))
		return true;
	uint64_t name = layout->code_qualname ? identity->qualname : identity->name;
	if (!ss_python_string(layout, memory, name, text))
		return true;
	code->name = ss_intern_string(codes->strings, text);
	if (!code->name || !ss_python_string(layout, memory, identity->filename, text))
		return code->name != NULL;
	code->file = ss_intern_string(codes->strings, text);
	code->valid = read_table(memory, identity->lines, code) &&
		      is_unchanged(codes, code);
	return code->file && (code->table || !code->valid);
}

struct query {
	const struct ss_python_codes *codes;
	uint64_t address;
};

static bool is_code(const void *context, uint32_t index)
{
	const struct query *query = context;

	return query->codes->items.items[index].address == query->address;
}

bool ss_python_codes_find(struct ss_python_codes *codes, uint64_t address,
			  const struct ss_python_code **ret)
{
	const struct query query = { codes, address };
	uint32_t index = ss_hash_find(&codes->table, address, is_code, &query);

	*ret = NULL;
	if (index == SS_HASH_NONE) {
		struct ss_python_code *added = NULL;
		if (codes->items.count >= CODES_MAX)
			return true;
		if (!ss_hash_reserve(&codes->table) ||
		    !(added = ss_vector_push(&codes->items)))
			return false;
		added->address = address;
		index = (uint32_t)codes->items.count - 1;
		ss_hash_insert(&codes->table, address, index);
		if (!take_kept(codes, added) ||
		    (!added->valid && !read_code(codes, added)))
			return false;
		if (codes->kept && added->valid && !added->kept)
			ss_python_kept_add(codes->kept, codes->memory, added);
	}
	if (codes->items.items[index].valid)
		*ret = &codes->items.items[index];
	return true;
}
