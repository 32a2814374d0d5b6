#include "data/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"

/* Nested structs are at most so deep. */
enum { DEPTH_MAX = 16 };

static const char zeros[1024];

/* The host is little-endian: the first bytes of a member are its low ones. */
uint64_t ss_field_number(const struct ss_field *field, const void *structure)
{
	uint64_t value = 0;
	unsigned missing = 64U - 8U * SS_MIN(field->size, 8U);

	memcpy(&value, (const char *)structure + field->offset,
	       SS_MIN(field->size, sizeof(value)));
	if (field->type != SS_FIELD_SIGNED || missing == 0)
		return value;
	return (uint64_t)((int64_t)(value << missing) >> missing);
}

static size_t load_size(const char *structure, uint16_t offset)
{
	size_t value;

	memcpy(&value, structure + offset, sizeof(value));
	return value;
}

static const char *load_pointer(const char *structure, uint16_t offset)
{
	const char *value;

	memcpy(&value, structure + offset, sizeof(value));
	return value;
}

const void *ss_field_pointer(const struct ss_field *field, const void *structure)
{
	return load_pointer(structure, field->offset);
}

size_t ss_field_count(const struct ss_field *field, const void *structure)
{
	return load_size(structure, field->count);
}

static void store_pointer(char *structure, uint16_t offset, const void *value)
{
	memcpy(structure + offset, &value, sizeof(value));
}

/* Writing ------------------------------------------------------------------ */

static void put_number(const struct ss_schema_writer *writer,
		       const struct ss_field *field, uint64_t value)
{
	ss_encode_uleb128(writer->out, (uint64_t)field->number << 1);
	ss_encode_uleb128(writer->out, value);
}

static void put_bytes(const struct ss_schema_writer *writer, const struct ss_field *field,
		      const void *bytes, size_t size)
{
	ss_encode_uleb128(writer->out, (uint64_t)field->number << 1 | 1);
	ss_encode_uleb128(writer->out, size);
	ss_buffer_add(writer->out, bytes, size);
}

static void put_text(const struct ss_schema_writer *writer, const struct ss_field *field,
		     const char *text)
{
	if (text && writer->text)
		put_number(writer, field, writer->text(writer->data, text));
	else if (text)
		put_bytes(writer, field, text, strlen(text));
}

/* Writes a nested struct, whose size is known only afterwards and precedes it. */
static void put_nested(const struct ss_schema_writer *writer,
		       const struct ss_field *field, const void *structure)
{
	struct ss_buffer *out = writer->out;
	char size_bytes[10];
	struct ss_buffer size = {};

	ss_encode_uleb128(out, (uint64_t)field->number << 1 | 1);
	const size_t begin = out->size;
	ss_schema_write(writer, field->schema, structure);
	const size_t written = out->size - begin;
	ss_encode_uleb128(&size, written);
	if (out->failed || size.failed) {
		out->failed = true;
	} else {
		memcpy(size_bytes, size.bytes, size.size);
		ss_buffer_add(out, size.bytes, size.size); /* room */
		if (!out->failed) {
			memmove(out->bytes + begin + size.size, out->bytes + begin,
				written);
			memcpy(out->bytes + begin, size_bytes, size.size);
		}
	}
	ss_buffer_deinit(&size);
}

static void put_list(const struct ss_schema_writer *writer, const struct ss_field *field,
		     const char *items, size_t count)
{
	if (writer->list_max && count > writer->list_max)
		count = writer->list_max;
	for (size_t i = 0; i < count; i++)
		put_nested(writer, field, items + i * field->schema->size);
}

static void put_indexes(const struct ss_schema_writer *writer,
			const struct ss_field *field, const size_t *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_number(writer, field, items[i]);
}

static void put_field(const struct ss_schema_writer *writer, const struct ss_field *field,
		      const char *structure)
{
	const char *member = structure + field->offset;
	const char *pointer;
	unsigned length;

	switch (field->type) {
	case SS_FIELD_UNSIGNED:
		put_number(writer, field, ss_field_number(field, structure));
		break;
	case SS_FIELD_SIGNED:
		ss_encode_uleb128(writer->out, (uint64_t)field->number << 1);
		ss_encode_zigzag(writer->out, (int64_t)ss_field_number(field, structure));
		break;
	case SS_FIELD_TEXT:
		put_text(writer, field, load_pointer(structure, field->offset));
		break;
	case SS_FIELD_BYTES:
		memcpy(&length, structure + field->count, sizeof(length));
		put_bytes(writer, field, member, SS_MIN(length, (unsigned)field->size));
		break;
	case SS_FIELD_WORDS:
		put_bytes(writer, field, member, field->size);
		break;
	case SS_FIELD_STRUCT:
		put_nested(writer, field, member);
		break;
	case SS_FIELD_ARRAY:
		put_list(writer, field, member,
			 SS_MIN(load_size(structure, field->count), (size_t)field->max));
		break;
	case SS_FIELD_POINTER:
		pointer = load_pointer(structure, field->offset);
		if (pointer && field->table && writer->element)
			put_number(writer, field,
				   writer->element(writer->data, field->table, pointer));
		else if (pointer)
			put_nested(writer, field, pointer);
		break;
	case SS_FIELD_INDEXES:
		pointer = load_pointer(structure, field->offset);
		put_indexes(writer, field, (const size_t *)(const void *)pointer,
			    load_size(structure, field->count));
		break;
	default: /* LIST, OWNED, VECTOR */
		put_list(writer, field, load_pointer(structure, field->offset),
			 load_size(structure, field->count));
		break;
	}
}

/* Whether a member has its default. An address or frames of zeros are not the same as none. */
bool ss_field_is_default(const struct ss_schema *schema, const struct ss_field *field,
			 const void *structure)
{
	unsigned length;

	if (field->type == SS_FIELD_ARRAY)
		return load_size(structure, field->count) == 0;
	if (field->type == SS_FIELD_BYTES) {
		memcpy(&length, (const char *)structure + field->count, sizeof(length));
		return length == 0;
	}
	return memcmp((const char *)structure + field->offset,
		      schema->none ? (const char *)schema->none + field->offset : zeros,
		      field->size) == 0;
}

void ss_schema_write(const struct ss_schema_writer *writer,
		     const struct ss_schema *schema, const void *structure)
{
	for (size_t i = 0; i < schema->count; i++) {
		if (!ss_field_is_default(schema, &schema->fields[i], structure))
			put_field(writer, &schema->fields[i], structure);
	}
}

/* Reading ------------------------------------------------------------------ */

static void fail(struct ss_schema_reader *reader)
{
	reader->cursor.failed = true;
	reader->cursor.at = reader->cursor.end;
}

static const struct ss_field *find_field(const struct ss_schema *schema, uint64_t number)
{
	for (size_t i = 0; i < schema->count; i++) {
		if (schema->fields[i].number == number)
			return &schema->fields[i];
	}
	return NULL;
}

static bool is_list(const struct ss_field *field)
{
	return field->type >= SS_FIELD_LIST;
}

static bool has_lists(const struct ss_schema *schema)
{
	return ss_any(schema->count, i, is_list(&schema->fields[i]));
}

static size_t element_size(const struct ss_field *field)
{
	return field->schema ? field->schema->size : sizeof(size_t);
}

/* Allocates the lists of a struct, whose elements are counted first; their counts are set
   while they are read. */
static void allocate_lists(struct ss_schema_reader *reader,
			   const struct ss_schema *schema, char *structure)
{
	size_t counts[64] = {};
	struct ss_cursor cursor = reader->cursor;

	while (!cursor.failed && ss_cursor_left(&cursor) > 0) {
		uint64_t key = ss_cursor_uleb128(&cursor);
		const struct ss_field *field = find_field(schema, key >> 1);
		if (key & 1)
			(void)ss_cursor_take(
				&cursor,
				ss_cursor_index(&cursor, ss_cursor_left(&cursor) + 1));
		else
			(void)ss_cursor_uleb128(&cursor);
		if (field && is_list(field))
			counts[field - schema->fields]++;
	}
	if (cursor.failed)
		fail(reader);
	for (size_t i = 0; i < schema->count && !reader->cursor.failed; i++) {
		const struct ss_field *field = &schema->fields[i];
		if (counts[i] == 0)
			continue;
		bool owned = field->type == SS_FIELD_OWNED ||
			     field->type == SS_FIELD_VECTOR;
		void *items = reader->list_max && counts[i] > reader->list_max ?
				      NULL :
				      reader->allocate(reader->data,
						       counts[i] * element_size(field),
						       owned);
		if (!items) {
			fail(reader);
			return;
		}
		store_pointer(structure, field->offset, items);
		/* count and capacity of a vector follow each other */
		if (field->type == SS_FIELD_VECTOR)
			memcpy(structure + field->count + sizeof(size_t), &counts[i],
			       sizeof(size_t));
	}
}

static bool is_number(const struct ss_schema_reader *reader, const struct ss_field *field)
{
	switch (field->type) {
	case SS_FIELD_UNSIGNED:
	case SS_FIELD_SIGNED:
	case SS_FIELD_INDEXES:
		return true;
	case SS_FIELD_TEXT:
		return reader->numbered != NULL;
	case SS_FIELD_POINTER:
		return field->table && reader->element;
	default:
		return false;
	}
}

/* Whether a number may be stored in the member. */
static bool is_in_range(const struct ss_schema_reader *reader,
			const struct ss_field *field, uint64_t value)
{
	unsigned bits = 8 * field->size;
	int64_t number = (int64_t)value;

	if (field->table && reader->limit) {
		uint64_t limit = reader->limit(reader->data, field->table);
		return value < limit || (field->type == SS_FIELD_SIGNED && number == -1);
	}
	if (field->type == SS_FIELD_SIGNED) {
		int64_t most = field->max ? (int64_t)field->max :
			       bits >= 64 ? INT64_MAX :
					    (INT64_C(1) << (bits - 1)) - 1;
		return number <= most && number >= -most - 1;
	}
	return (!field->max || value <= field->max) && (bits >= 64 || value >> bits == 0);
}

static void read_number(struct ss_schema_reader *reader, const struct ss_field *field,
			char *structure)
{
	uint64_t value = field->type == SS_FIELD_SIGNED ?
				 (uint64_t)ss_decode_zigzag(&reader->cursor) :
				 ss_cursor_uleb128(&reader->cursor);
	const void *found = NULL;
	size_t *items;
	size_t count;

	if (reader->cursor.failed)
		return;
	switch (field->type) {
	case SS_FIELD_TEXT:
		found = reader->numbered(reader->data, value);
		break;
	case SS_FIELD_POINTER:
		found = reader->element(reader->data, field->table, value);
		break;
	case SS_FIELD_INDEXES:
		items = (size_t *)(void *)ss_drop_const(
			load_pointer(structure, field->offset));
		count = load_size(structure, field->count);
		if (value >= reader->limit(reader->data, field->table)) {
			fail(reader);
			return;
		}
		items[count++] = value;
		memcpy(structure + field->count, &count, sizeof(count));
		return;
	default:
		if (is_in_range(reader, field, value))
			memcpy(structure + field->offset, &value, field->size);
		else
			fail(reader);
		return;
	}
	if (found)
		store_pointer(structure, field->offset, found);
	else
		fail(reader);
}

static void read_fields(struct ss_schema_reader *reader, const struct ss_schema *schema,
			char *structure, unsigned depth);

/* Reads a nested struct from bytes. */
static void read_nested(struct ss_schema_reader *reader, const struct ss_field *field,
			const uint8_t *bytes, size_t size, char *structure,
			unsigned depth)
{
	struct ss_schema_reader nested = *reader;

	nested.cursor = (struct ss_cursor){ .at = bytes, .end = bytes + size };
	read_fields(&nested, field->schema, structure, depth + 1);
	if (nested.cursor.failed)
		fail(reader);
}

/* The next element of a list. NULL: there is no room. */
static char *next_element(const struct ss_field *field, char *structure)
{
	size_t count = load_size(structure, field->count);
	char *items = field->type == SS_FIELD_ARRAY ?
			      structure + field->offset :
			      ss_drop_const(load_pointer(structure, field->offset));

	if (field->type == SS_FIELD_ARRAY && count >= field->max)
		return NULL;
	char *element = items + count * field->schema->size;
	count++;
	memcpy(structure + field->count, &count, sizeof(count));
	return element;
}

static void read_bytes(struct ss_schema_reader *reader, const struct ss_field *field,
		       const uint8_t *bytes, size_t size, char *structure, unsigned depth)
{
	unsigned length = (unsigned)size;
	const void *text;
	char *element;

	switch (field->type) {
	case SS_FIELD_TEXT:
		text = memchr(bytes, '\0', size) ?
			       NULL :
			       reader->text(reader->data, bytes, size);
		if (text)
			store_pointer(structure, field->offset, text);
		else
			fail(reader);
		break;
	case SS_FIELD_BYTES:
		if (size != 4 && size != field->size) { /* an address */
			fail(reader);
			break;
		}
		memcpy(structure + field->offset, bytes, size);
		memcpy(structure + field->count, &length, sizeof(length));
		break;
	case SS_FIELD_WORDS:
		if (size == field->size)
			memcpy(structure + field->offset, bytes, size);
		else
			fail(reader);
		break;
	case SS_FIELD_STRUCT:
		read_nested(reader, field, bytes, size, structure + field->offset, depth);
		break;
	case SS_FIELD_POINTER:
		element = reader->allocate(reader->data, field->schema->size, false);
		if (element) {
			store_pointer(structure, field->offset, element);
			read_nested(reader, field, bytes, size, element, depth);
		} else {
			fail(reader);
		}
		break;
	default: /* ARRAY, LIST, OWNED, VECTOR */
		element = next_element(field, structure);
		if (element)
			read_nested(reader, field, bytes, size, element, depth);
		else
			fail(reader);
		break;
	}
}

static void read_fields(struct ss_schema_reader *reader, const struct ss_schema *schema,
			char *structure, unsigned depth)
{
	struct ss_cursor *cursor = &reader->cursor;

	if (schema->none)
		memcpy(structure, schema->none, schema->size);
	if (depth > DEPTH_MAX)
		fail(reader);
	else if (has_lists(schema))
		allocate_lists(reader, schema, structure);
	while (!cursor->failed && ss_cursor_left(cursor) > 0) {
		uint64_t key = ss_cursor_uleb128(cursor);
		const struct ss_field *field = find_field(schema, key >> 1);
		if (key & 1) {
			size_t size = ss_cursor_index(cursor, ss_cursor_left(cursor) + 1);
			const uint8_t *bytes = ss_cursor_take(cursor, size);
			if (!bytes)
				break;
			if (field && (field->type == SS_FIELD_UNSIGNED ||
				      field->type == SS_FIELD_SIGNED ||
				      field->type == SS_FIELD_INDEXES))
				fail(reader);
			else if (field)
				read_bytes(reader, field, bytes, size, structure, depth);
		} else if (!field) {
			(void)ss_cursor_uleb128(cursor);
		} else if (is_number(reader, field)) {
			read_number(reader, field, structure);
		} else {
			fail(reader);
		}
	}
}

void ss_schema_read(struct ss_schema_reader *reader, const struct ss_schema *schema,
		    void *structure)
{
	read_fields(reader, schema, structure, 0);
}

/* Copying ------------------------------------------------------------------ */

enum { ALIGNMENT = 8 };

/* The first of two passes only counts: block is NULL. */
struct copying {
	char *block;
	size_t size;
	const char *(*text)(void *data, const char *text);
	void *data;
	bool failed;
};

static char *take(struct copying *copying, size_t size)
{
	size_t at = copying->size;

	copying->size += (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	return copying->block ? copying->block + at : NULL;
}

static const char *copy_text(struct copying *copying, const char *text)
{
	if (copying->text && copying->block) {
		const char *copy = copying->text(copying->data, text);
		copying->failed |= !copy;
		return copy;
	}
	size_t size = strlen(text) + 1;
	char *copy = copying->text ? NULL : take(copying, size);
	return copy ? memcpy(copy, text, size) : NULL;
}

static void copy_fields(struct copying *copying, const struct ss_schema *schema,
			const char *from, char *to);

static const char *copy_list(struct copying *copying, const struct ss_schema *schema,
			     const char *items, size_t count)
{
	char *copies = count ? take(copying, count * schema->size) : NULL;

	for (size_t i = 0; i < count; i++)
		copy_fields(copying, schema, items + i * schema->size,
			    copies ? copies + i * schema->size : NULL);
	return copies;
}

static void copy_field(struct copying *copying, const struct ss_field *field,
		       const char *from, char *to)
{
	const char *pointer;

	switch (field->type) {
	case SS_FIELD_STRUCT:
		copy_fields(copying, field->schema, from + field->offset,
			    to ? to + field->offset : NULL);
		return;
	case SS_FIELD_TEXT:
		pointer = load_pointer(from, field->offset);
		pointer = pointer ? copy_text(copying, pointer) : NULL;
		break;
	case SS_FIELD_POINTER:
		pointer = load_pointer(from, field->offset);
		pointer = copy_list(copying, field->schema, pointer, pointer != NULL);
		break;
	case SS_FIELD_LIST:
		pointer = copy_list(copying, field->schema,
				    load_pointer(from, field->offset),
				    load_size(from, field->count));
		if (to)
			memcpy(to + field->count, from + field->count, sizeof(size_t));
		break;
	default:
		if (to)
			memcpy(to + field->offset, from + field->offset, field->size);
		if (to && field->type == SS_FIELD_BYTES)
			memcpy(to + field->count, from + field->count, sizeof(unsigned));
		return;
	}
	if (to)
		store_pointer(to, field->offset, pointer);
}

static void copy_fields(struct copying *copying, const struct ss_schema *schema,
			const char *from, char *to)
{
	if (to && schema->none)
		memcpy(to, schema->none, schema->size);
	for (size_t i = 0; i < schema->count; i++)
		copy_field(copying, &schema->fields[i], from, to);
}

void *ss_schema_copy(const struct ss_schema *schema, const void *structure,
		     const char *(*text)(void *data, const char *text), void *data,
		     size_t *bytes)
{
	struct copying copying = { .text = text, .data = data };

	(void)copy_list(&copying, schema, structure, 1);
	_cleanup_free_ char *block = calloc(1, copying.size);
	if (!block)
		return NULL;
	copying.block = block;
	copying.size = 0;
	(void)copy_list(&copying, schema, structure, 1);
	if (copying.failed)
		return NULL;
	if (bytes)
		*bytes += copying.size;
	return take_ptr(block);
}

bool ss_schema_copy_texts(const struct ss_schema *schema, void *structure,
			  const char *(*text)(void *data, const char *text), void *data)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct ss_field *field = &schema->fields[i];
		const char *from = field->type == SS_FIELD_TEXT ?
					   load_pointer(structure, field->offset) :
					   NULL;
		const char *copy = from ? text(data, from) : NULL;
		if (from && !copy)
			return false;
		if (from)
			store_pointer(structure, field->offset, copy);
	}
	return true;
}
