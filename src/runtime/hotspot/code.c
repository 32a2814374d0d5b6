#include "runtime/hotspot/hotspot.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
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
	ss_idtable_deinit(&methods->ids);
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

bool ss_hotspot_methods_find(struct ss_hotspot_methods *methods, uint64_t address,
			     const struct ss_hotspot_method **ret)
{
	uint32_t index = ss_idtable_find(&methods->ids, &address, sizeof(address));

	*ret = NULL;
	if (index == SS_ID_NONE) {
		if (methods->items.count >= METHODS_MAX)
			return true;
		if (!ss_vector_reserve(&methods->items, methods->items.count + 1) ||
		    (index = ss_idtable_add(&methods->ids, &address, sizeof(address),
					    NULL)) == SS_ID_NONE)
			return false;
		methods->items.items[methods->items.count++] =
			(struct ss_hotspot_method){ .address = address };
		read_method(methods, &methods->items.items[index]);
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

enum {
	HEAPS_MAX = 16, /* there are 3 */
	BLOBS_MAX = 1 << 16,
	NAME_SIZE = 128,
	SEGMENT_FREE = 0xff,
	SHIFT_MIN = 3,
	SHIFT_MAX = 16,
	FRAME_MAX = 1 << 20,
	CODE_MAX = 64 << 20,
	DATA_MAX = 64 << 20,
	SCOPE_SIZE = 15, /* three numbers of at most 5 bytes */
};

/* Heaps -------------------------------------------------------------------- */

static bool read_field(const struct ss_hotspot_codes *codes, uint64_t address,
		       enum ss_hotspot_value field, uint64_t *ret)
{
	return ss_memory_read_u64(codes->memory, address + codes->layout->at[field], ret);
}

/* An int. */
static bool read_int(const struct ss_hotspot_codes *codes, uint64_t address,
		     enum ss_hotspot_value field, int32_t *ret)
{
	uint32_t value;

	if (!ss_memory_read_u32(codes->memory, address + codes->layout->at[field],
				&value))
		return false;
	*ret = (int32_t)value;
	return true;
}

static bool read_heap(const struct ss_hotspot_codes *codes, uint64_t heap,
		      struct ss_hotspot_heap *ret)
{
	const uint64_t *at = codes->layout->at;
	int32_t shift;

	*ret = (struct ss_hotspot_heap){};
	if (!read_field(codes, heap + at[SS_HOTSPOT_HEAP_MEMORY], SS_HOTSPOT_SPACE_LOW,
			&ret->range.start) ||
	    !read_field(codes, heap + at[SS_HOTSPOT_HEAP_MEMORY], SS_HOTSPOT_SPACE_HIGH,
			&ret->range.end) ||
	    !read_field(codes, heap + at[SS_HOTSPOT_HEAP_SEGMENTS], SS_HOTSPOT_SPACE_LOW,
			&ret->segments) ||
	    !read_int(codes, heap, SS_HOTSPOT_HEAP_SHIFT, &shift) || shift < SHIFT_MIN ||
	    shift > SHIFT_MAX)
		return false;
	ret->shift = (unsigned)shift;
	return ret->range.start < ret->range.end;
}

/* False without memory. */
static bool add_heap(struct ss_hotspot_codes *codes, uint64_t pointer)
{
	struct ss_hotspot_heap heap;
	uint64_t address;

	if (!ss_memory_read_u64(codes->memory, pointer, &address) ||
	    !read_heap(codes, address, &heap))
		return true;
	struct ss_hotspot_heap *slot = ss_vector_push(&codes->heaps);
	if (!slot)
		return false;
	*slot = heap;
	return true;
}

bool ss_hotspot_codes_init(struct ss_hotspot_codes *codes)
{
	const uint64_t *at = codes->layout->at;
	uint64_t array;
	uint64_t data;
	int32_t count;

	if (codes->layout->one_heap)
		return add_heap(codes, at[SS_HOTSPOT_HEAP_AT]);
	if (!ss_memory_read_u64(codes->memory, at[SS_HOTSPOT_HEAPS_AT], &array) ||
	    !read_int(codes, array, SS_HOTSPOT_ARRAY_LENGTH, &count) ||
	    !read_field(codes, array, SS_HOTSPOT_ARRAY_DATA, &data))
		return true;
	for (int32_t i = 0; i < SS_MIN(count, (int32_t)HEAPS_MAX); i++) {
		if (!add_heap(codes, data + (uint64_t)i * WORD))
			return false;
	}
	return true;
}

void ss_hotspot_codes_deinit(struct ss_hotspot_codes *codes)
{
	ss_vector_free(&codes->heaps);
	ss_vector_free(&codes->blobs);
	ss_idtable_deinit(&codes->ids);
}

static const struct ss_hotspot_heap *find_heap(const struct ss_hotspot_codes *codes,
					       uint64_t pc)
{
	for (size_t i = 0; i < codes->heaps.count; i++) {
		if (ss_hotspot_contains(&codes->heaps.items[i].range, pc))
			return &codes->heaps.items[i];
	}
	return NULL;
}

bool ss_hotspot_is_code(const struct ss_hotspot_codes *codes, uint64_t pc)
{
	return find_heap(codes, pc) != NULL;
}

/* The block of a segment: each byte of the map says how far back, at least, it begins.
   Follows CodeHeap::find_block_for(). */
static bool find_block(const struct ss_hotspot_codes *codes,
		       const struct ss_hotspot_heap *heap, uint64_t pc, uint64_t *ret)
{
	uint64_t segment = (pc - heap->range.start) >> heap->shift;
	uint8_t back = 0;

	do {
		if (back > segment)
			return false;
		segment -= back;
		if (!ss_memory_read(codes->memory, heap->segments + segment, &back, 1) ||
		    back == SEGMENT_FREE)
			return false;
	} while (back > 0);
	*ret = heap->range.start + (segment << heap->shift);
	return true;
}

/* Blobs -------------------------------------------------------------------- */

static struct ss_hotspot_range range_of(uint64_t base, int32_t start, int32_t end)
{
	if (start < 0 || end < start || end > DATA_MAX)
		return (struct ss_hotspot_range){};
	return (struct ss_hotspot_range){ base + (uint64_t)start, base + (uint64_t)end };
}

/* From 23 on. */
static bool read_separate_data(const struct ss_hotspot_codes *codes,
			       struct ss_hotspot_blob *blob)
{
	const uint64_t address = blob->address;
	uint64_t immutable;
	uint64_t mutable;
	int32_t pcs;
	int32_t scopes;
	int32_t size;
	int32_t relocations;
	int32_t mutable_size;
	int32_t deopt;

	if (!read_field(codes, address, SS_HOTSPOT_NMETHOD_IMMUTABLE, &immutable) ||
	    !read_field(codes, address, SS_HOTSPOT_BLOB_MUTABLE, &mutable) ||
	    !read_int(codes, address, SS_HOTSPOT_NMETHOD_PCS, &pcs) ||
	    !read_int(codes, address, SS_HOTSPOT_NMETHOD_SCOPES, &scopes) ||
	    !read_int(codes, address, SS_HOTSPOT_NMETHOD_IMMUTABLE_BYTES, &size) ||
	    !read_int(codes, address, SS_HOTSPOT_BLOB_RELOCATIONS, &relocations) ||
	    !read_int(codes, address, SS_HOTSPOT_BLOB_MUTABLE_BYTES, &mutable_size) ||
	    !read_int(codes, address, SS_HOTSPOT_NMETHOD_DEOPT, &deopt))
		return false;
	blob->pcs = range_of(immutable, pcs, scopes);
	blob->scopes = range_of(immutable, scopes, size);
	blob->metadata = range_of(mutable, relocations, mutable_size);
	blob->deopt = deopt > 0 ? address + (uint64_t)deopt : 0;
	return true;
}

/* The debug information and the deoptimisation handler, as offsets. */
static bool read_scopes_offset(const struct ss_hotspot_codes *codes,
			       struct ss_hotspot_blob *blob, int32_t *ret)
{
	const uint64_t address = blob->address;
	uint64_t scopes;
	int32_t deopt;

	if (codes->layout->code_offsets) {
		if (!read_int(codes, address, SS_HOTSPOT_NMETHOD_SCOPES, ret) ||
		    !read_int(codes, address, SS_HOTSPOT_NMETHOD_DEOPT, &deopt))
			return false;
		blob->deopt = deopt > 0 ? address + (uint64_t)deopt : 0;
		return true;
	}
	if (!read_field(codes, address, SS_HOTSPOT_NMETHOD_SCOPES, &scopes) ||
	    !read_field(codes, address, SS_HOTSPOT_NMETHOD_DEOPT, &blob->deopt) ||
	    scopes < address || scopes - address > DATA_MAX)
		return false;
	*ret = (int32_t)(scopes - address);
	return true;
}

/* Up to 22: metadata, scopes and PcDescs follow each other. */
static bool read_data(const struct ss_hotspot_codes *codes, struct ss_hotspot_blob *blob)
{
	const uint64_t address = blob->address;
	int32_t scopes;
	int32_t metadata;
	int32_t pcs;
	int32_t end;

	if (!read_scopes_offset(codes, blob, &scopes) ||
	    !read_int(codes, address, SS_HOTSPOT_NMETHOD_METADATA, &metadata) ||
	    !read_int(codes, address, SS_HOTSPOT_NMETHOD_PCS, &pcs) ||
	    !read_int(codes, address, SS_HOTSPOT_NMETHOD_PCS_END, &end))
		return false;
	blob->pcs = range_of(address, pcs, end);
	blob->scopes = range_of(address, scopes, pcs);
	blob->metadata = range_of(address, metadata, scopes);
	return true;
}

static bool read_nmethod(const struct ss_hotspot_codes *codes,
			 struct ss_hotspot_blob *blob)
{
	int32_t original_pc;

	if (!read_field(codes, blob->address, SS_HOTSPOT_NMETHOD_METHOD, &blob->method) ||
	    !read_int(codes, blob->address, SS_HOTSPOT_NMETHOD_ORIGINAL_PC,
		      &original_pc) ||
	    !(codes->layout->separate_data ? read_separate_data(codes, blob) :
					     read_data(codes, blob)))
		return false;
	blob->original_pc = original_pc > 0 ? (uint32_t)original_pc : 0;
	return true;
}

static bool read_code_range(const struct ss_hotspot_codes *codes,
			    struct ss_hotspot_blob *blob)
{
	const uint64_t address = blob->address;
	int32_t code;
	int32_t data;

	if (!codes->layout->code_offsets)
		return read_field(codes, address, SS_HOTSPOT_BLOB_CODE_BEGIN,
				  &blob->code.start) &&
		       read_field(codes, address, SS_HOTSPOT_BLOB_CODE_END,
				  &blob->code.end);
	if (!read_int(codes, address, SS_HOTSPOT_BLOB_CODE_OFFSET, &code) ||
	    !read_int(codes, address, SS_HOTSPOT_BLOB_DATA_OFFSET, &data))
		return false;
	blob->code = range_of(address, code, data);
	return true;
}

/* An int, and a short from 23 on. */
static bool read_frame_complete(const struct ss_hotspot_codes *codes,
				struct ss_hotspot_blob *blob)
{
	const uint64_t address =
		blob->address + codes->layout->at[SS_HOTSPOT_BLOB_FRAME_COMPLETE];
	int32_t offset = 0;
	int16_t narrow;

	if (!codes->layout->separate_data) {
		if (!ss_memory_read(codes->memory, address, &offset, sizeof(offset)))
			return false;
	} else {
		if (!ss_memory_read(codes->memory, address, &narrow, sizeof(narrow)))
			return false;
		offset = narrow;
	}
	blob->frame_complete = blob->code.start + (offset > 0 ? (uint64_t)offset : 0);
	return true;
}

/* Reads what the kinds have in common. */
static bool read_blob(struct ss_hotspot_codes *codes, uint64_t block,
		      struct ss_hotspot_blob *blob)
{
	const uint64_t *at = codes->layout->at;
	char name[NAME_SIZE];
	uint64_t name_at;
	uint8_t used;
	int32_t size;
	int32_t frame;

	if (!ss_memory_read(codes->memory, block + at[SS_HOTSPOT_BLOCK_USED], &used, 1) ||
	    used != 1 || !read_int(codes, blob->address, SS_HOTSPOT_BLOB_BYTES, &size) ||
	    size <= 0 || size > CODE_MAX || !read_code_range(codes, blob) ||
	    blob->code.start < blob->address || blob->code.end < blob->code.start ||
	    blob->code.end > blob->address + (uint64_t)size ||
	    !read_frame_complete(codes, blob) ||
	    !read_int(codes, blob->address, SS_HOTSPOT_BLOB_FRAME_SIZE, &frame) ||
	    frame > FRAME_MAX / WORD ||
	    !read_field(codes, blob->address, SS_HOTSPOT_BLOB_NAME, &name_at) ||
	    !ss_memory_read_string(codes->memory, name_at, name, sizeof(name)))
		return false;
	blob->frame_size = frame > 0 ? (uint32_t)frame * WORD : 0;
	blob->name = ss_intern_string(codes->strings, name);
	if (strcmp(name, "Interpreter") == 0)
		blob->kind = SS_HOTSPOT_INTERPRETER;
	else if (strcmp(name, "nmethod") == 0 || strcmp(name, "native nmethod") == 0)
		blob->kind = SS_HOTSPOT_NMETHOD;
	return blob->name && (blob->kind != SS_HOTSPOT_NMETHOD ||
			      (blob->frame_size > 0 && read_nmethod(codes, blob)));
}

bool ss_hotspot_codes_find(struct ss_hotspot_codes *codes, uint64_t pc,
			   const struct ss_hotspot_blob **ret)
{
	const struct ss_hotspot_heap *heap = find_heap(codes, pc);
	uint64_t block;

	*ret = NULL;
	if (!heap || !find_block(codes, heap, pc, &block))
		return true;
	const uint64_t address = block + codes->layout->at[SS_HOTSPOT_BLOCK_SIZE];
	uint32_t index = ss_idtable_find(&codes->ids, &address, sizeof(address));
	if (index == SS_ID_NONE) {
		if (codes->blobs.count >= BLOBS_MAX)
			return true;
		if (!ss_vector_reserve(&codes->blobs, codes->blobs.count + 1) ||
		    (index = ss_idtable_add(&codes->ids, &address, sizeof(address),
					    NULL)) == SS_ID_NONE)
			return false;
		codes->blobs.items[codes->blobs.count++] =
			(struct ss_hotspot_blob){ .address = address };
		codes->blobs.items[index].valid =
			read_blob(codes, block, &codes->blobs.items[index]);
	}
	const struct ss_hotspot_blob *blob = &codes->blobs.items[index];
	if (blob->valid && ss_hotspot_contains(&blob->code, pc))
		*ret = blob;
	return true;
}

/* Scopes ------------------------------------------------------------------- */

static bool read_pc_desc(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t index,
			 int32_t *ret_pc, int32_t *ret_scope)
{
	uint64_t address =
		blob->pcs.start + index * codes->layout->at[SS_HOTSPOT_PC_SIZE];

	return read_int(codes, address, SS_HOTSPOT_PC_OFFSET, ret_pc) &&
	       read_int(codes, address, SS_HOTSPOT_PC_SCOPE, ret_scope);
}

/* The PcDesc at pc or, if there is none, the next one. They are in ascending order; the first
   and the last one are marks. */
static bool find_pc_desc(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t pc, uint64_t *ret,
			 bool *ret_exact)
{
	const uint64_t size = codes->layout->at[SS_HOTSPOT_PC_SIZE];
	uint64_t count = size ? (blob->pcs.end - blob->pcs.start) / size : 0;
	int64_t wanted = (int64_t)(pc - blob->code.start);
	uint64_t low = 0;
	uint64_t high = count;
	int32_t offset;
	int32_t scope;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (!read_pc_desc(codes, blob, middle, &offset, &scope))
			return false;
		if (offset < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (low >= count || !read_pc_desc(codes, blob, low, &offset, &scope))
		return false;
	*ret = low;
	*ret_exact = offset == wanted;
	return true;
}

bool ss_hotspot_is_exact(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t pc)
{
	uint64_t index;
	bool exact;

	return find_pc_desc(codes, blob, pc, &index, &exact) && exact;
}

/* One scope. A sender is written before its callee. */
static bool read_scope(const struct ss_hotspot_codes *codes,
		       const struct ss_hotspot_blob *blob, uint32_t offset,
		       uint32_t *ret_sender, struct ss_hotspot_scope *ret)
{
	uint8_t bytes[SCOPE_SIZE];
	uint64_t address = blob->scopes.start + offset;

	if (!ss_hotspot_contains(&blob->scopes, address))
		return false;
	size_t size = codes->memory->read(
		codes->memory, address, bytes,
		SS_MIN((uint64_t)sizeof(bytes), blob->scopes.end - address));
	struct ss_cursor cursor = { .at = bytes, .end = bytes + size };
	uint32_t sender = ss_hotspot_number(codes->layout, &cursor);
	uint64_t method = ss_hotspot_number(codes->layout, &cursor);
	uint32_t bci = ss_hotspot_number(codes->layout, &cursor);
	uint64_t slot = blob->metadata.start + (method - 1) * WORD;
	if (cursor.failed || method == 0 || sender >= offset || bci > UINT16_MAX + 1 ||
	    !ss_hotspot_contains(&blob->metadata, slot) ||
	    !ss_memory_read_u64(codes->memory, slot, &ret->method))
		return false;
	*ret_sender = sender;
	ret->bci = (int32_t)bci - 1;
	return true;
}

/* The scopes of a PcDesc; 0: it has none, or they are not valid. */
static size_t read_scopes(const struct ss_hotspot_codes *codes,
			  const struct ss_hotspot_blob *blob, uint64_t index,
			  struct ss_hotspot_scope *ret)
{
	size_t count = 0;
	int32_t pc;
	int32_t scope;

	if (!read_pc_desc(codes, blob, index, &pc, &scope) || scope <= 0)
		return 0;
	for (uint32_t at = (uint32_t)scope; at > 0; count++) {
		if (count == SS_HOTSPOT_SCOPES_MAX ||
		    !read_scope(codes, blob, at, &at, &ret[count]))
			return 0;
	}
	return ret[count - 1].method == blob->method ? count : 0;
}

/* Keeps what the scopes have in common with others, from the outermost on. In the innermost of
   these, the bytecode may differ. */
static size_t keep_common(struct ss_hotspot_scope *scopes, size_t count,
			  const struct ss_hotspot_scope *others, size_t other_count)
{
	size_t common = 0;

	while (common < count && common < other_count) {
		struct ss_hotspot_scope *scope = &scopes[count - 1 - common];
		const struct ss_hotspot_scope *other = &others[other_count - 1 - common];
		if (scope->method != other->method)
			break;
		common++;
		if (scope->bci == other->bci)
			continue;
		scope->bci = -1;
		break;
	}
	memmove(scopes, scopes + (count - common), common * sizeof(*scopes));
	return common;
}

size_t ss_hotspot_scopes(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t pc,
			 struct ss_hotspot_scope ret[SS_HOTSPOT_SCOPES_MAX])
{
	struct ss_hotspot_scope before[SS_HOTSPOT_SCOPES_MAX];
	uint64_t index = 0;
	bool exact = false;
	size_t count = 0;

	if (find_pc_desc(codes, blob, pc, &index, &exact))
		count = read_scopes(codes, blob, index, ret);
	if (exact && count > 0)
		return count;
	if (count > 0 && index > 0) {
		size_t other = read_scopes(codes, blob, index - 1, before);
		count = keep_common(ret, count, before, other);
	}
	if (count == 0 || index == 0) {
		ret[0] = (struct ss_hotspot_scope){ .method = blob->method, .bci = -1 };
		count = 1;
	}
	return count;
}
