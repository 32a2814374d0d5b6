#include "runtime/python/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/load.h"

enum {
	CODES_MAX = 1 << 13,
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

struct query {
	const struct ss_python_kept *kept;
	uint64_t address;
	uint32_t size;
	const uint8_t *bytes;
};

static bool is_code(const void *context, uint32_t index)
{
	const struct query *query = context;

	return query->kept->codes.items[index].code.address == query->address;
}

static bool is_part(const void *context, uint32_t index)
{
	const struct query *query = context;
	const struct part *part = &query->kept->parts.items[index];

	return part->address == query->address && part->size == query->size &&
	       memcmp(part->bytes, query->bytes, query->size) == 0;
}

static uint32_t find_code(const struct ss_python_kept *kept, uint64_t address)
{
	const struct query query = { .kept = kept, .address = address };

	return ss_hash_find(&kept->by_address, address, is_code, &query);
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

static bool is_same(const struct ss_python_kept *kept, const struct part *part,
		    const uint8_t *bytes)
{
	struct ss_python_identity identity;

	if (part->bytes)
		return memcmp(part->bytes, bytes, part->size) == 0;
	return ss_python_identity_parse(&kept->layout, bytes, &identity) &&
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
	if (!is_same_layout(&kept->layout, layout) || kept->codes.count >= CODES_MAX ||
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
	const struct query query = { kept, address, (uint32_t)size, bytes };

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

void ss_python_kept_add(struct ss_python_kept *kept, const struct ss_memory *memory,
			const struct ss_python_code *code)
{
	uint32_t index = find_code(kept, code->address);
	struct kept_code added;
	bool is_new = index == SS_HASH_NONE;

	if (kept->codes.count >= CODES_MAX || kept->bytes >= BYTES_MAX)
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
