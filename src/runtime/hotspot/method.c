#include "runtime/hotspot/method.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"

enum {
	WORD = 8,
	METHODS_MAX = 1 << 16,
	CLASS_METHODS_MAX = 1 << 16,
	LINES_MAX = 1 << 18, /* bytes of a line table; code has at most 64 KiB */
	/* ConstMethod::_has_linenumber_table, ConstMethodFlags */
	HAS_LINES = 1,
	SYMBOL_MAX = 65535,
	/* Compressed numbers */
	LOW_CODES = 192, /* bytes from here on continue a number */
	NUMBER_BYTES = 5,
	LINE_ESCAPE = 0xff,
};

void ss_hotspot_methods_deinit(struct ss_hotspot_methods *methods)
{
	for (size_t i = 0; i < methods->items.count; i++)
		free(methods->items.items[i].lines);
	ss_vector_free(&methods->items);
	ss_hash_deinit(&methods->table);
}

/* What a Method leads to. If it is the same after everything was read, the method was not
   replaced meanwhile. */
struct identity {
	uint64_t const_method;
	uint64_t constants;
	uint64_t holder;
	uint16_t name;
	uint16_t idnum;
	uint16_t code_size;
	uint16_t zero; /* in place of padding: all bytes are compared */
};

static bool is_pointer(uint64_t address)
{
	return address != 0 && address % WORD == 0;
}

static bool read_u16(const struct ss_memory *memory, uint64_t address, uint16_t *ret)
{
	return ss_memory_read(memory, address, ret, sizeof(*ret));
}

static bool read_pointer(const struct ss_memory *memory, uint64_t address, uint64_t *ret)
{
	return ss_memory_read_u64(memory, address, ret) && is_pointer(*ret);
}

static bool read_identity(const struct ss_hotspot_layout *layout,
			  const struct ss_memory *memory, uint64_t method,
			  struct identity *ret)
{
	const uint64_t *at = layout->at;

	memset(ret, 0, sizeof(*ret));
	return is_pointer(method) &&
	       read_pointer(memory, method + at[SS_HOTSPOT_METHOD_CONST],
			    &ret->const_method) &&
	       read_pointer(memory, ret->const_method + at[SS_HOTSPOT_CONST_CONSTANTS],
			    &ret->constants) &&
	       read_u16(memory, ret->const_method + at[SS_HOTSPOT_CONST_NAME],
			&ret->name) &&
	       read_u16(memory, ret->const_method + at[SS_HOTSPOT_CONST_IDNUM],
			&ret->idnum) &&
	       read_u16(memory, ret->const_method + at[SS_HOTSPOT_CONST_CODE_BYTES],
			&ret->code_size) &&
	       read_pointer(memory, ret->constants + at[SS_HOTSPOT_POOL_HOLDER],
			    &ret->holder);
}

/* Whether the class has the method at its index, or another index after a class was sorted
   or redefined. */
static bool is_in_class(const struct ss_hotspot_methods *methods, uint64_t method,
			const struct identity *identity)
{
	const struct ss_memory *memory = methods->memory;
	const uint64_t *at = methods->layout->at;
	uint64_t array;
	uint64_t found;
	uint32_t length;

	if (!read_pointer(memory, identity->holder + at[SS_HOTSPOT_CLASS_METHODS],
			  &array) ||
	    !ss_memory_read_u32(memory, array, &length) || length > CLASS_METHODS_MAX)
		return false;
	uint64_t data = array + at[SS_HOTSPOT_METHODS_DATA];
	if (identity->idnum < length &&
	    ss_memory_read_u64(memory, data + (uint64_t)identity->idnum * WORD, &found) &&
	    found == method)
		return true;
	for (uint32_t i = 0; i < length; i++) {
		if (!ss_memory_read_u64(memory, data + (uint64_t)i * WORD, &found))
			return false;
		if (found == method)
			return true;
	}
	return false;
}

/* Whether method, constants and class refer to each other. */
static bool is_consistent(const struct ss_hotspot_methods *methods, uint64_t method,
			  const struct identity *identity)
{
	uint64_t constants;

	return is_in_class(methods, method, identity) ||
	       (ss_memory_read_u64(
			methods->memory,
			identity->holder +
				methods->layout->at[SS_HOTSPOT_CLASS_CONSTANTS],
			&constants) &&
		constants == identity->constants);
}

/* Appends the text of a Symbol. */
static bool append_symbol(const struct ss_hotspot_methods *methods, uint64_t symbol,
			  struct ss_buffer *text)
{
	const uint64_t *at = methods->layout->at;
	char bytes[SYMBOL_MAX];
	uint16_t length;

	/* Its address need not be aligned to more than 8 bytes; it is never empty here. */
	if (!is_pointer(symbol) ||
	    !read_u16(methods->memory, symbol + at[SS_HOTSPOT_SYMBOL_LENGTH], &length) ||
	    length == 0 ||
	    !ss_memory_read(methods->memory, symbol + at[SS_HOTSPOT_SYMBOL_BODY], bytes,
			    length) ||
	    memchr(bytes, '\0', length))
		return false;
	ss_buffer_add(text, bytes, length);
	return !text->failed;
}

/* The Symbol at an index of the constant pool. */
static bool append_constant(const struct ss_hotspot_methods *methods, uint64_t constants,
			    uint16_t index, struct ss_buffer *text)
{
	const uint64_t *at = methods->layout->at;
	uint32_t length;
	uint64_t symbol;

	return index > 0 &&
	       ss_memory_read_u32(methods->memory, constants + at[SS_HOTSPOT_POOL_LENGTH],
				  &length) &&
	       index < length &&
	       ss_memory_read_u64(methods->memory,
				  constants + at[SS_HOTSPOT_POOL_SIZE] +
					  (uint64_t)index * WORD,
				  &symbol) &&
	       append_symbol(methods, symbol, text);
}

/* Classes have their names with slashes; hidden ones have "+0x" and their address at the
   end, which Java shows with a slash (Klass::external_name()). */
static void externalize(char *name)
{
	char *plus = strrchr(name, '+');

	for (char *at = name; *at; at++) {
		if (*at == '/')
			*at = '.';
	}
	if (plus && strncmp(plus, "+0x", 3) == 0)
		*plus = '/';
}

static bool read_name(struct ss_hotspot_methods *methods, const struct identity *identity,
		      struct ss_hotspot_method *method)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	uint64_t symbol;

	if (!ss_memory_read_u64(methods->memory,
				identity->holder +
					methods->layout->at[SS_HOTSPOT_CLASS_NAME],
				&symbol) ||
	    !append_symbol(methods, symbol, &text))
		return false;
	externalize(text.bytes);
	ss_buffer_add_byte(&text, '.');
	if (!append_constant(methods, identity->constants, identity->name, &text))
		return false;
	method->name = ss_intern_bytes(methods->strings, text.bytes, text.size);
	return method->name != NULL;
}

/* It is not fatal if a class does not name its file. */
static void read_file(struct ss_hotspot_methods *methods, const struct identity *identity,
		      struct ss_hotspot_method *method)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	const uint64_t *at = methods->layout->at;
	uint64_t address = methods->layout->class_has_file ?
				   identity->holder + at[SS_HOTSPOT_CLASS_FILE] :
				   identity->constants + at[SS_HOTSPOT_POOL_FILE];
	uint16_t index;

	if (read_u16(methods->memory, address, &index) &&
	    append_constant(methods, identity->constants, index, &text))
		method->file = ss_intern_bytes(methods->strings, text.bytes, text.size);
}

/* The line table follows the bytecode. */
static void read_lines(struct ss_hotspot_methods *methods,
		       const struct identity *identity, struct ss_hotspot_method *method)
{
	const uint64_t *at = methods->layout->at;
	uint32_t words;
	uint16_t flags;
	uint64_t used = at[SS_HOTSPOT_CONST_SIZE] + method->code_size;

	if (!ss_memory_read_u32(methods->memory,
				identity->const_method + at[SS_HOTSPOT_CONST_WORDS],
				&words) ||
	    !read_u16(methods->memory,
		      identity->const_method + at[SS_HOTSPOT_CONST_FLAGS], &flags) ||
	    !(flags & HAS_LINES) || (uint64_t)words * WORD <= used)
		return;
	uint64_t size = SS_MIN((uint64_t)words * WORD - used, (uint64_t)LINES_MAX);
	method->lines = malloc(size);
	if (!method->lines)
		return;
	if (ss_memory_read(methods->memory, method->code + method->code_size,
			   method->lines, size)) {
		method->lines_size = size;
	} else {
		free(method->lines);
		method->lines = NULL;
	}
}

static void read_method(struct ss_hotspot_methods *methods,
			struct ss_hotspot_method *method)
{
	struct identity identity;
	struct identity now;

	if (!read_identity(methods->layout, methods->memory, method->address,
			   &identity) ||
	    !is_consistent(methods, method->address, &identity) ||
	    !read_name(methods, &identity, method))
		return;
	method->code = identity.const_method + methods->layout->at[SS_HOTSPOT_CONST_SIZE];
	method->code_size = identity.code_size;
	read_file(methods, &identity, method);
	read_lines(methods, &identity, method);
	method->valid =
		read_identity(methods->layout, methods->after, method->address, &now) &&
		memcmp(&now, &identity, sizeof(now)) == 0;
}

struct query {
	const struct ss_hotspot_methods *methods;
	uint64_t address;
};

static bool is_method(const void *context, uint32_t index)
{
	const struct query *query = context;

	return query->methods->items.items[index].address == query->address;
}

bool ss_hotspot_methods_find(struct ss_hotspot_methods *methods, uint64_t address,
			     const struct ss_hotspot_method **ret)
{
	const struct query query = { methods, address };
	uint32_t index = ss_hash_find(&methods->table, address, is_method, &query);

	*ret = NULL;
	if (index == SS_HASH_NONE) {
		if (methods->items.count >= METHODS_MAX)
			return true;
		if (!ss_hash_reserve(&methods->table))
			return false;
		struct ss_hotspot_method *method = ss_vector_push(&methods->items);
		if (!method)
			return false;
		*method = (struct ss_hotspot_method){ .address = address };
		index = (uint32_t)(methods->items.count - 1);
		ss_hash_insert(&methods->table, address, index);
		read_method(methods, method);
	}
	if (methods->items.items[index].valid)
		*ret = &methods->items.items[index];
	return true;
}

uint32_t ss_hotspot_number(const struct ss_hotspot_layout *layout,
			   struct ss_cursor *cursor)
{
	const uint32_t excluded = layout->no_zeros ? 1 : 0;
	uint32_t sum = 0;

	for (unsigned i = 0; i < NUMBER_BYTES; i++) {
		uint8_t byte = ss_cursor_byte(cursor);
		if (byte < excluded)
			cursor->failed = true;
		if (cursor->failed)
			return 0;
		sum += (uint32_t)(byte - excluded) << (6 * i);
		if (byte < LOW_CODES)
			break;
	}
	return sum;
}

static uint32_t read_signed(const struct ss_hotspot_layout *layout,
			    struct ss_cursor *cursor)
{
	uint32_t number = ss_hotspot_number(layout, cursor);

	return number >> 1 ^ (0U - (number & 1));
}

/* Follows CompressedLineNumberReadStream and Method::line_number_from_bci(). */
uint32_t ss_hotspot_line(const struct ss_hotspot_layout *layout,
			 const struct ss_hotspot_method *method, int32_t wanted)
{
	struct ss_cursor cursor = { .at = method->lines,
				    .end = method->lines ?
						   method->lines + method->lines_size :
						   NULL };
	uint32_t bci = 0;
	uint32_t line = 0;
	uint32_t best_bci = 0;
	uint32_t best = 0;

	if (wanted < 0)
		return 0;
	while (ss_cursor_left(&cursor) > 0) {
		uint8_t next = ss_cursor_byte(&cursor);
		if (next == 0)
			break;
		if (next == LINE_ESCAPE) {
			bci += read_signed(layout, &cursor);
			line += read_signed(layout, &cursor);
		} else {
			bci += next >> 3;
			line += next & 7;
		}
		if (cursor.failed || bci >= method->code_size)
			return 0;
		if (bci == (uint32_t)wanted)
			return line;
		if (bci < (uint32_t)wanted && bci >= best_bci) {
			best_bci = bci;
			best = line;
		}
	}
	return best;
}
