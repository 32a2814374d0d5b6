#include "runtime/python/python.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

/* Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, and the headers
   of each version; the numbers are those of offsetof() for the ABIs of x86-64 and
   aarch64, which differ only in what pthread types have. First what 3.8 to
   3.10 have in common. */
#define UP_TO_3_10                                                                       \
	.frames = SS_PYTHON_COUNT, .interpreters = 32, .interp_threads = 8,              \
	.thread_next = 8, .thread_interp = 16, .thread_frame = 24, .thread_id = 176,     \
	.thread_size = 184, .frame_previous = 24, .frame_code = 32, .frame_size = 112,   \
	.code_first_line = 40, .code_filename = 104, .code_name = 112,                   \
	.code_lines = 120, .code_size = 128, .ascii = 48, .compact = 72

static const struct ss_python_layout layouts[] = {
	{
		.minor = 8,
		UP_TO_3_10,
		.lines = SS_PYTHON_LNOTAB,
		.interp_modules = 56,
		.frame_instruction = 104,
		.gil = 1152,
	},
	{
		.minor = 9,
		UP_TO_3_10,
		.lines = SS_PYTHON_LNOTAB,
		.interp_modules = 856,
		.frame_instruction = 104,
		.gil = 352,
	},
	{
		.minor = 10,
		UP_TO_3_10,
		.lines = SS_PYTHON_LINE_PAIRS,
		.interp_modules = 856,
		.frame_instruction = 96,
		.gil = 352,
	},
	{
		.minor = 11,
		.frames = SS_PYTHON_CFRAME,
		.lines = SS_PYTHON_LOCATIONS,
		.interpreters = 40,
		.interp_threads = 16,
		.interp_modules = 888,
		.thread_next = 8,
		.thread_interp = 16,
		.thread_frame = 56,
		.thread_id = 152,
		.thread_native = 160,
		.thread_size = 360, /* with its root_cframe */
		.has_cframe = true,
		.cframe_frame = 8,
		.cframe_previous = 16,
		.frame_previous = 48,
		.frame_code = 32,
		.frame_instruction = 56,
		.frame_entry = 68,
		.frame_size = 72,
		.code_first_line = 72,
		.code_filename = 112,
		.code_name = 120,
		.code_qualname = 128,
		.code_lines = 136,
		.code_bytes = 184,
		.code_size = 144,
		.ascii = 48,
		.compact = 72,
		.gil = 360,
	},
	{
		.minor = 12,
		.frames = SS_PYTHON_SHIM,
		.lines = SS_PYTHON_LOCATIONS,
		.interpreters = 40,
		.interp_threads = 72,
		.interp_modules = 944,
		.thread_next = 8,
		.thread_interp = 16,
		.thread_frame = 56,
		.thread_id = 136,
		.thread_native = 144,
		.thread_size = 152,
		.has_cframe = true,
		.cframe_frame = 0,
		.cframe_previous = 8,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_entry = 70,
		.frame_size = 72,
		.code_first_line = 68,
		.code_filename = 112,
		.code_name = 120,
		.code_qualname = 128,
		.code_lines = 136,
		.code_bytes = 192,
		.code_size = 144,
		.ascii = 40,
		.compact = 56,
		.gil = 384,
		.gil_in_interpreter = true,
	},
};

/* The table of a running 3.13 or 3.14 (struct _Py_DebugOffsets of pycore_runtime.h and
   pycore_debug_offsets.h): 64-bit words in groups. Each group begins with the size of its
   structure. */
#define COOKIE "xdebugpy"

enum group { RUNTIME, INTERP, THREAD, FRAME, CODE, BYTES, UNICODE, GROUPS };

enum {
	WORD_VERSION = 1,
	WORD_FREE_THREADED,
	WORDS = 87,
	GENERATOR_14 = 83, /* a group of 3.14 */
};

/* Where a group begins. */
struct groups {
	unsigned minor;
	unsigned words[GROUPS];
};

static const struct groups tables[] = {
	{ 13,
	  { [RUNTIME] = 3,
	    [INTERP] = 6,
	    [THREAD] = 19,
	    [FRAME] = 28,
	    [CODE] = 34,
	    [BYTES] = 64,
	    [UNICODE] = 67 } },
	{ 14,
	  { [RUNTIME] = 3,
	    [INTERP] = 6,
	    [THREAD] = 22,
	    [FRAME] = 31,
	    [CODE] = 39,
	    [BYTES] = 74,
	    [UNICODE] = 77 } },
};

/* A member of a structure: where it is in the table, and how large it is. */
struct member {
	enum group group;
	unsigned index; /* in 3.13 */
	unsigned index_14;
	unsigned size;
	uint32_t offset; /* in struct ss_python_layout */
};

#define MEMBER(group, index, index_14, size, field)                                      \
	{                                                                                \
		group, index, index_14, size, offsetof(struct ss_python_layout, field)   \
	}

static const struct member members[] = {
	MEMBER(RUNTIME, 2, 2, 8, interpreters),
	MEMBER(INTERP, 2, 2, 8, interp_next),
	MEMBER(INTERP, 3, 3, 8, interp_threads),
	MEMBER(INTERP, 5, 6, 8, interp_modules),
	MEMBER(INTERP, 8, 9, 8, gil),
	MEMBER(THREAD, 2, 2, 8, thread_next),
	MEMBER(THREAD, 3, 3, 8, thread_interp),
	MEMBER(THREAD, 4, 4, 8, thread_frame),
	MEMBER(THREAD, 5, 5, 8, thread_id),
	MEMBER(THREAD, 6, 6, 8, thread_native),
	MEMBER(FRAME, 1, 1, 8, frame_previous),
	MEMBER(FRAME, 2, 2, 8, frame_code),
	MEMBER(FRAME, 3, 3, 8, frame_instruction),
	MEMBER(FRAME, 5, 5, 1, frame_entry),
	MEMBER(CODE, 1, 1, 8, code_filename),
	MEMBER(CODE, 2, 2, 8, code_name),
	MEMBER(CODE, 3, 3, 8, code_qualname),
	MEMBER(CODE, 4, 4, 8, code_lines),
	MEMBER(CODE, 5, 5, 4, code_first_line),
};

enum { STRUCTURE_MAX = 4 << 20, READ_MAX = 1024 };

static uint32_t *field_of(struct ss_python_layout *layout, uint32_t offset)
{
	return (uint32_t *)(void *)((char *)layout + offset);
}

/* Takes a member from the table, if it lies within its structure. Grows what is read. */
static bool take_member(const uint64_t *words, const struct groups *groups,
			const struct member *member, struct ss_python_layout *ret,
			uint32_t *size)
{
	const unsigned start = groups->words[member->group];
	const uint64_t whole = words[start];
	const uint64_t at =
		words[start + (groups->minor == 13 ? member->index : member->index_14)];

	if (whole > STRUCTURE_MAX || whole < member->size || at > whole - member->size)
		return false;
	*field_of(ret, member->offset) = (uint32_t)at;
	*size = SS_MAX(*size, (uint32_t)at + member->size);
	return true;
}

/* 3.14: a generator or coroutine has a frame, which has local variables and then a stack. */
static bool take_generator(const uint64_t *words, const struct groups *groups,
			   struct ss_python_layout *ret)
{
	const uint64_t *frame = words + groups->words[FRAME];
	const uint64_t *generator = words + GENERATOR_14;

	if (generator[0] > READ_MAX || generator[2] > generator[0] ||
	    generator[3] > generator[0] || frame[0] > READ_MAX || frame[4] > frame[0] ||
	    frame[6] > frame[0])
		return false;
	ret->generator_frame = (uint32_t)generator[2];
	ret->generator_state = (uint32_t)generator[3];
	ret->frame_locals = (uint32_t)frame[4];
	ret->frame_stack = (uint32_t)frame[6];
	return true;
}

static bool read_table(const struct ss_memory *memory, uint64_t runtime, uint32_t version,
		       const struct groups *groups, struct ss_python_layout *ret,
		       const char **ret_why)
{
	uint64_t words[WORDS];
	uint32_t sizes[GROUPS] = {};

	*ret_why = "the table of its offsets is not valid";
	if (!ss_memory_read(memory, runtime, words, sizeof(words)) ||
	    memcmp(words, COOKIE, sizeof(words[0])) != 0 ||
	    words[WORD_VERSION] != version)
		return false;
	if (words[WORD_FREE_THREADED] != 0) {
		*ret_why = "it is a free-threaded build";
		return false;
	}
	*ret = (struct ss_python_layout){ .minor = groups->minor,
					  .frames = SS_PYTHON_SHIM,
					  .lines = SS_PYTHON_LOCATIONS,
					  .gil_in_interpreter = true };
	/* Bits of a _PyStackRef */
	if (groups->minor >= 14)
		ret->frame_code_mask = ~UINT64_C(7);
	if (groups->minor >= 14 && !take_generator(words, groups, ret))
		return false;
	for (size_t i = 0; i < SS_ARRAY_SIZE(members); i++) {
		if (!take_member(words, groups, &members[i], ret,
				 &sizes[members[i].group]))
			return false;
	}
	const uint64_t bytecode = words[groups->words[CODE] + 9];
	const uint64_t ascii = words[groups->words[UNICODE] + 3];
	ret->thread_size = sizes[THREAD];
	ret->frame_size = sizes[FRAME];
	ret->code_size = sizes[CODE];
	ret->code_bytes = (uint32_t)bytecode;
	ret->ascii = (uint32_t)ascii;
	ret->compact = ret->ascii + 16; /* PyCompactUnicodeObject adds two words */
	return ret->thread_size <= READ_MAX && ret->frame_size <= READ_MAX &&
	       ret->code_size <= READ_MAX && bytecode <= READ_MAX && ascii == 40 &&
	       words[groups->words[BYTES] + 2] == 32;
}

uint32_t ss_python_layout_version(const struct ss_memory *memory, uint64_t runtime)
{
	uint64_t words[WORD_VERSION + 1];

	if (!ss_memory_read(memory, runtime, words, sizeof(words)) ||
	    memcmp(words, COOKIE, sizeof(words[0])) != 0 ||
	    words[WORD_VERSION] > UINT32_MAX)
		return 0;
	return (uint32_t)words[WORD_VERSION];
}

bool ss_python_layout_find(uint32_t version, const char *machine,
			   const struct ss_memory *memory, uint64_t runtime,
			   struct ss_python_layout *ret, const char **ret_why)
{
	const unsigned minor = version >> 16 & 0xff;

	*ret_why = "this version is not known";
	if (version >> 24 != 3)
		return false;
	for (size_t i = 0; i < SS_ARRAY_SIZE(tables); i++) {
		if (tables[i].minor == minor)
			return read_table(memory, runtime, version, &tables[i], ret,
					  ret_why);
	}
	if (strcmp(machine, "x86_64") != 0 && strcmp(machine, "aarch64") != 0) {
		*ret_why = "this version is not known on this processor";
		return false;
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(layouts); i++) {
		if (layouts[i].minor == minor) {
			*ret = layouts[i];
			return true;
		}
	}
	return false;
}

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

/* Finds the keys of a dictionary, and the values if they are in an array of their own; *ret_values: 0:
   they are not. */
static bool find_keys(const struct ss_python_layout *layout,
		      const struct ss_memory *memory, uint64_t dict, struct keys *ret,
		      uint64_t *ret_values)
{
	uint64_t address;
	uint64_t values;

	if (!ss_python_has_type(memory, dict, "dict") ||
	    !ss_memory_read_u64(memory, dict + DICT_KEYS, &address) ||
	    !ss_memory_read_u64(memory, dict + DICT_VALUES, &values) ||
	    !read_keys(layout, memory, address, ret))
		return false;
	*ret_values = values ? first_value(layout, values) : 0;
	return true;
}

bool ss_python_dict_find(const struct ss_python_layout *layout,
			 const struct ss_memory *memory, uint64_t dict, const char *key,
			 uint64_t *ret)
{
	uint64_t values;
	uint64_t index;
	struct keys keys;

	if (!find_keys(layout, memory, dict, &keys, &values) ||
	    !find_key(layout, memory, &keys, key, &index, ret))
		return false;
	if (values)
		return read_value(memory, values, index, ret);
	return *ret != 0;
}

/* Appends what a dictionary has, at most max. False without memory; an object of another type has
   nothing. */
static bool read_dict_items(const struct ss_python_layout *layout,
			    const struct ss_memory *memory, uint64_t dict, size_t max,
			    struct ss_python_items *ret)
{
	const size_t end = ret->list.count + max;
	uint64_t values;
	struct keys keys;
	uint8_t entry[24];

	if (!find_keys(layout, memory, dict, &keys, &values))
		return true;
	for (uint64_t i = 0; i < keys.count && ret->list.count < end; i++) {
		struct ss_python_item item;
		if (!ss_memory_read(memory, keys.entries + i * keys.entry_size, entry,
				    keys.entry_size))
			return true;
		memcpy(&item.key, entry + keys.key, sizeof(item.key));
		memcpy(&item.value, entry + keys.value, sizeof(item.value));
		if (!item.key ||
		    (values && !read_value(memory, values, i, &item.value)) ||
		    !item.value)
			continue;
		struct ss_python_item *slot = ss_vector_push(&ret->list);
		if (!slot)
			return false;
		*slot = item;
	}
	return true;
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

/* Names of threads ---------------------------------------------------------- */

enum { THREADS_MAX = 1 << 14 };

/* The dictionary threading._active. */
static bool find_active(const struct ss_python_layout *layout,
			const struct ss_memory *memory, uint64_t interpreter,
			uint64_t *ret)
{
	uint64_t modules;
	uint64_t module;

	return ss_memory_read_u64(memory, interpreter + layout->interp_modules,
				  &modules) &&
	       ss_python_dict_find(layout, memory, modules, "threading", &module) &&
	       ss_python_has_type(memory, module, "module") &&
	       ss_python_attribute(layout, memory, module, "_active", ret);
}

/* A thread that Python did not begin, and which has asked for its object: its name is "Dummy-1". */
static bool is_dummy(const struct ss_memory *memory, uint64_t thread)
{
	return ss_python_has_type(memory, thread, "_DummyThread");
}

/* An entry of the dictionary. *ret_name: at most SS_RUNTIME_NAME_MAX characters. */
static bool read_thread(const struct ss_python_layout *layout,
			const struct ss_memory *memory, const struct ss_python_item *item,
			struct ss_python_name *ret, char *ret_name)
{
	uint64_t name;
	uint64_t native;

	*ret = (struct ss_python_name){};
	if (!ss_python_integer(layout, memory, item->key, &ret->id) || ret->id == 0 ||
	    is_dummy(memory, item->value) ||
	    !ss_python_attribute(layout, memory, item->value, "_name", &name))
		return false;
	if (ss_python_attribute(layout, memory, item->value, "_native_id", &native) &&
	    !ss_python_integer(layout, memory, native, &ret->native))
		ret->native = 0; /* None */
	return ss_python_string_start(layout, memory, name, SS_RUNTIME_NAME_MAX,
				      ret_name);
}

SS_DEFINE_COMPARE(compare_ids, struct ss_python_name, id)

/* Reads the names of the dictionary active once. */
static bool read_names(const struct ss_runtime_process *process,
		       const struct ss_python_layout *layout,
		       const struct ss_memory *memory, uint64_t active,
		       struct ss_python_names *ret)
{
	char text[4 * SS_RUNTIME_NAME_MAX + 1];
	struct ss_python_items items = {};
	struct ss_python_name name;
	bool ok = read_dict_items(layout, memory, active, THREADS_MAX, &items);
	for (size_t i = 0; ok && i < items.list.count; i++) {
		if (!read_thread(layout, memory, &items.list.items[i], &name, text))
			continue;
		name.name = ss_intern_string(process->strings, text);
		struct ss_python_name *slot = ss_vector_push(&ret->list);
		ok = slot && name.name;
		if (ok)
			*slot = name;
	}
	ss_vector_free(&items.list);
	if (ret->list.count > 1)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items),
		      compare_ids);
	return ok;
}

/* What reading names takes, to have its pages read together */
struct names_visit {
	const struct ss_runtime_process *process;
	const struct ss_python_layout *layout;
	const struct ss_memory *memory;
	uint64_t active;
};

static void visit_names(void *data)
{
	const struct names_visit *visit = data;
	struct ss_python_names names = {};

	(void)read_names(visit->process, visit->layout, visit->memory, visit->active,
			 &names);
	ss_vector_free(&names.list);
}

static bool read_names_together(struct names_visit *visit, const struct ss_memory *memory,
				struct ss_python_names *ret)
{
	visit->memory = memory;
	visit->process->read_together(memory, visit_names, visit);
	return read_names(visit->process, visit->layout, memory, visit->active, ret);
}

bool ss_python_names_read(const struct ss_runtime_process *process,
			  const struct ss_python_layout *layout, uint64_t interpreter,
			  struct ss_python_names *ret)
{
	struct names_visit visit = { .process = process, .layout = layout };
	struct ss_python_names again = {};
	size_t kept = 0;

	/* Once: the dictionary is searched for among all modules and their names, which are on
	   many pages. */
	if (!find_active(layout, process->memory, interpreter, &visit.active))
		return true;
	bool ok = read_names_together(&visit, process->memory, ret) &&
		  (ret->list.count == 0 ||
		   read_names_together(&visit, process->after, &again));

	for (size_t i = 0; ok && i < ret->list.count; i++) {
		const struct ss_python_name *name = &ret->list.items[i];
		const struct ss_python_name *same =
			ss_python_names_find(&again, name->id, name->native);
		if (same && same->name == name->name && same->native == name->native)
			ret->list.items[kept++] = *name;
	}
	ret->list.count = kept;
	ss_vector_free(&again.list);
	return ok;
}

const struct ss_python_name *ss_python_names_find(const struct ss_python_names *names,
						  uint64_t id, uint64_t native)
{
	const struct ss_python_name *items = names->list.items;
	const size_t at = ss_lower_bound(names->list.count, i, items[i].id < id);

	return at < names->list.count && items[at].id == id &&
			       (!native || !items[at].native ||
				items[at].native == native) ?
		       &items[at] :
		       NULL;
}
