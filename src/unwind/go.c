#include "unwind/go.h"

#include <string.h>

#include "base/cursor.h"
#include "base/search.h"
#include "elf/elffile.h"

enum {
	NUMBERS_MAX = 4096, /* bytes of one function; typically a few dozen */
	FRAME_MAX = 1 << 30,
	NAME_MAX_SIZE = 32, /* of those that matter */
	WORD = 8,
};

/* Offset of the table of stack depths in the description of a function. */
enum { DEPTHS_AT = 12 }; /* after the entry: name, size of arguments, defer */

static uint64_t read_word(struct ss_image *image, uint64_t offset, unsigned size)
{
	const struct ss_go_table *go = &image->go;
	uint64_t word = 0;

	if (offset > go->size || go->size - offset < size ||
	    ss_image_read_at(image, go->file_offset + offset, &word, size) != size)
		return 0;
	return word;
}

static uint64_t entry_of(struct ss_image *image, uint64_t number)
{
	const struct ss_go_table *go = &image->go;

	return go->text +
	       read_word(image, go->functions + number * 2 * go->word, go->word);
}

/* Finds the function that contains an address. False: there is none. */
static bool find_function(struct ss_image *image, uint64_t address, uint64_t *ret)
{
	uint64_t low = ss_lower_bound(image->go.count, i, entry_of(image, i) <= address);

	*ret = low - 1;
	return low > 0 && address < entry_of(image, low);
}

/*
 * Decodes pairs of numbers (by how much the value grows, and for how many steps it holds)
 * up to the address. Format: "Go 1.2 Runtime Symbol Information", and step() in Go's
 * src/runtime/symtab.go.
 */
static bool find_value(struct ss_cursor *bytes, uint64_t at, uint64_t step,
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

	return go->base + read_word(image, pair + go->word, go->word);
}

bool ss_go_is_entry(struct ss_image *image, uint64_t address)
{
	uint64_t function;

	return ss_image_go_table(image) && find_function(image, address, &function) &&
	       entry_of(image, function) == address;
}

/* Whether the function at address has one of the names. */
static bool is_named(struct ss_image *image, uint64_t address, const char *const *names,
		     size_t count)
{
	char name[NAME_MAX_SIZE] = "";
	uint64_t function;

	if (!ss_image_go_table(image) || !find_function(image, address, &function))
		return false;
	const struct ss_go_table *go = &image->go;
	uint64_t at = read_word(image, find_description(image, function) + go->word, 4);
	uint64_t offset = go->names + at;
	if (offset >= go->names_end)
		return false;
	size_t size = SS_MIN(sizeof(name) - 1, go->names_end - offset);
	if (ss_image_read_at(image, go->file_offset + offset, name, size) != size)
		return false;
	/* With an ABI, ".abi0", in some versions. */
	char *abi = strstr(name, ".abi");
	if (abi)
		*abi = '\0';
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
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

/* How far below the return address the stack pointer is. False: not known. */
static bool find_depth(struct ss_image *image, uint64_t address, int64_t *ret)
{
	const struct ss_go_table *go = &image->go;
	uint8_t numbers[NUMBERS_MAX];
	uint64_t function;

	if (!find_function(image, address, &function))
		return false;
	uint64_t description = find_description(image, function);
	uint64_t moves = read_word(image, description + go->word + DEPTHS_AT, 4);
	uint64_t offset = go->numbers + moves;
	if (moves == 0 || offset >= go->size)
		return false;
	size_t size = ss_image_read_at(image, go->file_offset + offset, numbers,
				       SS_MIN(sizeof(numbers), go->size - offset));
	struct ss_cursor bytes = { .at = numbers, .end = numbers + size };
	return find_value(&bytes, entry_of(image, function), go->step, address, ret) &&
	       *ret >= 0 && *ret < FRAME_MAX && *ret % WORD == 0;
}

bool ss_go_row_make(struct ss_image *image, uint64_t address, struct ss_cfi_row *ret)
{
	const struct ss_arch *arch = image->arch;
	int64_t depth;

	/* On processors with a link register, Go lays out its frames differently. */
	if (arch->link != SS_REG_NONE || !ss_image_go_table(image) ||
	    !find_depth(image, address, &depth))
		return false;
	*ret = (struct ss_cfi_row){ .cfa_register = arch->sp,
				    .cfa_offset = (int32_t)(depth + WORD),
				    .return_rule = SS_RETURN_SAVED,
				    .return_offset = -WORD,
				    .undefined = ~(UINT64_C(1) << arch->fp) };
	/* A frame begins with the caller's frame pointer. */
	if (depth)
		ret->saved[ret->saved_count++] =
			(struct ss_row_saved){ .reg = arch->fp, .offset = -2 * WORD };
	return true;
}
