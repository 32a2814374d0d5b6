#include "runtime/python/object.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/python/code.h"

/* PyObject, PyTypeObject, PyHeapTypeObject, PyDictObject, PySetObject, PyListObject, PyLongObject:
   the same in all versions with a GIL, unless the name says otherwise. */
enum {
	OBJECT_TYPE = 8,
	TYPE_NAME = 24,
	TYPE_BASIC_SIZE = 32,
	TYPE_FLAGS = 168,
	TYPE_BASE = 256,
	TYPE_DICT_OFFSET = 288,
	TYPE_CACHED_KEYS_11 = 0x368,
	TYPE_CACHED_KEYS_12 = 0x370,
	FLAG_INLINE_VALUES = 1 << 2, /* from 3.13 on */
	FLAG_MANAGED_DICT = 1 << 4,  /* from 3.11 on */
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	SET_MASK = 32,
	SET_TABLE = 40,
	LIST_SIZE = 16,
	LIST_ITEMS = 24,
	LONG_SIZE = 16, /* from 3.12 on: the number of digits is shifted by 3 */
	LONG_DIGITS = 24,
	LONG_DIGIT_BITS = 30,
	STRING_LENGTH = 16,
	BASES_MAX = 16,
	ENTRIES_MAX = 1 << 20,
	AT_ONCE = 256, /* elements that are read together */
};

/* PyDictKeysObject: an index of entries, then the entries. */
struct keys {
	uint64_t entries; /* address */
	uint64_t count;
	unsigned entry_size;
	unsigned key;	/* in an entry */
	unsigned value; /* likewise */
};

bool ss_python_type_of(const struct ss_memory *memory, uint64_t address, uint64_t *ret)
{
	return address && address % 8 == 0 &&
	       ss_memory_read_u64(memory, address + OBJECT_TYPE, ret) && *ret % 8 == 0;
}

bool ss_python_type_name(const struct ss_memory *memory, uint64_t type, char *ret)
{
	uint64_t address;

	return type % 8 == 0 && ss_memory_read_u64(memory, type + TYPE_NAME, &address) &&
	       ss_memory_read_string(memory, address, ret, SS_PYTHON_TYPE_NAME_MAX);
}

bool ss_python_is_a(const struct ss_memory *memory, uint64_t type, const char *name,
		    uint64_t size)
{
	char text[SS_PYTHON_TYPE_NAME_MAX];
	uint64_t found;

	for (int i = 0; i < BASES_MAX && type; i++) {
		if (!ss_python_type_name(memory, type, text))
			return false;
		if (strcmp(text, name) == 0)
			return ss_memory_read_u64(memory, type + TYPE_BASIC_SIZE,
						  &found) &&
			       found == size;
		if (!ss_memory_read_u64(memory, type + TYPE_BASE, &type))
			return false;
	}
	return false;
}

/* Dictionaries -------------------------------------------------------------- */

static bool read_keys_10(const struct ss_memory *memory, uint64_t address,
			 struct keys *ret)
{
	uint64_t words[5]; /* references, size, function, usable, entries */

	if (!ss_memory_read(memory, address, words, sizeof(words)) ||
	    words[1] > 2 * (uint64_t)ENTRIES_MAX)
		return false;
	unsigned width = words[1] <= UINT8_MAX ? 1 : words[1] <= UINT16_MAX ? 2 : 4;
	*ret = (struct keys){ .entries = address + sizeof(words) + words[1] * width,
			      .count = words[4],
			      .entry_size = 24,
			      .key = 8,
			      .value = 16 };
	return true;
}

static bool read_keys_11(const struct ss_memory *memory, uint64_t address,
			 struct keys *ret)
{
	enum { LOG2_INDEX_BYTES = 9, KIND = 10, GENERAL = 0, KINDS = 3, LOG2_MAX = 24 };
	uint8_t bytes[32];

	if (!ss_memory_read(memory, address, bytes, sizeof(bytes)) ||
	    bytes[LOG2_INDEX_BYTES] > LOG2_MAX || bytes[KIND] >= KINDS)
		return false;
	bool general = bytes[KIND] == GENERAL;
	*ret = (struct keys){ .entries = address + sizeof(bytes) +
					 (UINT64_C(1) << bytes[LOG2_INDEX_BYTES]),
			      .entry_size = general ? 24 : 16,
			      .key = general ? 8 : 0,
			      .value = general ? 16 : 8 };
	memcpy(&ret->count, bytes + 24, sizeof(ret->count));
	return true;
}

static bool read_keys(const struct ss_python_layout *layout,
		      const struct ss_memory *memory, uint64_t address, struct keys *ret)
{
	if (!address || address % 8)
		return false;
	return (layout->minor <= 10 ? read_keys_10(memory, address, ret) :
				      read_keys_11(memory, address, ret)) &&
	       ret->count <= ENTRIES_MAX;
}

static bool string_is(const struct ss_python_layout *layout,
		      const struct ss_memory *memory, uint64_t address, const char *text)
{
	char found[4 * SS_PYTHON_NAME_MAX + 1];
	uint64_t length;

	return address && address % 8 == 0 &&
	       ss_memory_read_u64(memory, address + STRING_LENGTH, &length) &&
	       length == strlen(text) &&
	       ss_python_string(layout, memory, address, found) &&
	       strcmp(found, text) == 0;
}

/* The index of an entry; *ret_value: what the entry has. */
static bool find_key(const struct ss_python_layout *layout,
		     const struct ss_memory *memory, const struct keys *keys,
		     const char *name, uint64_t *ret_index, uint64_t *ret_value)
{
	uint8_t entry[24];
	uint64_t key;

	for (uint64_t i = 0; i < keys->count; i++) {
		if (!ss_memory_read(memory, keys->entries + i * keys->entry_size, entry,
				    keys->entry_size))
			return false;
		memcpy(&key, entry + keys->key, sizeof(key));
		memcpy(ret_value, entry + keys->value, sizeof(*ret_value));
		*ret_index = i;
		if (string_is(layout, memory, key, name))
			return true;
	}
	return false;
}

static bool read_value(const struct ss_memory *memory, uint64_t values, uint64_t index,
		       uint64_t *ret)
{
	return ss_memory_read_u64(memory, values + index * 8, ret) && *ret != 0;
}

/* The values of a split dictionary are in an array of their own. From 3.13 on it begins with
   a header. */
static uint64_t first_value(const struct ss_python_layout *layout, uint64_t values)
{
	return layout->minor >= 13 ? values + 8 : values;
}

bool ss_python_dict_find(const struct ss_python_layout *layout,
			 const struct ss_memory *memory, uint64_t dict, const char *key,
			 uint64_t *ret)
{
	uint64_t address;
	uint64_t values;
	uint64_t index;
	struct keys keys;

	if (!ss_python_has_type(memory, dict, "dict") ||
	    !ss_memory_read_u64(memory, dict + DICT_KEYS, &address) ||
	    !ss_memory_read_u64(memory, dict + DICT_VALUES, &values) ||
	    !read_keys(layout, memory, address, &keys) ||
	    !find_key(layout, memory, &keys, key, &index, ret))
		return false;
	if (values)
		return read_value(memory, first_value(layout, values), index, ret);
	return *ret != 0;
}

/* Attributes ---------------------------------------------------------------- */

/* The values of an object that has no dictionary yet, in the order of the keys of its type. */
static bool find_value(const struct ss_python_layout *layout,
		       const struct ss_memory *memory, uint64_t type, uint64_t values,
		       const char *name, uint64_t *ret)
{
	const uint64_t at = layout->minor == 11 ? TYPE_CACHED_KEYS_11 :
						  TYPE_CACHED_KEYS_12;
	struct keys keys;
	uint64_t address;
	uint64_t index;

	return ss_memory_read_u64(memory, type + at, &address) &&
	       read_keys(layout, memory, address, &keys) &&
	       find_key(layout, memory, &keys, name, &index, ret) &&
	       read_value(memory, values, index, ret);
}

/* From 3.11 on: words before the object lead to its dictionary or values. */
static bool find_managed(const struct ss_python_layout *layout,
			 const struct ss_memory *memory, uint64_t object, uint64_t type,
			 uint64_t flags, const char *name, uint64_t *ret)
{
	uint64_t words[2]; /* 3.11: values, dictionary */
	uint64_t size;
	uint8_t valid;

	if (!ss_memory_read(memory, object - 32, words, sizeof(words)))
		return false;
	if (layout->minor == 11 && words[0])
		return find_value(layout, memory, type, words[0], name, ret);
	if (layout->minor == 12 && (words[1] & 1))
		return find_value(layout, memory, type, words[1] + 1, name, ret);
	if (layout->minor >= 13 && (flags & FLAG_INLINE_VALUES)) {
		enum { VALID = 3 }; /* struct _dictvalues */
		if (!ss_memory_read_u64(memory, type + TYPE_BASIC_SIZE, &size) ||
		    size > UINT16_MAX ||
		    !ss_memory_read(memory, object + size + VALID, &valid, 1))
			return false;
		if (valid)
			return find_value(layout, memory, type,
					  first_value(layout, object + size), name, ret);
	}
	return ss_python_dict_find(layout, memory, words[1], name, ret);
}

bool ss_python_attribute(const struct ss_python_layout *layout,
			 const struct ss_memory *memory, uint64_t object,
			 const char *name, uint64_t *ret)
{
	uint64_t type;
	uint64_t flags;
	uint64_t at;
	uint64_t dict;

	if (!ss_python_type_of(memory, object, &type) ||
	    !ss_memory_read_u64(memory, type + TYPE_FLAGS, &flags) ||
	    !ss_memory_read_u64(memory, type + TYPE_DICT_OFFSET, &at))
		return false;
	if (layout->minor >= 11 && (flags & FLAG_MANAGED_DICT))
		return find_managed(layout, memory, object, type, flags, name, ret);
	return at && at <= UINT16_MAX && ss_memory_read_u64(memory, object + at, &dict) &&
	       ss_python_dict_find(layout, memory, dict, name, ret);
}

/* Numbers and containers ---------------------------------------------------- */

bool ss_python_integer(const struct ss_python_layout *layout,
		       const struct ss_memory *memory, uint64_t address, uint64_t *ret)
{
	enum { DIGITS_MAX = 3, SIGN = 3, SHIFT = 3 };
	uint32_t digits[DIGITS_MAX] = {};
	uint64_t count;

	if (!ss_python_has_type(memory, address, "int") ||
	    !ss_memory_read_u64(memory, address + LONG_SIZE, &count))
		return false;
	if (layout->minor >= 12) {
		if ((count & SIGN) == 2) /* negative */
			return false;
		count >>= SHIFT;
	}
	if (count > DIGITS_MAX ||
	    !ss_memory_read(memory, address + LONG_DIGITS, digits, count * 4))
		return false;
	*ret = digits[0] | (uint64_t)digits[1] << LONG_DIGIT_BITS |
	       (uint64_t)digits[2] << (2 * LONG_DIGIT_BITS);
	return true;
}

static bool add_element(uint64_t address, struct ss_python_objects *ret)
{
	uint64_t *slot = ss_vector_push(&ret->list);

	if (slot)
		*slot = address;
	return slot != NULL;
}

static bool add_list(const struct ss_memory *memory, uint64_t address, uint64_t count,
		     struct ss_python_objects *ret)
{
	uint64_t words[AT_ONCE];

	for (uint64_t i = 0; i < count; i += AT_ONCE) {
		const size_t n = (size_t)SS_MIN(count - i, (uint64_t)AT_ONCE);
		if (!ss_memory_read(memory, address + i * sizeof(words[0]), words,
				    n * sizeof(words[0])))
			return true;
		for (size_t k = 0; k < n; k++) {
			if (words[k] && !add_element(words[k], ret))
				return false;
		}
	}
	return true;
}

/* An entry that is not used, or no longer, has no key or the hash -1. */
static bool add_table(const struct ss_memory *memory, uint64_t address, uint64_t count,
		      size_t max, struct ss_python_objects *ret)
{
	struct {
		uint64_t key;
		uint64_t hash;
	} entries[AT_ONCE];
	const size_t end = ret->list.count + max;

	for (uint64_t i = 0; i < count; i += AT_ONCE) {
		const size_t n = (size_t)SS_MIN(count - i, (uint64_t)AT_ONCE);
		if (!ss_memory_read(memory, address + i * sizeof(entries[0]), entries,
				    n * sizeof(entries[0])))
			return true;
		for (size_t k = 0; k < n; k++) {
			if (ret->list.count == end)
				return true;
			if (entries[k].key && entries[k].hash != UINT64_MAX &&
			    !add_element(entries[k].key, ret))
				return false;
		}
	}
	return true;
}

bool ss_python_elements(const struct ss_memory *memory, uint64_t address, size_t max,
			struct ss_python_objects *ret)
{
	uint64_t count;
	uint64_t items;

	if (ss_python_has_type(memory, address, "set")) {
		if (!ss_memory_read_u64(memory, address + SET_MASK, &count) ||
		    !ss_memory_read_u64(memory, address + SET_TABLE, &items))
			return true;
		count = SS_MIN(count, (uint64_t)max * 8) + 1; /* a table is sparse */
		return add_table(memory, items, count, max, ret);
	}
	if (!ss_python_has_type(memory, address, "list") ||
	    !ss_memory_read_u64(memory, address + LIST_SIZE, &count) ||
	    !ss_memory_read_u64(memory, address + LIST_ITEMS, &items))
		return true;
	return add_list(memory, items, SS_MIN(count, (uint64_t)max), ret);
}
