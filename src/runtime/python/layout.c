#include "runtime/python/layout.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, and the headers
   of each version; the numbers are those of offsetof() for the x86-64 ABI. */
static const struct ss_python_layout layouts[] = {
	{
		.minor = 8,
		.frames = SS_PYTHON_COUNT,
		.lines = SS_PYTHON_LNOTAB,
		.interpreters = 32,
		.interp_threads = 8,
		.interp_modules = 56,
		.thread_next = 8,
		.thread_interp = 16,
		.thread_frame = 24,
		.thread_id = 176,
		.thread_size = 184,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 104,
		.frame_size = 112,
		.code_first_line = 40,
		.code_filename = 104,
		.code_name = 112,
		.code_lines = 120,
		.code_size = 128,
		.ascii = 48,
		.compact = 72,
		.gil = 1152,
	},
	{
		.minor = 9,
		.frames = SS_PYTHON_COUNT,
		.lines = SS_PYTHON_LNOTAB,
		.interpreters = 32,
		.interp_threads = 8,
		.interp_modules = 856,
		.thread_next = 8,
		.thread_interp = 16,
		.thread_frame = 24,
		.thread_id = 176,
		.thread_size = 184,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 104,
		.frame_size = 112,
		.code_first_line = 40,
		.code_filename = 104,
		.code_name = 112,
		.code_lines = 120,
		.code_size = 128,
		.ascii = 48,
		.compact = 72,
		.gil = 352,
	},
	{
		.minor = 10,
		.frames = SS_PYTHON_COUNT,
		.lines = SS_PYTHON_LINE_PAIRS,
		.interpreters = 32,
		.interp_threads = 8,
		.interp_modules = 856,
		.thread_next = 8,
		.thread_interp = 16,
		.thread_frame = 24,
		.thread_id = 176,
		.thread_size = 184,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 96,
		.frame_size = 112,
		.code_first_line = 40,
		.code_filename = 104,
		.code_name = 112,
		.code_lines = 120,
		.code_size = 128,
		.ascii = 48,
		.compact = 72,
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
	if (strcmp(machine, "x86_64") != 0) {
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
