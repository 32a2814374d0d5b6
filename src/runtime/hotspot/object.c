#include "runtime/hotspot/hotspot.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	WORD = 8,
	HEAP_BYTES_MAX = 1 << 17,    /* of ZHeap, which has 16,000 */
	GENERATION_BYTES = 4 * WORD, /* up to what is moved, and a word of that */
	GRANULE_SHIFT = 21,
	/* A pointer: one of four bits, after which the address begins */
	REMEMBERED_BITS = 3 << 4,
	REMAPPED_SHIFT = 12,
	REMAPPED_BITS = 4,
	COLOUR_BITS = 16,
	YOUNG_CHANGED = 1,
	OLD_CHANGED = 2,
	ALIGNMENT_SHIFT = 3,
	/* An entry of what was moved: whether it is set, to where, from where */
	ENTRY_SET = 1,
	ENTRY_TO_SHIFT = 1,
	ENTRY_TO_BITS = 45,
	ENTRY_FROM_SHIFT = 46,
	ENTRIES_MAX = 1 << 20,
	ENTRIES_AT_ONCE = 16,
	PROBES_MAX = 1024,
	FORWARDING_BYTES_MAX = 512,
};

/* Finding it --------------------------------------------------------------- */

/* ZHeap begins with what allocates pages, and has a table of pages. Each generation, which is in
   ZHeap, too, begins with its number, the addresses of both, and its table of what is moved. */
static bool find_generations(struct ss_hotspot_zgc *zgc, uint64_t heap)
{
	const uint64_t *values = zgc->layout->at;
	const uint64_t size = values[SS_HOTSPOT_ZGC_HEAP_BYTES];
	const uint64_t map = values[SS_HOTSPOT_ZGC_GRANULES];
	struct ss_hotspot_moves *const generations[] = { &zgc->young, &zgc->old };
	size_t found = 0;

	if (size > HEAP_BYTES_MAX || map > GENERATION_BYTES)
		return false;
	_cleanup_free_ uint8_t *bytes = malloc(size);
	if (!bytes || !ss_memory_read(zgc->fresh, heap, bytes, size))
		return false;
	for (size_t at = 0; at + GENERATION_BYTES + map <= size; at += WORD) {
		if (bytes[at] >= SS_ARRAY_SIZE(generations) ||
		    ss_load_u64(bytes, at + WORD) != heap ||
		    ss_load_u64(bytes, at + 2ul * WORD) !=
			    heap + values[SS_HOTSPOT_ZGC_PAGES])
			continue;
		struct ss_hotspot_moves *moves = generations[bytes[at]];
		if (moves->entries)
			return false;
		moves->count = ss_load_u64(bytes, at + 3ul * WORD);
		moves->entries = ss_load_u64(bytes, at + 3ul * WORD + map);
		if (moves->count > (zgc->offset_mask + 1) >> GRANULE_SHIFT ||
		    !moves->entries || moves->entries % WORD != 0)
			return false;
		found++;
	}
	return found == SS_ARRAY_SIZE(generations);
}

bool ss_hotspot_zgc_init(struct ss_hotspot_zgc *zgc,
			 const struct ss_hotspot_layout *layout,
			 const struct ss_memory *fresh)
{
	const uint64_t *at = layout->at;
	uint64_t values;
	uint64_t mask_at;
	uint64_t heap;

	*zgc = (struct ss_hotspot_zgc){ .layout = layout, .fresh = fresh };
	/* Only the generational ZGC has this mask. */
	if (!at[SS_HOTSPOT_ZGC_AT] || !at[SS_HOTSPOT_ZGC_GOOD_MASK])
		return true;
	if (!ss_memory_read_u64(fresh, at[SS_HOTSPOT_ZGC_AT], &values) ||
	    !ss_memory_read_u64(fresh, values + at[SS_HOTSPOT_ZGC_OFFSET_MASK],
				&mask_at) ||
	    !ss_memory_read_u64(fresh, mask_at, &zgc->offset_mask))
		return false;
	/* With another collector, the values are 0. */
	zgc->used = zgc->offset_mask != 0;
	return !zgc->used ||
	       (at[SS_HOTSPOT_ZGC_FORWARDING_BYTES] &&
		(zgc->offset_mask & (zgc->offset_mask + 1)) == 0 &&
		zgc->offset_mask >> ENTRY_TO_BITS == 0 &&
		ss_memory_read_u64(fresh, values + at[SS_HOTSPOT_ZGC_GOOD_MASK],
				   &zgc->good_mask_at) &&
		ss_memory_read_u64(fresh, values + at[SS_HOTSPOT_ZGC_SHIFT],
				   &zgc->shift_at) &&
		ss_memory_read_u64(fresh, at[SS_HOTSPOT_GC_AT], &heap) &&
		find_generations(zgc, heap + at[SS_HOTSPOT_ZGC_HEAP]));
}

/* Objects that were moved --------------------------------------------------- */

/* Where in the table of a page an object has its entry, or after that: an integer hash of
   Thomas Wang. */
static uint32_t hash_index(uint32_t key)
{
	key = ~key + (key << 15);
	key ^= key >> 12;
	key += key << 2;
	key ^= key >> 4;
	key *= 2057;
	return key ^ (key >> 16);
}

/* Looks an object up in the table of its page. *ret: 0: it has not been moved. */
static bool find_entry(const struct ss_hotspot_zgc *zgc, uint64_t entries,
		       uint64_t length, uint64_t from, uint64_t *ret)
{
	uint64_t index = hash_index((uint32_t)from) & (length - 1);

	for (int i = 0; i < PROBES_MAX;) {
		uint8_t bytes[ENTRIES_AT_ONCE * WORD];
		size_t count = SS_MIN((uint64_t)ENTRIES_AT_ONCE, length - index);
		if (!ss_memory_read(zgc->fresh, entries + index * WORD, bytes,
				    count * WORD))
			return false;
		for (size_t k = 0; k < count; k++) {
			uint64_t entry = ss_load_u64(bytes, k * WORD);
			*ret = 0;
			if (!(entry & ENTRY_SET))
				return true;
			*ret = entry;
			if (entry >> ENTRY_FROM_SHIFT == from)
				return true;
		}
		i += (int)count;
		index = (index + count) & (length - 1);
	}
	return false;
}

/* The table of the page that a collection of a generation moves, or has moved, from an address;
   *ret: 0: none. */
static bool find_forwarding(const struct ss_hotspot_zgc *zgc,
			    const struct ss_hotspot_moves *moves, uint64_t address,
			    uint64_t *ret)
{
	const uint64_t granule = (address & zgc->offset_mask) >> GRANULE_SHIFT;

	return granule < moves->count &&
	       ss_memory_read_u64(zgc->fresh, moves->entries + granule * WORD, ret);
}

/* Whether a word is in a struct. Offsets are the target's: one that it calls static has any value. */
static bool has_word(uint64_t size, uint64_t offset)
{
	return size >= WORD && offset <= size - WORD;
}

/* Where an object is that was at an address: the same one if it has not been moved yet. */
static bool follow(const struct ss_hotspot_zgc *zgc, uint64_t forwarding,
		   uint64_t address, uint64_t *ret)
{
	const uint64_t *at = zgc->layout->at;
	const uint64_t size = at[SS_HOTSPOT_ZGC_FORWARDING_BYTES];
	const uint64_t offset = address & zgc->offset_mask;
	uint8_t bytes[FORWARDING_BYTES_MAX];
	uint64_t entry;

	*ret = address;
	if (!forwarding)
		return true;
	if (size > sizeof(bytes) ||
	    !has_word(size, at[SS_HOTSPOT_ZGC_FORWARDING_START]) ||
	    !has_word(size, at[SS_HOTSPOT_ZGC_FORWARDING_SHIFT]) ||
	    !has_word(size, at[SS_HOTSPOT_ZGC_FORWARDING_LENGTH]) ||
	    !ss_memory_read(zgc->fresh, forwarding, bytes, size))
		return false;
	const uint64_t start = ss_load_u64(bytes, at[SS_HOTSPOT_ZGC_FORWARDING_START]);
	const uint64_t shift = ss_load_u64(bytes, at[SS_HOTSPOT_ZGC_FORWARDING_SHIFT]);
	const uint64_t length = ss_load_u64(bytes, at[SS_HOTSPOT_ZGC_FORWARDING_LENGTH]);
	if (offset < start || shift < ALIGNMENT_SHIFT || shift > GRANULE_SHIFT ||
	    length == 0 || length > ENTRIES_MAX || (length & (length - 1)) != 0)
		return false;
	const uint64_t from = (offset - start) >> shift;
	if (from >> (64 - ENTRY_FROM_SHIFT) != 0 ||
	    !find_entry(zgc, forwarding + size, length, from, &entry))
		return false;
	if (entry)
		*ret = (address & ~zgc->offset_mask) |
		       (entry >> ENTRY_TO_SHIFT & zgc->offset_mask &
			((UINT64_C(1) << ENTRY_TO_BITS) - 1));
	return true;
}

/* Pointers ------------------------------------------------------------------ */

/* Which of the four bits is set. */
static bool find_bit(uint64_t pointer, unsigned *ret)
{
	unsigned bits = pointer >> REMAPPED_SHIFT & ((1 << REMAPPED_BITS) - 1);

	if (bits == 0 || (bits & (bits - 1)) != 0)
		return false;
	*ret = (unsigned)__builtin_ctz(bits);
	return true;
}

/* The bit of pointers that need no look-up, at present. */
static bool read_good_bit(const struct ss_hotspot_zgc *zgc, unsigned *ret)
{
	uint64_t mask;
	uint64_t shift;

	return ss_memory_read_u64(zgc->fresh, zgc->good_mask_at, &mask) &&
	       find_bit(mask, ret) &&
	       ss_memory_read_u64(zgc->fresh, zgc->shift_at, &shift) &&
	       shift == REMAPPED_SHIFT + *ret + 1;
}

/* The number of the bit has two digits: the lower one changes with each collection of the young
   generation, the higher one with each of the old one. */
static bool follow_stale(const struct ss_hotspot_zgc *zgc, uint64_t pointer,
			 uint64_t address, unsigned changed, uint64_t *ret)
{
	const bool only_old = changed == OLD_CHANGED ||
			      (pointer & REMEMBERED_BITS) == REMEMBERED_BITS;
	uint64_t young = 0;
	uint64_t old = 0;

	if (changed != YOUNG_CHANGED && !find_forwarding(zgc, &zgc->old, address, &old))
		return false;
	if ((changed == YOUNG_CHANGED || !only_old) &&
	    !find_forwarding(zgc, &zgc->young, address, &young))
		return false;
	/* Which generation the object was of is not known. */
	if (young && old)
		return false;
	return follow(zgc, young ? young : old, address, ret);
}

bool ss_hotspot_zgc_find(const struct ss_hotspot_zgc *zgc, uint64_t pointer,
			 uint64_t *ret)
{
	unsigned bit;
	unsigned good;

	if (pointer >> COLOUR_BITS == 0) {
		*ret = 0;
		return true;
	}
	if (!find_bit(pointer, &bit) || !read_good_bit(zgc, &good))
		return false;
	const uint64_t address = pointer >> (REMAPPED_SHIFT + bit + 1);
	if (address % WORD != 0 || address <= zgc->offset_mask)
		return false;
	if (bit == good) {
		*ret = address;
		return true;
	}
	return follow_stale(zgc, pointer, address, bit ^ good, ret);
}

bool ss_hotspot_zgc_is_same(const struct ss_hotspot_zgc *zgc, uint64_t address,
			    uint64_t object)
{
	const struct ss_hotspot_moves *const both[] = { &zgc->young, &zgc->old };
	uint64_t forwarding;
	uint64_t moved;

	if (address == object)
		return true;
	for (size_t i = 0; i < SS_ARRAY_SIZE(both); i++) {
		if (find_forwarding(zgc, both[i], address, &forwarding) && forwarding &&
		    follow(zgc, forwarding, address, &moved) && moved == object)
			return true;
	}
	return false;
}

enum {
	SUPERS_MAX = 64,
	FIELDS_MAX = 4096,
	NAME_SIZE_MAX = 96,
	FLAGS_MAX = 4096,
	FLAG_NAME_SIZE = 64,
	STREAM_MAX = 1 << 16,
	OFFSET_MAX = 1 << 20,
	SHIFT_MAX = 10, /* of classes in compact headers */
	/* The mark of an object, of which a compact header consists (markWord.hpp) */
	MARK_CLASS_SHIFT = 42,
	MARK_STATE = 3,
	MARK_FORWARDED = 3,
	/* An entry of InstanceKlass::_fields, up to 20: six numbers */
	FIELD_SIZE = 12,
	FIELD_NAME = 2,
	FIELD_OFFSET = 8,
	FIELD_INTERNAL = 0x400, /* its name is not in the constant pool */
	FIELD_HAS_OFFSET = 1,
	FIELD_TAG_BITS = 2,
	/* Flags of the stream of fields, from 21 on */
	STREAM_INITIALIZED = 1 << 0,
	STREAM_GENERIC = 1 << 2,
	STREAM_CONTENDED = 1 << 4,
};

/* Whether the VM was started with a flag, such as UseCompressedOops. False: not known. */
static bool read_flag(const struct ss_hotspot_objects *objects, const char *name,
		      bool *ret)
{
	const struct ss_memory *memory = objects->memory;
	const uint64_t *at = objects->layout->at;
	uint64_t flags;
	uint64_t count;

	if (!ss_memory_read_u64(memory, at[SS_HOTSPOT_FLAGS_AT], &flags) ||
	    !ss_memory_read_u64(memory, at[SS_HOTSPOT_FLAG_COUNT_AT], &count))
		return false;
	for (uint64_t i = 0; i < SS_MIN(count, (uint64_t)FLAGS_MAX); i++) {
		uint64_t flag = flags + i * at[SS_HOTSPOT_FLAG_SIZE];
		char found[FLAG_NAME_SIZE];
		uint64_t text;
		uint64_t value;
		uint8_t byte;
		if (!ss_memory_read_u64(memory, flag + at[SS_HOTSPOT_FLAG_NAME], &text) ||
		    !text || !ss_memory_read_string(memory, text, found, sizeof(found)) ||
		    strcmp(found, name) != 0)
			continue;
		if (!ss_memory_read_u64(memory, flag + at[SS_HOTSPOT_FLAG_ADDRESS],
					&value) ||
		    !ss_memory_read(memory, value, &byte, 1) || byte > 1)
			return false;
		*ret = byte;
		return true;
	}
	return false;
}

static bool read_encoding(const struct ss_hotspot_objects *objects, const char *flag,
			  enum ss_hotspot_value base_at, enum ss_hotspot_value shift_at,
			  uint64_t *base, int32_t *shift)
{
	const uint64_t *at = objects->layout->at;
	uint32_t bits;
	bool compressed;

	if (!read_flag(objects, flag, &compressed))
		return false;
	*shift = -1;
	if (!compressed)
		return true;
	if (!ss_memory_read_u64(objects->memory, at[base_at], base) ||
	    !ss_memory_read_u32(objects->memory, at[shift_at], &bits) || bits > SHIFT_MAX)
		return false;
	*shift = (int32_t)bits;
	return true;
}

static void init(struct ss_hotspot_objects *objects)
{
	if (objects->tried)
		return;
	objects->tried = true;
	/* Only later versions have this flag. */
	(void)read_flag(objects, "UseCompactObjectHeaders", &objects->compact);
	objects->usable =
		ss_hotspot_zgc_init(&objects->zgc, objects->layout, objects->fresh) &&
		read_encoding(objects, "UseCompressedOops", SS_HOTSPOT_OOP_BASE_AT,
			      SS_HOTSPOT_OOP_SHIFT_AT, &objects->base, &objects->shift) &&
		read_encoding(objects, "UseCompressedClassPointers",
			      SS_HOTSPOT_CLASS_BASE_AT, SS_HOTSPOT_CLASS_SHIFT_AT,
			      &objects->class_base, &objects->class_shift);
}

/* Reads a pointer of an object. 0: it is null. */
static bool read_compressed(const struct ss_hotspot_objects *objects, uint64_t address,
			    uint64_t base, int32_t shift, uint64_t *ret)
{
	uint32_t narrow;

	if (shift < 0)
		return ss_memory_read_u64(objects->fresh, address, ret) &&
		       *ret % WORD == 0;
	if (!ss_memory_read_u32(objects->fresh, address, &narrow))
		return false;
	*ret = narrow ? base + ((uint64_t)narrow << shift) : 0;
	return true;
}

static bool read_field(const struct ss_hotspot_objects *objects, uint64_t object,
		       uint32_t offset, uint64_t *ret)
{
	uint64_t pointer;

	if (objects->zgc.used)
		return ss_memory_read_u64(objects->fresh, object + offset, &pointer) &&
		       ss_hotspot_zgc_find(&objects->zgc, pointer, ret);
	return read_compressed(objects, object + offset, objects->base, objects->shift,
			       ret);
}

/* The class of an object whose header is only a mark. While a collector moves the object, the mark
   is another one. */
static bool read_compact_class(const struct ss_hotspot_objects *objects, uint64_t object,
			       uint64_t *ret)
{
	uint64_t mark;

	if (objects->class_shift < 0 ||
	    !ss_memory_read_u64(objects->fresh, object, &mark) ||
	    (mark & MARK_STATE) == MARK_FORWARDED || mark >> MARK_CLASS_SHIFT == 0)
		return false;
	*ret = objects->class_base +
	       (mark >> MARK_CLASS_SHIFT << (unsigned)objects->class_shift);
	return true;
}

static bool read_class(const struct ss_hotspot_objects *objects, uint64_t object,
		       uint64_t *ret)
{
	if (objects->compact)
		return read_compact_class(objects, object, ret);
	return read_compressed(objects,
			       object + objects->layout->at[SS_HOTSPOT_OBJECT_CLASS],
			       objects->class_base, objects->class_shift, ret) &&
	       *ret;
}

static bool is_symbol(const struct ss_hotspot_objects *objects, uint64_t symbol,
		      const char *text)
{
	const struct ss_memory *memory = objects->memory;
	const uint64_t *at = objects->layout->at;
	size_t size = strlen(text);
	char found[NAME_SIZE_MAX];
	uint16_t length;

	return symbol && size <= sizeof(found) &&
	       ss_memory_read(memory, symbol + at[SS_HOTSPOT_SYMBOL_LENGTH], &length,
			      sizeof(length)) &&
	       length == size &&
	       ss_memory_read(memory, symbol + at[SS_HOTSPOT_SYMBOL_BODY], found, size) &&
	       memcmp(found, text, size) == 0;
}

/* The class of that name among the class of an object and those that it extends. */
static bool find_class(const struct ss_hotspot_objects *objects, uint64_t object,
		       const char *name, uint64_t *ret)
{
	const struct ss_memory *memory = objects->memory;
	const uint64_t *at = objects->layout->at;
	uint64_t class;
	uint64_t symbol;

	if (!read_class(objects, object, &class))
		return false;
	for (int i = 0; i < SUPERS_MAX && class; i++) {
		if (!ss_memory_read_u64(memory, class + at[SS_HOTSPOT_CLASS_NAME],
					&symbol))
			return false;
		if (is_symbol(objects, symbol, name)) {
			*ret = class;
			return true;
		}
		if (!ss_memory_read_u64(memory, class + at[SS_HOTSPOT_CLASS_SUPER],
					&class))
			return false;
	}
	return false;
}

/* Whether the constant at an index is that name. */
static bool is_constant(const struct ss_hotspot_objects *objects, uint64_t class,
			uint32_t index, const char *name)
{
	const struct ss_memory *memory = objects->memory;
	const uint64_t *at = objects->layout->at;
	uint64_t constants;
	uint32_t length;
	uint64_t symbol;

	return ss_memory_read_u64(memory, class + at[SS_HOTSPOT_CLASS_CONSTANTS],
				  &constants) &&
	       ss_memory_read_u32(memory, constants + at[SS_HOTSPOT_POOL_LENGTH],
				  &length) &&
	       index < length &&
	       ss_memory_read_u64(memory,
				  constants + at[SS_HOTSPOT_POOL_SIZE] +
					  (uint64_t)index * WORD,
				  &symbol) &&
	       is_symbol(objects, symbol, name);
}

static bool find_in_array(const struct ss_hotspot_objects *objects, uint64_t class,
			  uint64_t array, const char *name, uint32_t *ret)
{
	const uint64_t *at = objects->layout->at;
	uint32_t length;

	if (!ss_memory_read_u32(objects->memory, array, &length))
		return false;
	for (uint32_t i = 0; i < SS_MIN(length / (FIELD_SIZE / 2), (uint32_t)FIELDS_MAX);
	     i++) {
		uint8_t bytes[FIELD_SIZE];
		uint16_t flags;
		uint16_t index;
		uint32_t packed;
		if (!ss_memory_read(objects->memory,
				    array + at[SS_HOTSPOT_FIELDS_DATA] +
					    (uint64_t)i * FIELD_SIZE,
				    bytes, sizeof(bytes)))
			return false;
		memcpy(&flags, bytes, sizeof(flags));
		memcpy(&index, bytes + FIELD_NAME, sizeof(index));
		memcpy(&packed, bytes + FIELD_OFFSET, sizeof(packed));
		if ((flags & FIELD_INTERNAL) || !(packed & FIELD_HAS_OFFSET) ||
		    !is_constant(objects, class, index, name))
			continue;
		*ret = packed >> FIELD_TAG_BITS;
		return true;
	}
	return false;
}

static bool find_in_stream(const struct ss_hotspot_objects *objects, uint64_t class,
			   uint64_t array, const char *name, uint32_t *ret)
{
	const struct ss_hotspot_layout *layout = objects->layout;
	uint8_t bytes[STREAM_MAX];
	uint32_t length;

	if (!ss_memory_read_u32(objects->memory, array, &length) ||
	    length > sizeof(bytes) ||
	    !ss_memory_read(objects->memory, array + layout->at[SS_HOTSPOT_STREAM_DATA],
			    bytes, length))
		return false;
	struct ss_cursor cursor = { .at = bytes, .end = bytes + length };
	uint32_t count = ss_hotspot_number(layout, &cursor);
	(void)ss_hotspot_number(layout, &cursor); /* of fields that the VM has added */
	for (uint32_t i = 0; i < SS_MIN(count, (uint32_t)FIELDS_MAX); i++) {
		uint32_t index = ss_hotspot_number(layout, &cursor);
		(void)ss_hotspot_number(layout, &cursor); /* type */
		uint32_t offset = ss_hotspot_number(layout, &cursor);
		(void)ss_hotspot_number(layout, &cursor); /* access */
		uint32_t flags = ss_hotspot_number(layout, &cursor);
		if (flags & STREAM_INITIALIZED)
			(void)ss_hotspot_number(layout, &cursor);
		if (flags & STREAM_GENERIC)
			(void)ss_hotspot_number(layout, &cursor);
		if (flags & STREAM_CONTENDED)
			(void)ss_hotspot_number(layout, &cursor);
		if (cursor.failed)
			return false;
		if (!is_constant(objects, class, index, name))
			continue;
		*ret = offset;
		return true;
	}
	return false;
}

/* Finds the offset of a field that a class of an object declares, once. */
static bool find_field(const struct ss_hotspot_objects *objects, uint64_t object,
		       const char *class_name, const char *name, uint32_t *offset)
{
	const struct ss_hotspot_layout *layout = objects->layout;
	uint64_t class;
	uint64_t array;

	/* The class each time: it tells whether the object has the field. */
	if (!find_class(objects, object, class_name, &class))
		return false;
	if (*offset)
		return true;
	return ss_memory_read_u64(objects->memory,
				  class + layout->at[SS_HOTSPOT_CLASS_FIELDS], &array) &&
	       array &&
	       (layout->field_stream ?
			find_in_stream(objects, class, array, name, offset) :
			find_in_array(objects, class, array, name, offset)) &&
	       *offset > 0 && *offset < OFFSET_MAX;
}

bool ss_hotspot_handle_read(struct ss_hotspot_objects *objects, uint64_t handle,
			    uint64_t *ret)
{
	uint64_t pointer;

	init(objects);
	if (!handle || !ss_memory_read_u64(objects->fresh, handle, &pointer))
		return false;
	if (objects->zgc.used)
		return objects->usable &&
		       ss_hotspot_zgc_find(&objects->zgc, pointer, ret);
	*ret = pointer;
	return true;
}

bool ss_hotspot_is_object(const struct ss_hotspot_objects *objects, uint64_t address,
			  uint64_t object)
{
	return objects->zgc.used ?
		       ss_hotspot_zgc_is_same(&objects->zgc, address, object) :
		       address == object;
}

/* An object of a JavaThread, which has a handle of it, or itself. */
static uint64_t read_handle(struct ss_hotspot_objects *objects, uint64_t thread,
			    enum ss_hotspot_value field)
{
	uint64_t handle;
	uint64_t object;

	if (!ss_memory_read_u64(objects->fresh, thread + objects->layout->at[field],
				&handle) ||
	    !handle)
		return 0;
	if (objects->layout->direct_objects)
		object = handle;
	else if (!ss_hotspot_handle_read(objects, handle, &object))
		return 0;
	return object % WORD == 0 ? object : 0;
}

void ss_hotspot_thread_objects(struct ss_hotspot_objects *objects, uint64_t thread,
			       uint64_t ret[2])
{
	ret[0] = read_handle(objects, thread, SS_HOTSPOT_THREAD_OBJECT);
	ret[1] = objects->layout->virtual_threads ?
			 read_handle(objects, thread, SS_HOTSPOT_THREAD_VIRTUAL) :
			 0;
}

/* What leads to the owner of a lock. */
struct path {
	uint64_t thread;
	uint64_t lock;
	uint64_t owner;
};

static bool read_path(struct ss_hotspot_objects *objects, uint64_t thread,
		      struct path *ret)
{
	uint64_t found[2];

	ss_hotspot_thread_objects(objects, thread, found);
	ret->thread = found[1] ? found[1] : found[0];
	return ret->thread &&
	       find_field(objects, ret->thread, "java/lang/Thread", "parkBlocker",
			  &objects->blocker) &&
	       read_field(objects, ret->thread, objects->blocker, &ret->lock) &&
	       ret->lock &&
	       find_field(objects, ret->lock,
			  "java/util/concurrent/locks/AbstractOwnableSynchronizer",
			  "exclusiveOwnerThread", &objects->owner) &&
	       read_field(objects, ret->lock, objects->owner, &ret->owner) && ret->owner;
}

bool ss_hotspot_parked_for(struct ss_hotspot_objects *objects, uint64_t thread,
			   uint64_t *ret_lock, uint64_t *ret_owner)
{
	struct path path;
	struct path again;

	init(objects);
	if (!objects->usable || !read_path(objects, thread, &path) ||
	    !read_path(objects, thread, &again) || path.thread != again.thread ||
	    path.lock != again.lock || path.owner != again.owner)
		return false;
	*ret_lock = path.lock;
	*ret_owner = path.owner;
	return true;
}

/* Classes ------------------------------------------------------------------- */

bool ss_hotspot_lacks_classes(struct ss_hotspot_objects *objects, uint64_t thread,
			      const char *const *names, size_t count)
{
	enum { CLASSES_MAX = 20000 }; /* a small program has 600 */
	const struct ss_memory *memory = objects->memory;
	const uint64_t *at = objects->layout->at;
	uint64_t found[2];
	uint64_t class;
	uint64_t symbol;

	init(objects);
	if (!objects->usable || !at[SS_HOTSPOT_CLASS_LOADER] ||
	    !at[SS_HOTSPOT_CLASS_NEXT] || !at[SS_HOTSPOT_LOADER_CLASSES])
		return false;
	ss_hotspot_thread_objects(objects, thread, found);
	if (!found[0] || !find_class(objects, found[0], "java/lang/Thread", &class) ||
	    !ss_memory_read_u64(memory, class + at[SS_HOTSPOT_CLASS_LOADER], &class) ||
	    !ss_memory_read_u64(memory, class + at[SS_HOTSPOT_LOADER_CLASSES], &class))
		return false;
	for (int i = 0; i < CLASSES_MAX; i++) {
		if (class == 0)
			return i > 0;
		if (!ss_memory_read_u64(memory, class + at[SS_HOTSPOT_CLASS_NAME],
					&symbol))
			return false;
		for (size_t k = 0; k < count; k++) {
			if (is_symbol(objects, symbol, names[k]))
				return false;
		}
		if (!ss_memory_read_u64(memory, class + at[SS_HOTSPOT_CLASS_NEXT],
					&class))
			return false;
	}
	return false;
}

/* Thread objects ------------------------------------------------------------- */

enum {
	FIRST_WITH_HOLDER = 19,	      /* version of Java */
	FIRST_WITH_DENSE_ARRAYS = 23, /* elements follow the length without a gap */
	COMPACT_LENGTH = 8,	      /* of an array: where its length is */
	COMPRESSED_LENGTH = 12,
	PLAIN_LENGTH = 16,
	LENGTH_SIZE = 4,
};

/* Finds a field of an object: its address. */
static bool field_at(struct ss_hotspot_objects *objects, uint64_t object,
		     const char *class_name, const char *name,
		     enum ss_hotspot_field field, uint64_t *ret)
{
	if (!find_field(objects, object, class_name, name, &objects->fields[field]))
		return false;
	*ret = object + objects->fields[field];
	return true;
}

/* The start of an array of bytes or characters; *ret_size: bytes, at most max. */
static bool read_array(const struct ss_hotspot_objects *objects, uint64_t array,
		       unsigned unit, uint8_t *ret, size_t *ret_size)
{
	const bool dense = objects->layout->major >= FIRST_WITH_DENSE_ARRAYS;
	const uint64_t at = objects->compact	      ? COMPACT_LENGTH :
			    objects->class_shift >= 0 ? COMPRESSED_LENGTH :
							PLAIN_LENGTH;
	uint64_t data = at + LENGTH_SIZE;
	uint32_t length;

	if (!dense)
		data = (data + WORD - 1) / WORD * WORD;
	if (!ss_memory_read_u32(objects->fresh, array + at, &length))
		return false;
	*ret_size = SS_MIN((size_t)length * unit, (size_t)2 * SS_HOTSPOT_NAME_MAX);
	return ss_memory_read(objects->fresh, array + data, ret, *ret_size);
}

static uint32_t take_unit(const uint8_t *bytes, size_t i, bool wide)
{
	return wide ? bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8 : bytes[i];
}

/* Latin-1, or UTF-16. */
static void convert(const uint8_t *bytes, size_t size, bool wide, char *ret)
{
	const size_t count = SS_MIN(wide ? size / 2 : size, (size_t)SS_HOTSPOT_NAME_MAX);

	for (size_t i = 0; i < count; i++) {
		uint32_t c = take_unit(bytes, i, wide);
		const uint32_t next = i + 1 < count ? take_unit(bytes, i + 1, wide) : 0;
		if (c >> 10 == 0xd800 >> 10 && next >> 10 == 0xdc00 >> 10) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (next & 0x3ff));
			i++;
		}
		/* Half of a pair, and what no name has */
		if (c == 0 || c >> 11 == 0xd800 >> 11)
			c = 0xfffd;
		ret = ss_utf8_encode(c, ret);
	}
	*ret = '\0';
}

/* Up to 8 a String has characters, and a Thread may have them itself. */
static bool read_string(struct ss_hotspot_objects *objects, uint64_t string, char *ret)
{
	static const char class_name[] = "java/lang/String";
	uint8_t bytes[2 * SS_HOTSPOT_NAME_MAX];
	uint64_t array = string;
	uint64_t at;
	size_t size;
	uint8_t coder = 1;

	if (find_class(objects, string, class_name, &at) &&
	    (!field_at(objects, string, class_name, "value", SS_HOTSPOT_FIELD_CHARACTERS,
		       &at) ||
	     !read_field(objects, string, objects->fields[SS_HOTSPOT_FIELD_CHARACTERS],
			 &array) ||
	     !array))
		return false;
	if (find_class(objects, array, "[B", &at)) {
		if (!field_at(objects, string, class_name, "coder",
			      SS_HOTSPOT_FIELD_CODER, &at) ||
		    !ss_memory_read(objects->fresh, at, &coder, 1) || coder > 1)
			return false;
	} else if (!find_class(objects, array, "[C", &at)) {
		return false;
	}
	const bool characters = objects->layout->one_heap; /* up to 8 */
	if (!read_array(objects, array, characters ? 2 : 1, bytes, &size))
		return false;
	convert(bytes, size, coder, ret);
	return true;
}

/* From 19 on the fields that a virtual thread does not have are in another object. */
static bool read_kind(struct ss_hotspot_objects *objects, uint64_t object,
		      struct ss_hotspot_thread_object *ret)
{
	const char *class_name = "java/lang/Thread";
	uint64_t at;
	uint8_t daemon;

	if (objects->layout->major >= FIRST_WITH_HOLDER) {
		if (!field_at(objects, object, class_name, "holder",
			      SS_HOTSPOT_FIELD_HOLDER, &at) ||
		    !read_field(objects, object, objects->fields[SS_HOTSPOT_FIELD_HOLDER],
				&object) ||
		    !object)
			return false;
		class_name = "java/lang/Thread$FieldHolder";
	}
	if (!field_at(objects, object, class_name, "priority", SS_HOTSPOT_FIELD_PRIORITY,
		      &at) ||
	    !ss_memory_read_u32(objects->fresh, at, &ret->priority) ||
	    !field_at(objects, object, class_name, "daemon", SS_HOTSPOT_FIELD_DAEMON,
		      &at) ||
	    !ss_memory_read(objects->fresh, at, &daemon, 1))
		return false;
	ret->daemon = daemon;
	return ret->priority >= 1 && ret->priority <= 10 && daemon <= 1;
}

bool ss_hotspot_thread_object_read(struct ss_hotspot_objects *objects, uint64_t thread,
				   struct ss_hotspot_thread_object *ret)
{
	static const char class_name[] = "java/lang/Thread";
	uint64_t found[2];
	uint64_t name;
	uint64_t at;

	init(objects);
	memset(ret, 0, sizeof(*ret));
	if (!objects->usable)
		return false;
	ss_hotspot_thread_objects(objects, thread, found);
	if (!found[0] ||
	    !field_at(objects, found[0], class_name, "tid", SS_HOTSPOT_FIELD_ID, &at) ||
	    !ss_memory_read_u64(objects->fresh, at, &ret->id) || ret->id == 0 ||
	    !read_kind(objects, found[0], ret) ||
	    !field_at(objects, found[0], class_name, "name", SS_HOTSPOT_FIELD_NAME, &at))
		return false;
	return read_field(objects, found[0], objects->fields[SS_HOTSPOT_FIELD_NAME],
			  &name) &&
	       name && read_string(objects, name, ret->name);
}
