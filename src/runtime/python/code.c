#include "runtime/python/python.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	KEPT_MAX = 1 << 13,
	BYTES_MAX = 32 << 20,
	PART_MAX = 64 << 10,
	PARTS_EACH = 12, /* of a code object */
	DUE_MAX = 4096,	 /* parts that are compared for a capture */
	/* struct PyObject, PyTypeObject, PyBytesObject, PyASCIIObject: reference counts, which come
	   first, change all the time */
	OBJECT_TYPE = 8,
	TYPE_NAME = 24,
	TYPE_NAME_SIZE =
		5, /* with those that are compared before, "code", "str" and "bytes" */
	BYTES_DATA = 32,
	STRING_LENGTH = 16,
	STRING_STATE = 32,
	STRING_HEAD = 40,
};

/* Memory that a code object was read from. Several may share it. */
struct part {
	uint64_t address;
	uint8_t *bytes; /* owned; NULL: the identity of a code object */
	uint32_t size;
	uint32_t code;	     /* of an identity; these are in no table */
	uint64_t generation; /* in which it was compared last */
	bool same;
};

struct kept_code {
	struct ss_python_code code; /* its strings and table are owned */
	char *name;
	char *file;
	uint32_t parts[PARTS_EACH]; /* the first one is the identity */
	uint32_t part_count;
	uint64_t generation;
};

struct ss_python_kept {
	struct ss_python_layout layout;
	SS_VECTOR(struct kept_code) codes;
	struct ss_hash by_address;
	SS_VECTOR(struct part) parts;
	struct ss_hash by_range;
	size_t bytes;
	uint64_t generation;
	SS_VECTOR(uint32_t) due; /* parts to be compared */
	uint8_t *scratch;	 /* SS_MEMORY_RANGES_BYTES */
};

static void clear(struct ss_python_kept *kept)
{
	for (size_t i = 0; i < kept->codes.count; i++) {
		free(kept->codes.items[i].name);
		free(kept->codes.items[i].file);
		free(kept->codes.items[i].code.table);
	}
	for (size_t i = 0; i < kept->parts.count; i++)
		free(kept->parts.items[i].bytes);
	ss_vector_free(&kept->codes);
	ss_vector_free(&kept->parts);
	ss_vector_free(&kept->due);
	ss_hash_deinit(&kept->by_address);
	ss_hash_deinit(&kept->by_range);
	kept->by_address = kept->by_range = (struct ss_hash){};
	kept->bytes = 0;
}

static void free_kept(void *data)
{
	struct ss_python_kept *kept = data;

	clear(kept);
	free(kept->scratch);
	free(kept);
}

/* Code objects ------------------------------------------------------------- */

struct kept_query {
	const struct ss_python_kept *kept;
	uint64_t address;
	uint32_t size;
	const uint8_t *bytes;
};

static bool is_kept(const void *context, uint32_t index)
{
	const struct kept_query *query = context;

	return query->kept->codes.items[index].code.address == query->address;
}

static bool is_part(const void *context, uint32_t index)
{
	const struct kept_query *query = context;
	const struct part *part = &query->kept->parts.items[index];

	return part->address == query->address && part->size == query->size &&
	       memcmp(part->bytes, query->bytes, query->size) == 0;
}

static uint32_t find_code(const struct ss_python_kept *kept, uint64_t address)
{
	const struct kept_query query = { .kept = kept, .address = address };

	return ss_hash_find(&kept->by_address, address, is_kept, &query);
}

const struct ss_python_code *ss_python_kept_find(const struct ss_python_kept *kept,
						 uint64_t address)
{
	uint32_t index = find_code(kept, address);

	if (index == SS_HASH_NONE)
		return NULL;
	const struct kept_code *code = &kept->codes.items[index];
	if (code->generation != kept->generation)
		return NULL;
	for (uint32_t i = 0; i < code->part_count; i++) {
		const struct part *part = &kept->parts.items[code->parts[i]];
		if (part->generation != kept->generation || !part->same)
			return NULL;
	}
	return &code->code;
}

/* Comparing ---------------------------------------------------------------- */

/* The same of its bytes, layout->code_size of them. */
static bool python_identity_parse(const struct ss_python_layout *layout,
				  const uint8_t *bytes, struct ss_python_identity *ret)
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

static bool is_same(const struct ss_python_kept *kept, const struct part *part,
		    const uint8_t *bytes)
{
	struct ss_python_identity identity;

	if (part->bytes)
		return memcmp(part->bytes, bytes, part->size) == 0;
	return python_identity_parse(&kept->layout, bytes, &identity) &&
	       ss_python_identity_equal(&identity,
					&kept->codes.items[part->code].code.identity);
}

/* Compares some of the parts that are due, from an index on. Returns the index behind them. */
static size_t compare_some(struct ss_python_kept *kept,
			   const struct ss_runtime_process *process, size_t from)
{
	struct ss_memory_range ranges[SS_MEMORY_RANGES_MAX];
	size_t count = 0;
	size_t used = 0;

	for (size_t i = from; i < kept->due.count && count < SS_MEMORY_RANGES_MAX; i++) {
		const struct part *part = &kept->parts.items[kept->due.items[i]];
		if (used + part->size > SS_MEMORY_RANGES_BYTES)
			break;
		ranges[count++] = (struct ss_memory_range){
			.address = part->address,
			.bytes = kept->scratch + used,
			.size = part->size,
		};
		used += part->size;
	}
	process->read_ranges(process->read_data, ranges, count);
	for (size_t i = 0; i < count; i++) {
		struct part *part = &kept->parts.items[kept->due.items[from + i]];
		part->same = ranges[i].done == part->size &&
			     is_same(kept, part, ranges[i].bytes);
	}
	return from + count;
}

/* A part is compared once. False without memory. */
static bool add_due(struct ss_python_kept *kept, uint32_t index)
{
	struct part *part = &kept->parts.items[index];

	if (part->generation == kept->generation)
		return true;
	uint32_t *slot = ss_vector_push(&kept->due);
	if (!slot)
		return false;
	part->generation = kept->generation;
	part->same = false;
	*slot = index;
	return true;
}

/* Adds what belongs to a code object, but its identity. codes: how many there are so far, for
   each of which an identity follows; one that exceeds the limit is not compared at all. */
static bool add_parts(struct ss_python_kept *kept, uint64_t address, size_t *codes)
{
	uint32_t index = find_code(kept, address);
	bool ok = true;

	if (index == SS_HASH_NONE)
		return true;
	struct kept_code *code = &kept->codes.items[index];
	if (code->generation == kept->generation ||
	    kept->due.count + *codes + code->part_count > DUE_MAX)
		return true;
	code->generation = kept->generation;
	++*codes;
	for (uint32_t i = 1; i < code->part_count && ok; i++)
		ok = add_due(kept, code->parts[i]);
	return ok;
}

static bool add_identity_due(struct ss_python_kept *kept, uint64_t address)
{
	uint32_t index = find_code(kept, address);

	return index == SS_HASH_NONE ||
	       kept->codes.items[index].generation != kept->generation ||
	       add_due(kept, kept->codes.items[index].parts[0]);
}

static void compare(struct ss_python_kept *kept, const struct ss_runtime_process *process)
{
	const struct ss_capture *capture = process->capture;
	size_t codes = 0;
	bool ok = true;

	kept->generation++;
	kept->due.count = 0;
	for (int identities = 0; identities <= 1; identities++) {
		for (size_t t = 0; t < capture->turns.count; t++) {
			const struct ss_gathered *turn = &capture->turns.items[t];
			for (size_t i = 0; i < turn->blocks.count && ok; i++)
				ok = identities ? add_identity_due(
							  kept,
							  turn->blocks.items[i].address) :
						  add_parts(kept,
							    turn->blocks.items[i].address,
							    &codes);
		}
	}
	/* What is not compared is not the same. */
	for (size_t i = 0; ok && i < kept->due.count;)
		i = compare_some(kept, process, i);
}

/* Of what is read here. */
static bool is_same_layout(const struct ss_python_layout *a,
			   const struct ss_python_layout *b)
{
	return a->minor == b->minor && a->lines == b->lines &&
	       a->code_first_line == b->code_first_line &&
	       a->code_filename == b->code_filename && a->code_name == b->code_name &&
	       a->code_qualname == b->code_qualname && a->code_lines == b->code_lines &&
	       a->code_size == b->code_size && a->ascii == b->ascii &&
	       a->compact == b->compact;
}

struct ss_python_kept *ss_python_kept_begin(const struct ss_runtime_process *process,
					    const struct ss_python_layout *layout)
{
	struct ss_session_slot *slot = process->python_codes;

	if (!slot->data)
		*slot = (struct ss_session_slot){
			.data = calloc(1, sizeof(struct ss_python_kept)),
			.free = free_kept,
		};
	struct ss_python_kept *kept = slot->data;
	if (!kept)
		return NULL;
	if (!kept->scratch)
		kept->scratch = malloc(SS_MEMORY_RANGES_BYTES);
	if (!kept->scratch)
		return NULL;
	/* Of another version; or there are very many */
	if (!is_same_layout(&kept->layout, layout) || kept->codes.count >= KEPT_MAX ||
	    kept->bytes >= BYTES_MAX) {
		clear(kept);
		memcpy(&kept->layout, layout, sizeof(*layout));
	}
	compare(kept, process);
	return kept;
}

/* Adding ------------------------------------------------------------------- */

/* The part for a range of memory with the bytes that it has; SS_HASH_NONE: it is too large, cannot be read, or there is no
   memory. */
static uint32_t find_part(struct ss_python_kept *kept, const struct ss_memory *memory,
			  uint64_t address, uint64_t size)
{
	_cleanup_free_ uint8_t *bytes = size && size <= PART_MAX ? malloc(size) : NULL;
	const struct kept_query query = { kept, address, (uint32_t)size, bytes };

	if (!bytes || !ss_memory_read(memory, address, bytes, size))
		return SS_HASH_NONE;
	uint32_t index = ss_hash_find(&kept->by_range, address, is_part, &query);
	if (index == SS_HASH_NONE) {
		struct part *part = ss_hash_reserve(&kept->by_range) ?
					    ss_vector_push(&kept->parts) :
					    NULL;
		if (!part)
			return SS_HASH_NONE;
		*part = (struct part){ .address = address,
				       .bytes = take_ptr(bytes),
				       .size = (uint32_t)size };
		kept->bytes += size;
		index = (uint32_t)kept->parts.count - 1;
		ss_hash_insert(&kept->by_range, address, index);
	}
	return index;
}

static bool add_part(struct ss_python_kept *kept, const struct ss_memory *memory,
		     uint64_t address, uint64_t size, struct kept_code *code)
{
	uint32_t index = find_part(kept, memory, address, size);

	if (index == SS_HASH_NONE || code->part_count >= PARTS_EACH)
		return false;
	code->parts[code->part_count++] = index;
	return true;
}

/* The type of an object, by its name. */
static bool add_type(struct ss_python_kept *kept, const struct ss_memory *memory,
		     uint64_t object, struct kept_code *code)
{
	uint64_t type = 0;
	uint64_t name = 0;

	return ss_memory_read_u64(memory, object + OBJECT_TYPE, &type) &&
	       ss_memory_read_u64(memory, type + TYPE_NAME, &name) &&
	       add_part(kept, memory, type + TYPE_NAME, sizeof(name), code) &&
	       add_part(kept, memory, name, TYPE_NAME_SIZE, code);
}

static bool add_string(struct ss_python_kept *kept, const struct ss_memory *memory,
		       uint64_t address, struct kept_code *code)
{
	uint8_t head[STRING_HEAD];
	uint32_t state;

	if (!ss_memory_read(memory, address, head, sizeof(head)))
		return false;
	memcpy(&state, head + STRING_STATE, sizeof(state));
	const uint64_t length = ss_load_u64(head, STRING_LENGTH);
	const unsigned kind = state >> 2 & 7;
	const bool ascii = state >> 6 & 1;
	const uint64_t start = ascii ? kept->layout.ascii : kept->layout.compact;
	return length <= SS_PYTHON_NAME_MAX &&
	       add_part(kept, memory, address + OBJECT_TYPE,
			start + length * kind - OBJECT_TYPE, code);
}

/* Its identity is a part without bytes. */
static bool add_identity(struct ss_python_kept *kept, uint32_t index,
			 struct kept_code *code)
{
	struct part *part = ss_vector_push(&kept->parts);

	if (!part)
		return false;
	*part = (struct part){ .address = code->code.address,
			       .size = kept->layout.code_size,
			       .code = index };
	code->parts[0] = (uint32_t)kept->parts.count - 1;
	return true;
}

static void free_code(struct kept_code *code)
{
	free(code->name);
	free(code->file);
	free(code->code.table);
}

/* Fills everything. */
static bool fill(struct ss_python_kept *kept, const struct ss_memory *memory,
		 const struct ss_python_code *from, uint32_t index,
		 struct kept_code *code)
{
	const struct ss_python_identity *identity = &from->identity;

	*code = (struct kept_code){ .part_count = 1, /* the identity */
				    .code = *from,
				    .name = strdup(from->name),
				    .file = strdup(from->file) };
	code->code.table = malloc(from->table_size + 1);
	if (!code->name || !code->file || !code->code.table)
		return false;
	code->code.name = code->name;
	code->code.file = code->file;
	memcpy(code->code.table, from->table, from->table_size);
	return add_type(kept, memory, from->address, code) &&
	       add_type(kept, memory, identity->filename, code) &&
	       add_type(kept, memory, identity->lines, code) &&
	       add_string(kept, memory, identity->filename, code) &&
	       add_string(kept, memory,
			  identity->qualname ? identity->qualname : identity->name,
			  code) &&
	       add_part(kept, memory, identity->lines + OBJECT_TYPE,
			BYTES_DATA - OBJECT_TYPE + from->table_size, code) &&
	       /* The last one: nothing finds it again if the code object is not kept. */
	       add_identity(kept, index, code);
}

/* Keeps a code object that was read from memory, unless it is large. */
static void python_kept_add(struct ss_python_kept *kept, const struct ss_memory *memory,
			    const struct ss_python_code *code)
{
	uint32_t index = find_code(kept, code->address);
	struct kept_code added;
	bool is_new = index == SS_HASH_NONE;

	if (kept->codes.count >= KEPT_MAX || kept->bytes >= BYTES_MAX)
		return;
	/* It was not compared: the plan has not copied it. */
	if (!is_new && kept->codes.items[index].generation != kept->generation &&
	    ss_python_identity_equal(&kept->codes.items[index].code.identity,
				     &code->identity))
		return;
	if (is_new)
		index = (uint32_t)kept->codes.count;
	if (!fill(kept, memory, code, index, &added) ||
	    (is_new &&
	     (!ss_hash_reserve(&kept->by_address) || !ss_vector_push(&kept->codes)))) {
		free_code(&added);
		return;
	}
	/* The next capture compares it. */
	if (is_new)
		ss_hash_insert(&kept->by_address, code->address, index);
	else
		free_code(&kept->codes.items[index]);
	kept->bytes += code->table_size + sizeof(added);
	kept->codes.items[index] = added;
}

/* Objects of all versions with a GIL: PyObject, PyVarObject, PyTypeObject, PyBytesObject, the
   start of PyASCIIObject. */
enum {
	BYTES_SIZE = 16,
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

static bool read_string(const struct ss_python_layout *layout,
			const struct ss_memory *memory, uint64_t address, size_t max,
			bool cut, char *ret)
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
	    (length > max && !cut))
		return false;
	length = SS_MIN(length, (uint64_t)max);
	address += ascii ? layout->ascii : layout->compact;
	return ss_memory_read(memory, address, bytes, length * kind) &&
	       convert(bytes, length, kind, ret);
}

bool ss_python_string(const struct ss_python_layout *layout,
		      const struct ss_memory *memory, uint64_t address, char *ret)
{
	return read_string(layout, memory, address, SS_PYTHON_NAME_MAX, false, ret);
}

bool ss_python_string_start(const struct ss_python_layout *layout,
			    const struct ss_memory *memory, uint64_t address, size_t max,
			    char *ret)
{
	return read_string(layout, memory, address, max, true, ret);
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
	ss_idtable_deinit(&codes->ids);
}

bool ss_python_identity_read(const struct ss_python_layout *layout,
			     const struct ss_memory *memory, uint64_t address,
			     struct ss_python_identity *ret)
{
	uint8_t bytes[SS_PYTHON_HEADER_MAX];

	return address && address % 8 == 0 && layout->code_size <= sizeof(bytes) &&
	       ss_memory_read(memory, address, bytes, layout->code_size) &&
	       python_identity_parse(layout, bytes, ret);
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

bool ss_python_codes_find(struct ss_python_codes *codes, uint64_t address,
			  const struct ss_python_code **ret)
{
	uint32_t index = ss_idtable_find(&codes->ids, &address, sizeof(address));

	*ret = NULL;
	if (index == SS_ID_NONE) {
		if (codes->items.count >= CODES_MAX)
			return true;
		if (!ss_vector_reserve(&codes->items, codes->items.count + 1) ||
		    (index = ss_idtable_add(&codes->ids, &address, sizeof(address),
					    NULL)) == SS_ID_NONE)
			return false;
		struct ss_python_code *added = &codes->items.items[codes->items.count++];
		*added = (struct ss_python_code){ .address = address };
		if (!take_kept(codes, added) ||
		    (!added->valid && !read_code(codes, added)))
			return false;
		if (codes->kept && added->valid && !added->kept)
			python_kept_add(codes->kept, codes->memory, added);
	}
	if (codes->items.items[index].valid)
		*ret = &codes->items.items[index];
	return true;
}
