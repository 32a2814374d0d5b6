#include "runtime/hotspot/object.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot/method.h"

enum {
	WORD = 8,
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
