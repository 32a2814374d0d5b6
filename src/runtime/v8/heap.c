#include "runtime/v8/v8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	FUNCTIONS_MAX = 1 << 18,
	SCRIPTS_MAX = 1 << 16,
	STRING_DEPTH = 32, /* strings that refer to others */
	SOURCE_CHUNK = 1 << 15,
	/* StringRepresentationTag, StringEncoding: v8dbg_...Tag */
	STRING_SEQUENTIAL = 0,
	STRING_CONS = 1,
	STRING_EXTERNAL = 2,
	STRING_SLICED = 3,
	STRING_THIN = 5,
	STRING_REPRESENTATION = 7,
	STRING_ONE_BYTE = 8,
	/* FixedArrayBase */
	ARRAY_LENGTH = 8,
	ARRAY_DATA = 16,
	/* ScopeInfo: src/objects/scope-info.tq */
	SCOPE_FLAGS = 8,
	SCOPE_LOCALS = 24,
	SCOPE_LOCALS_MAX = 1 << 20,
	SCOPE_HAS_CLASS = 1 << 10,
	SCOPE_FUNCTION_SHIFT = 12,
	SCOPE_FUNCTION_MASK = 3,
	SCOPE_HAS_INFERRED = 1 << 14,
};

void ss_v8_heap_deinit(struct ss_v8_heap *heap)
{
	for (size_t i = 0; i < heap->scripts.count; i++)
		ss_vector_free(&heap->scripts.items[i].ends);
	ss_vector_free(&heap->scripts);
	ss_vector_free(&heap->functions);
	ss_idtable_deinit(&heap->function_ids);
}

bool ss_v8_word(const struct ss_memory *memory, uint64_t object, uint32_t offset,
		uint64_t *ret)
{
	return ss_v8_is_object(object) &&
	       ss_memory_read_u64(memory, object - 1 + offset, ret);
}

uint16_t ss_v8_type(const struct ss_v8_heap *heap, const struct ss_memory *memory,
		    uint64_t object)
{
	uint64_t map;
	uint16_t type;

	/* That of an object that has been moved is no pointer to an object. */
	if (!ss_v8_word(memory, object, 0, &map) || !ss_v8_is_object(map) ||
	    !ss_memory_read(heap->memory, map - 1 + heap->layout->map_type, &type,
			    sizeof(type)))
		return SS_V8_OBJECT_NONE;
	return type;
}

/* Strings ------------------------------------------------------------------ */

static bool read_length(const struct ss_v8_heap *heap, uint64_t object, uint32_t *ret)
{
	return ss_memory_read_u32(heap->memory, object - 1 + heap->layout->string_length,
				  ret) &&
	       *ret <= INT32_MAX;
}

/* A part of a string that remains to be read. */
struct part {
	uint64_t object;
	uint32_t start;
	uint32_t length;
};

/* Follows strings that refer to others. A concatenation whose second part is needed: adds
   that to rest, up to the limit. */
static bool find_characters(const struct ss_v8_heap *heap, struct part part,
			    struct ss_v8_characters *ret, struct part *rest,
			    size_t *rest_count)
{
	const struct ss_v8_layout *layout = heap->layout;

	for (int depth = 0; depth < STRING_DEPTH; depth++) {
		uint16_t type = ss_v8_type(heap, heap->memory, part.object);
		bool one_byte = type & STRING_ONE_BYTE;
		uint64_t other = 0;
		uint64_t offset;
		uint32_t length;
		if (type >= layout->type_first_nonstring ||
		    !read_length(heap, part.object, &length) || part.start > length ||
		    part.length > length - part.start)
			return false;
		*ret = (struct ss_v8_characters){ .length = part.length,
						  .one_byte = one_byte };
		const uint64_t skip = (uint64_t)part.start * (one_byte ? 1 : 2);
		switch (type & STRING_REPRESENTATION) {
		case STRING_SEQUENTIAL:
			ret->address = part.object - 1 + skip +
				       (one_byte ? layout->string_one_byte :
						   layout->string_two_byte);
			return true;
		case STRING_EXTERNAL:
			if (!ss_v8_word(heap->memory, part.object,
					layout->string_external, &ret->address))
				return false;
			ret->address += skip;
			return true;
		case STRING_THIN:
			if (!ss_v8_word(heap->memory, part.object, layout->string_actual,
					&part.object))
				return false;
			break;
		case STRING_SLICED:
			if (!ss_v8_word(heap->memory, part.object, layout->string_offset,
					&offset) ||
			    !ss_v8_is_smi(offset) || ss_v8_smi(offset) < 0 ||
			    !ss_v8_word(heap->memory, part.object, layout->string_parent,
					&part.object))
				return false;
			part.start += (uint32_t)ss_v8_smi(offset);
			break;
		case STRING_CONS:
			if (!ss_v8_word(heap->memory, part.object, layout->string_second,
					&other) ||
			    !ss_v8_word(heap->memory, part.object, layout->string_first,
					&part.object) ||
			    !ss_v8_is_object(part.object) ||
			    !read_length(heap, part.object, &length))
				return false;
			if (part.start >= length && part.length > 0) {
				part.object = other;
				part.start -= length;
			} else if (part.length > length - part.start) {
				if (*rest_count == STRING_DEPTH)
					return false;
				rest[(*rest_count)++] = (struct part){
					.object = other,
					.length = part.length - (length - part.start),
				};
				part.length = length - part.start;
			}
			break;
		default:
			return false;
		}
	}
	return false;
}

/* UTF-16; half a pair becomes U+FFFD. A NUL, which no name needs, ends it. */
static void convert(const uint16_t *units, size_t count, char *ret)
{
	for (size_t i = 0; i < count && units[i]; i++) {
		uint32_t c = units[i];
		bool pair = c >= 0xd800 && c < 0xdc00 && i + 1 < count &&
			    units[i + 1] >= 0xdc00 && units[i + 1] < 0xe000;
		if (pair) {
			i++;
			c = 0x10000 + ((c - 0xd800) << 10) + (units[i] - 0xdc00u);
		} else if (c >= 0xd800 && c < 0xe000) {
			c = 0xfffd;
		}
		ret = ss_utf8_encode(c, ret);
	}
	*ret = '\0';
}

static bool read_units(const struct ss_memory *memory,
		       const struct ss_v8_characters *characters, uint16_t *ret)
{
	uint8_t bytes[SS_V8_NAME_MAX];

	if (!characters->one_byte)
		return ss_memory_read(memory, characters->address, ret,
				      (size_t)characters->length * 2);
	if (!ss_memory_read(memory, characters->address, bytes, characters->length))
		return false;
	for (size_t i = 0; i < characters->length; i++)
		ret[i] = bytes[i];
	return true;
}

bool ss_v8_string(const struct ss_v8_heap *heap, uint64_t object, char *ret)
{
	struct part rest[STRING_DEPTH] = { { .object = object } };
	uint16_t units[SS_V8_NAME_MAX];
	size_t rest_count = 1;
	size_t count = 0;

	if (ss_v8_type(heap, heap->memory, object) >=
		    heap->layout->type_first_nonstring ||
	    !read_length(heap, object, &rest[0].length))
		return false;
	rest[0].length = SS_MIN(rest[0].length, (uint32_t)SS_V8_NAME_MAX);
	while (rest_count > 0) {
		struct ss_v8_characters characters;
		struct part part = rest[--rest_count];
		if (part.length == 0)
			continue;
		/* Parts do not overlap: together they are as long as the first one. */
		if (!find_characters(heap, part, &characters, rest, &rest_count) ||
		    characters.length > SS_V8_NAME_MAX - count ||
		    !read_units(heap->memory, &characters, units + count))
			return false;
		count += characters.length;
	}
	convert(units, count, ret);
	return true;
}

/* Scripts ------------------------------------------------------------------ */

static bool read_script_pointers(const struct ss_v8_heap *heap,
				 const struct ss_memory *memory, uint64_t address,
				 uint64_t *ret_source, uint64_t *ret_name)
{
	return ss_v8_type(heap, memory, address) == heap->layout->type_script &&
	       ss_v8_word(memory, address, heap->layout->script_source, ret_source) &&
	       ss_v8_word(memory, address, heap->layout->script_name, ret_name);
}

static bool is_script_unchanged(const struct ss_v8_heap *heap,
				const struct ss_v8_script *script)
{
	uint64_t source;
	uint64_t name;

	return read_script_pointers(heap, heap->after, script->address, &source, &name) &&
	       source == script->source_pointer && name == script->name_pointer;
}

/* False without memory. */
static bool read_script(const struct ss_v8_heap *heap, struct ss_v8_script *script)
{
	char text[3 * SS_V8_NAME_MAX + 1];
	struct part rest[STRING_DEPTH];
	struct part part = {};
	size_t rest_count = 0;
	uint64_t line;
	uint64_t from;

	if (!read_script_pointers(heap, heap->memory, script->address,
				  &script->source_pointer, &script->name_pointer) ||
	    !ss_v8_word(heap->memory, script->address, heap->layout->script_line_offset,
			&line) ||
	    !ss_v8_is_smi(line))
		return true;
	script->line_offset = ss_v8_smi(line);
	script->is_eval = ss_v8_word(heap->memory, script->address,
				     heap->layout->script_eval_from, &from) &&
			  ss_v8_type(heap, heap->memory, from) ==
				  heap->layout->type_shared;
	/* What eval() compiles has no name. */
	if (ss_v8_string(heap, script->name_pointer, text) && *text) {
		script->file = ss_intern_string(heap->strings, text);
		if (!script->file)
			return false;
	}
	part.object = script->source_pointer;
	/* The compiler has flattened it. Code of WebAssembly has none. */
	if (!ss_v8_is_object(part.object) ||
	    !read_length(heap, part.object, &part.length) ||
	    !find_characters(heap, part, &script->source, rest, &rest_count) ||
	    rest_count > 0)
		script->source = (struct ss_v8_characters){};
	script->valid = is_script_unchanged(heap, script);
	return true;
}

/* Returns the index + 1, or 0. */
static bool find_script(struct ss_v8_heap *heap, uint64_t address, uint32_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < heap->scripts.count; i++) {
		if (heap->scripts.items[i].address == address) {
			*ret = heap->scripts.items[i].valid ? (uint32_t)i + 1 : 0;
			return true;
		}
	}
	if (heap->scripts.count >= SCRIPTS_MAX)
		return true;
	struct ss_v8_script *script = ss_vector_push(&heap->scripts);
	if (!script)
		return false;
	*script = (struct ss_v8_script){ .address = address };
	if (!read_script(heap, script))
		return false;
	*ret = script->valid ? (uint32_t)heap->scripts.count : 0;
	return true;
}

/* ECMAScript's line terminators. */
static bool ends_line(uint16_t unit)
{
	return unit == '\n' || unit == '\r' || unit == 0x2028 || unit == 0x2029;
}

/* CR LF is one: it ends at the LF. */
static bool scan_unit(struct ss_v8_script *script, uint16_t unit)
{
	uint32_t *end;

	if (script->after_return && unit != '\n') {
		end = ss_vector_push(&script->ends);
		if (!end)
			return false;
		*end = script->scanned - 1;
	}
	script->after_return = unit == '\r';
	if (ends_line(unit) && unit != '\r') {
		end = ss_vector_push(&script->ends);
		if (!end)
			return false;
		*end = script->scanned;
	}
	script->scanned++;
	return true;
}

/* Finds the ends of lines up to a position and a little further. False without memory;
   *ret: whether the source could be read. */
static bool scan_source(struct ss_v8_heap *heap, struct ss_v8_script *script,
			uint32_t position, bool *ret)
{
	const size_t width = script->source.one_byte ? 1 : 2;
	uint8_t bytes[SOURCE_CHUNK];

	*ret = false;
	if (position >= script->source.length)
		return true;
	while (script->scanned <= position) {
		size_t count = SS_MIN(script->source.length - script->scanned,
				      (uint32_t)(SOURCE_CHUNK / width));
		uint64_t address =
			script->source.address + (uint64_t)script->scanned * width;
		heap->source_read += count * width;
		if (heap->source_read > SS_V8_SOURCE_MAX ||
		    !ss_memory_read(heap->memory, address, bytes, count * width))
			return true;
		for (size_t i = 0; i < count; i++) {
			uint16_t unit = bytes[i];
			if (width == 2)
				memcpy(&unit, bytes + i * width, sizeof(unit));
			if (!scan_unit(script, unit))
				return false;
		}
	}
	*ret = true;
	return true;
}

bool ss_v8_function_line(struct ss_v8_heap *heap, const struct ss_v8_function *function,
			 uint32_t position, uint32_t *ret)
{
	bool scanned;

	*ret = 0;
	if (function->script == 0)
		return true;
	struct ss_v8_script *script = &heap->scripts.items[function->script - 1];
	uint32_t before = script->scanned;
	if (!scan_source(heap, script, position, &scanned))
		return false;
	/* What was read earlier has been checked: each check asks the parent process. */
	if (script->scanned != before && !is_script_unchanged(heap, script))
		script->source.length = 0;
	if (!scanned || script->source.length == 0)
		return true;
	/* How many lines end before it */
	size_t low = 0;
	size_t high = script->ends.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (script->ends.items[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	int64_t line = (int64_t)low + script->line_offset + 1;
	*ret = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
	return true;
}

const char *ss_v8_function_file(const struct ss_v8_heap *heap,
				const struct ss_v8_function *function)
{
	return function->script ? heap->scripts.items[function->script - 1].file : NULL;
}

/* Functions ---------------------------------------------------------------- */

struct ss_v8_identity ss_v8_identity_of(const struct ss_v8_layout *layout,
					const uint8_t bytes[SS_V8_SHARED_SIZE])
{
	return (struct ss_v8_identity){
		.map = ss_load_u64(bytes, 0),
		.name = ss_load_u64(bytes, layout->shared_name),
		.script = ss_load_u64(bytes, layout->shared_script),
	};
}

bool ss_v8_identity_equal(const struct ss_v8_identity *a, const struct ss_v8_identity *b)
{
	return a->map == b->map && a->name == b->name && a->script == b->script;
}

static bool is_empty(const struct ss_v8_heap *heap, uint64_t string)
{
	uint32_t length = 0;

	return !read_length(heap, string, &length) || length == 0;
}

static bool is_string(const struct ss_v8_heap *heap, uint64_t object)
{
	return ss_v8_type(heap, heap->memory, object) <
	       heap->layout->type_first_nonstring;
}

/* The slot of a scope that has the function's name, or the one that the parser inferred from
   an assignment. *ret is 0 if there is none. False: it is not valid. */
static bool find_scope_name(const struct ss_v8_heap *heap, uint64_t scope, uint64_t *ret)
{
	const struct ss_v8_layout *layout = heap->layout;
	uint64_t flags;
	uint64_t locals;
	uint64_t name = 0;

	*ret = 0;
	if (!ss_v8_word(heap->memory, scope, SCOPE_FLAGS, &flags) ||
	    !ss_v8_word(heap->memory, scope, SCOPE_LOCALS, &locals) ||
	    (!layout->scope_flags_raw && !ss_v8_is_smi(flags)) || !ss_v8_is_smi(locals) ||
	    ss_v8_smi(locals) < 0 || ss_v8_smi(locals) > SCOPE_LOCALS_MAX)
		return false;
	uint32_t bits = (uint32_t)(layout->scope_flags_raw ? flags : flags >> 32);
	uint32_t count = (uint32_t)ss_v8_smi(locals);
	uint32_t names = count < layout->scope_names_max ? count : 1;
	uint32_t at = 8 * (1 + layout->scope_first + names + count);
	at += bits & SCOPE_HAS_CLASS ? 8 : 0;
	if (bits >> SCOPE_FUNCTION_SHIFT & SCOPE_FUNCTION_MASK) {
		if (!ss_v8_word(heap->memory, scope, at, &name))
			return false;
		/* 0: the function has none */
		if (name != 0 && !is_string(heap, name))
			return false;
		at += 16;
	}
	if (name && !is_empty(heap, name)) {
		*ret = name;
		return true;
	}
	if (!(bits & SCOPE_HAS_INFERRED))
		return true;
	if (!ss_v8_word(heap->memory, scope, at, &name))
		return false;
	*ret = is_string(heap, name) && !is_empty(heap, name) ? name : 0;
	return true;
}

/* The name of a function, or that of a scope of it. Empty: it has none. False: it is not
   valid. */
static bool read_name(const struct ss_v8_heap *heap, uint64_t object, char *ret)
{
	*ret = '\0';
	if (object == 0)
		return true;
	if (ss_v8_type(heap, heap->memory, object) == heap->layout->type_scope &&
	    !find_scope_name(heap, object, &object))
		return false;
	return object == 0 || ss_v8_string(heap, object, ret);
}

static bool is_unchanged(const struct ss_v8_heap *heap,
			 const struct ss_v8_function *function)
{
	uint8_t bytes[SS_V8_SHARED_SIZE];
	struct ss_v8_identity now;

	if (!ss_memory_read(heap->after, function->address - 1, bytes, sizeof(bytes)))
		return false;
	now = ss_v8_identity_of(heap->layout, bytes);
	return ss_v8_identity_equal(&now, &function->identity);
}

/* False without memory. */
static bool read_function(struct ss_v8_heap *heap, struct ss_v8_function *function)
{
	char text[3 * SS_V8_NAME_MAX + 1];
	uint8_t bytes[SS_V8_SHARED_SIZE];
	uint32_t script;

	if (!ss_v8_is_object(function->address) ||
	    ss_v8_type(heap, heap->memory, function->address) !=
		    heap->layout->type_shared ||
	    !ss_memory_read(heap->memory, function->address - 1, bytes, sizeof(bytes)))
		return true;
	function->identity = ss_v8_identity_of(heap->layout, bytes);
	function->data = ss_load_u64(bytes, heap->layout->shared_data);
	if (!read_name(heap, function->identity.name, text))
		return true;
	if (!find_script(heap, function->identity.script, &script))
		return false;
	if (!*text)
		(void)snprintf(text, sizeof(text), "%s",
			       script && heap->scripts.items[script - 1].is_eval ?
				       "eval" :
				       "(anonymous)"); /* it fits */
	function->name = ss_intern_string(heap->strings, text);
	if (!function->name)
		return false;
	function->script = script;
	function->valid = is_unchanged(heap, function);
	return true;
}

bool ss_v8_function_find(struct ss_v8_heap *heap, uint64_t address,
			 const struct ss_v8_function **ret)
{
	uint32_t index = ss_idtable_find(&heap->function_ids, &address, sizeof(address));

	*ret = NULL;
	if (index == SS_ID_NONE) {
		if (heap->functions.count >= FUNCTIONS_MAX)
			return true;
		if (!ss_vector_reserve(&heap->functions, heap->functions.count + 1) ||
		    (index = ss_idtable_add(&heap->function_ids, &address,
					    sizeof(address), NULL)) == SS_ID_NONE)
			return false;
		heap->functions.items[heap->functions.count++] =
			(struct ss_v8_function){ .address = address };
		if (!read_function(heap, &heap->functions.items[index]))
			return false;
	}
	if (heap->functions.items[index].valid)
		*ret = &heap->functions.items[index];
	return true;
}

/* Tables ------------------------------------------------------------------- */

bool ss_v8_take(const struct ss_v8_heap *heap, uint64_t size)
{
	if (size > *heap->tables_left)
		return false;
	*heap->tables_left -= size;
	return true;
}

bool ss_v8_bytes(const struct ss_v8_heap *heap, uint64_t object, uint8_t **ret,
		 size_t *ret_size)
{
	uint64_t length;

	*ret = NULL;
	if (!ss_v8_word(heap->memory, object, ARRAY_LENGTH, &length) ||
	    !ss_v8_is_smi(length) || ss_v8_smi(length) < 0 ||
	    ss_v8_smi(length) > SS_V8_TABLE_MAX)
		return true;
	size_t size = (size_t)ss_v8_smi(length);
	if (!ss_v8_take(heap, size))
		return true;
	uint8_t *bytes = malloc(size + 1);
	if (!bytes)
		return false;
	if (!ss_memory_read(heap->memory, object - 1 + ARRAY_DATA, bytes, size)) {
		free(bytes);
		return true;
	}
	*ret = bytes;
	*ret_size = size;
	return true;
}

struct cursor {
	const uint8_t *at;
	const uint8_t *end;
};

/* Groups of 7 bits, the lowest first. */
static bool take_unsigned(struct cursor *cursor, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		if (cursor->at == cursor->end || shift > 63)
			return false;
		byte = *cursor->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*ret = value;
	return true;
}

/* The sign is in the lowest bit. */
static bool take_signed(struct cursor *cursor, int64_t *ret)
{
	uint64_t value;

	if (!take_unsigned(cursor, &value))
		return false;
	*ret = (int64_t)(value >> 1 ^ -(value & 1));
	return true;
}

/* A distance in the code; it also says whether a statement begins there. */
static bool take_distance(const struct ss_v8_layout *layout, struct cursor *cursor,
			  uint64_t *ret)
{
	int64_t delta;

	if (layout->position_flags > 0) {
		if (!take_unsigned(cursor, ret))
			return false;
		*ret >>= layout->position_flags;
		return true;
	}
	if (!take_signed(cursor, &delta))
		return false;
	/* Expressions, in contrast to statements, have a complement. */
	*ret = (uint64_t)(delta >= 0 ? delta : -(delta + 1));
	return true;
}

bool ss_v8_position_find(const struct ss_v8_layout *layout, const uint8_t *table,
			 size_t size, int64_t offset, uint64_t *ret)
{
	struct cursor cursor = { .at = table, .end = table + size };
	uint64_t position = 0;
	uint64_t at = UINT64_MAX; /* -1: the entry of a function */
	bool found = false;

	while (cursor.at < cursor.end) {
		uint64_t distance;
		int64_t moved;
		if (!take_distance(layout, &cursor, &distance) ||
		    !take_signed(&cursor, &moved))
			return false;
		at += distance;
		position += (uint64_t)moved;
		if ((int64_t)at > offset)
			break;
		*ret = position;
		found = true;
	}
	return found;
}
