/*
 * What the function table of Go says of an address: see elf/go_table.h.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/search.h"
#include "elf/go_table.h"
#include "elf/image.h"

const struct ss_go_table *ss_go_table_of(struct ss_image *image)
{
	if (!image->go_tried) {
		_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
			ss_elf_from_module(image->module);
		image->has_go = elf && ss_go_table_find(elf, &image->go);
	}
	image->go_tried = true;
	return image->has_go ? &image->go : NULL;
}

enum {
	/* Bytes of the numbers of one function: typically a few dozen */
	NUMBERS_FIRST = 256,
	NUMBERS_MAX = 64 << 10,
	FRAME_MAX = 1 << 30,
	NAME_MAX_SIZE = 32,   /* of those that matter */
	STRING_MAX = 4 << 10, /* a name or a path; generic functions have long names */
	WORD = 8,
};

/*
 * Offsets in the description of a function, after the entry: struct _func in Go's
 * src/runtime/runtime2.go. The last ones move by 4 with the first line (Go 1.20).
 */
enum {
	NAME_AT = 0,
	DEPTHS_AT = 12, /* after the size of arguments, and defer */
	FILES_AT = 16,
	LINES_AT = 20,
	TABLES_AT = 24, /* their number */
	UNIT_AT = 28,
	DATA_AT = 35, /* the number of pieces of data: a byte */
	TABLES_BEGIN = 36,
};

/* Of its tables and its data: the inlined calls (internal/abi/symtab.go). */
enum { TABLE_CALLS = 2, DATA_CALLS = 3 };

static uint64_t image_word(struct ss_image *image, uint64_t offset, unsigned size)
{
	const struct ss_go_table *go = &image->go;
	uint64_t word = 0;

	if (offset > go->size || go->size - offset < size ||
	    ss_image_read_at(image, go->file_offset + offset, &word, size) != size)
		return 0;
	return word;
}

static uint64_t image_entry_of(struct ss_image *image, uint64_t number)
{
	const struct ss_go_table *go = &image->go;

	return go->text +
	       image_word(image, go->functions + number * 2 * go->word, go->word);
}

/* Finds the function that contains an address. False: there is none. */
static bool find_function(struct ss_image *image, uint64_t address, uint64_t *ret)
{
	uint64_t low =
		ss_lower_bound(image->go.count, i, image_entry_of(image, i) <= address);

	*ret = low - 1;
	return low > 0 && address < image_entry_of(image, low);
}

/*
 * Decodes pairs of numbers (by how much the value grows, and for how many steps it holds)
 * up to the address. Format: "Go 1.2 Runtime Symbol Information", and step() in Go's
 * src/runtime/symtab.go.
 */
static bool decode_value(struct ss_cursor *bytes, uint64_t at, uint64_t step,
			 uint64_t address, int64_t *ret)
{
	uint64_t value = UINT64_MAX; /* -1 */

	for (bool first = true;; first = false) {
		uint64_t grows = ss_cursor_uleb128(bytes);
		if (bytes->failed || (grows == 0 && !first))
			return false;
		value += grows >> 1 ^ -(grows & 1);
		at += ss_cursor_uleb128(bytes) * step;
		if (address < at) {
			*ret = (int64_t)value;
			return !bytes->failed;
		}
	}
}

/*
 * Goroutines begin in goexit(), threads in rt0_go() and mstart(). The others switch to the
 * stack of the thread, where an old frame of mstart() is further out, if anything. Go's own
 * tracebacks end there, too: TOPFRAME and SPWRITE in src/runtime/asm_amd64.s. Names, since
 * the flags of functions (1.17) have moved from version to version.
 */
static const char *const roots[] = {
	"runtime.goexit",     "runtime.mcall",	"runtime.mstart",
	"runtime.asmcgocall", "runtime.rt0_go", "runtime.systemstack",
	"runtime.morestack",
};

static uint64_t find_description(struct ss_image *image, uint64_t function)
{
	const struct ss_go_table *go = &image->go;
	uint64_t pair = go->functions + function * 2 * go->word;

	return go->base + image_word(image, pair + go->word, go->word);
}

bool ss_go_is_entry(struct ss_image *image, uint64_t address)
{
	uint64_t function;

	return ss_go_table_of(image) && find_function(image, address, &function) &&
	       image_entry_of(image, function) == address;
}

/* The start of the name of a function. */
static void read_name(struct ss_image *image, uint64_t function, char ret[NAME_MAX_SIZE])
{
	const struct ss_go_table *go = &image->go;
	const uint64_t at = find_description(image, function) + go->word + NAME_AT;
	const uint64_t offset = go->names + image_word(image, at, 4);

	ret[0] = '\0';
	if (offset >= go->names_end)
		return;
	const size_t size = SS_MIN((uint64_t)NAME_MAX_SIZE - 1, go->names_end - offset);
	ret[size] = '\0';
	if (ss_image_read_at(image, go->file_offset + offset, ret, size) != size)
		ret[0] = '\0';
}

/* Whether the function at address has one of the names. */
static bool is_named(struct ss_image *image, uint64_t address, const char *const *names,
		     size_t count)
{
	char name[NAME_MAX_SIZE];
	uint64_t function;

	if (!ss_go_table_of(image) || !find_function(image, address, &function))
		return false;
	read_name(image, function, name);
	/* With an ABI, ".abi0", in some versions. */
	char *abi = strstr(name, ".abi");
	if (abi)
		*abi = '\0';
	return ss_any(count, i, strcmp(name, names[i]) == 0);
}

bool ss_go_find_function(struct ss_image *image, const char *name, uint64_t *ret_start,
			 uint64_t *ret_size)
{
	char found[NAME_MAX_SIZE];

	for (uint64_t i = 0; ss_go_table_of(image) && i < image->go.count; i++) {
		read_name(image, i, found);
		if (strcmp(found, name) != 0)
			continue;
		*ret_start = image_entry_of(image, i);
		*ret_size = image_entry_of(image, i + 1) - *ret_start;
		return *ret_start + *ret_size > *ret_start;
	}
	return false;
}

bool ss_go_is_root(struct ss_image *image, uint64_t address)
{
	return is_named(image, address, roots, SS_ARRAY_SIZE(roots));
}

bool ss_go_is_sigpanic(struct ss_image *image, uint64_t address)
{
	static const char *const name = "runtime.sigpanic";

	return is_named(image, address, &name, 1);
}

/* The value of an address in a table of numbers of its function. False: it has none. */
static bool find_value(struct ss_image *image, uint64_t function, uint64_t table,
		       uint64_t address, int64_t *ret)
{
	const struct ss_go_table *go = &image->go;
	const uint64_t begin = image_entry_of(image, function);
	const uint64_t offset = go->numbers + table;
	uint8_t numbers[NUMBERS_MAX];

	if (table == 0 || offset >= go->size)
		return false;
	for (size_t max = NUMBERS_FIRST;; max *= 4) {
		const size_t wanted = SS_MIN(max, go->size - offset);
		const size_t size = ss_image_read_at(image, go->file_offset + offset,
						     numbers, wanted);
		struct ss_cursor bytes = { .at = numbers, .end = numbers + size };
		if (decode_value(&bytes, begin, go->step, address, ret))
			return true;
		if (!bytes.failed || size < max || max >= NUMBERS_MAX)
			return false;
	}
}

bool ss_go_find_depth(struct ss_image *image, uint64_t address, int64_t *ret)
{
	uint64_t function;

	if (!ss_go_table_of(image) || !find_function(image, address, &function))
		return false;
	const uint64_t table = image_word(
		image, find_description(image, function) + image->go.word + DEPTHS_AT, 4);
	return find_value(image, function, table, address, ret) && *ret >= 0 &&
	       *ret < FRAME_MAX && *ret % WORD == 0;
}

/* Lines and inlined calls ---------------------------------------------------- */

/* A function whose addresses are looked up. */
struct function {
	struct ss_image *image;
	struct ss_intern *strings;
	uint64_t number;
	uint64_t begin;
	uint64_t end;
	uint64_t description; /* after the entry */
	uint64_t tables;      /* offset of their list */
	uint64_t table_count;
	uint64_t calls; /* ELF virtual address of its inlined calls; 0: not known */
};

/* A string of the table. */
static const char *read_string(const struct function *f, uint64_t offset, uint64_t end)
{
	const struct ss_go_table *go = &f->image->go;
	char text[STRING_MAX];

	if (offset >= end)
		return NULL;
	const size_t size = ss_image_read_at(f->image, go->file_offset + offset, text,
					     SS_MIN(sizeof(text), end - offset));
	return size > 0 && text[0] && memchr(text, '\0', size) ?
		       ss_intern_string(f->strings, text) :
		       NULL;
}

static uint64_t find_calls(const struct function *f, uint64_t data)
{
	const struct ss_go_table *go = &f->image->go;
	const uint64_t last = go->has_first_line ? 4 : 0;
	const uint64_t count = image_word(f->image, f->description + DATA_AT + last, 1);

	if (data == 0 || count <= DATA_CALLS)
		return 0;
	const uint64_t at = f->tables + (f->table_count + DATA_CALLS) * sizeof(uint32_t);
	const uint64_t offset = image_word(f->image, at, sizeof(uint32_t));
	return offset == UINT32_MAX ? 0 : data + offset;
}

static bool open_function(struct ss_image *image, uint64_t address, uint64_t data,
			  struct ss_intern *strings, struct function *ret)
{
	const struct ss_go_table *go = ss_go_table_of(image);

	*ret = (struct function){ .image = image, .strings = strings };
	if (!go || go->files == 0 || !find_function(image, address, &ret->number))
		return false;
	ret->begin = image_entry_of(image, ret->number);
	ret->end = image_entry_of(image, ret->number + 1);
	ret->description = find_description(image, ret->number) + go->word;
	ret->table_count = image_word(image, ret->description + TABLES_AT, 4);
	ret->tables = ret->description + TABLES_BEGIN + (go->has_first_line ? 4 : 0);
	ret->calls = find_calls(ret, data);
	return true;
}

static bool find_number(const struct function *f, unsigned table_at, uint64_t address,
			int64_t *ret)
{
	const uint64_t table = image_word(f->image, f->description + table_at, 4);

	return find_value(f->image, f->number, table, address, ret);
}

static void find_position(const struct function *f, uint64_t address,
			  struct ss_go_call *ret)
{
	const struct ss_go_table *go = &f->image->go;
	int64_t file;
	int64_t line;

	if (!find_number(f, FILES_AT, address, &file) || file < 0 || file > UINT32_MAX ||
	    !find_number(f, LINES_AT, address, &line) || line <= 0 || line > INT32_MAX)
		return;
	const uint64_t unit = image_word(f->image, f->description + UNIT_AT, 4);
	const uint64_t at = image_word(
		f->image, go->units + (unit + (uint64_t)file) * sizeof(uint32_t), 4);
	ret->file = read_string(f, go->files + at, go->numbers);
	ret->line = ret->file ? (uint32_t)line : 0;
}

/* The inlined call that an address is in; < 0: none. False: it is not known. */
static bool find_index(const struct function *f, uint64_t address, int64_t *ret)
{
	*ret = -1;
	if (f->table_count <= TABLE_CALLS)
		return true;
	const uint64_t table = image_word(
		f->image, f->tables + TABLE_CALLS * sizeof(uint32_t), sizeof(uint32_t));
	return table == 0 || find_value(f->image, f->number, table, address, ret);
}

/* Reads an inlined call: its name, and the address in the function that stands for the call. */
static bool read_call(const struct function *f, int64_t index, struct ss_go_call *ret,
		      uint64_t *ret_address)
{
	/* struct inlinedCall: up to Go 1.19 it has a file and line of its own */
	const struct ss_go_table *go = &f->image->go;
	const size_t size = go->has_first_line ? 16 : 20;
	const size_t at = go->has_first_line ? 4 : 12;
	uint32_t words[2]; /* offset of the name, and of the call */

	if (f->calls == 0 || index > UINT16_MAX ||
	    ss_image_read(f->image, f->calls + (uint64_t)index * size + at, words,
			  sizeof(words)) != sizeof(words) ||
	    words[1] >= f->end - f->begin)
		return false;
	ret->function = read_string(f, go->names + words[0], go->names_end);
	*ret_address = f->begin + words[1];
	return ret->function != NULL;
}

size_t ss_go_find_calls(struct ss_image *image, uint64_t address, uint64_t data,
			struct ss_intern *strings, struct ss_go_call *ret, size_t max)
{
	struct function f;

	if (!open_function(image, address, data, strings, &f))
		return 0;
	for (size_t count = 0; count < max; count++) {
		struct ss_go_call *call = &ret[count];
		int64_t index;
		*call = (struct ss_go_call){};
		if (!find_index(&f, address, &index))
			return 0;
		find_position(&f, address, call);
		if (index < 0) {
			const uint64_t name =
				image_word(image, f.description + NAME_AT, 4);
			call->function = read_string(&f, image->go.names + name,
						     image->go.names_end);
			return count + 1;
		}
		if (!read_call(&f, index, call, &address))
			return 0;
	}
	return 0;
}
