#include "unwind/go_row.h"

#include <string.h>

#include "arch/arch.h"
#include "symbolize/elffile.h"

enum {
	NUMBERS_MAX = 4096, /* bytes of one function; usual are some dozen */
	FRAME_MAX = 1 << 30,
	WORD = 8,
};

/* Where the description of a function has the offset of its stack movements. */
enum { MOVES_AT = 12 }; /* behind its entry: name, size of arguments, defer */

static const struct ss_go_table *table_of(struct ss_image *image)
{
	if (!image->go_tried) {
		struct ss_module_impl *module = image->module;
		_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
			module->fd >= 0 ? ss_elf_from_fd(module->fd) :
					  ss_elf_from_memory(module->bytes, module->size);
		image->has_go = elf && ss_go_table_find(elf, &image->go);
	}
	image->go_tried = true;
	return image->has_go ? &image->go : NULL;
}

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

/* The function that an address is in. False: there is none. */
static bool find_function(struct ss_image *image, uint64_t address, uint64_t *ret)
{
	uint64_t low = 0;
	uint64_t high = image->go.count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (entry_of(image, middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low - 1;
	return low > 0 && address < entry_of(image, low);
}

/*
 * Goes through pairs of numbers, by how much the value grows and for how many steps it
 * holds, up to the address. Format: "Go 1.2 Runtime Symbol Information", and
 * src/runtime/symtab.go, step().
 */
static bool find_value(struct ss_cfi_bytes *bytes, uint64_t at, uint64_t step,
		       uint64_t address, int64_t *ret)
{
	uint64_t value = UINT64_MAX; /* -1 */

	for (bool first = true;; first = false) {
		uint64_t grows = ss_cfi_read_uleb(bytes);
		if (bytes->failed || (grows == 0 && !first))
			return false;
		value += grows >> 1 ^ -(grows & 1);
		at += ss_cfi_read_uleb(bytes) * step;
		if (address < at) {
			*ret = (int64_t)value;
			return !bytes->failed;
		}
	}
}

/* How far below the return address the stack pointer is. False: that is not known. */
static bool find_depth(struct ss_image *image, uint64_t address, int64_t *ret)
{
	const struct ss_go_table *go = &image->go;
	uint8_t numbers[NUMBERS_MAX];
	uint64_t function;

	if (!find_function(image, address, &function))
		return false;
	uint64_t pair = go->functions + function * 2 * go->word;
	uint64_t description = go->base + read_word(image, pair + go->word, go->word);
	uint64_t moves = read_word(image, description + go->word + MOVES_AT, 4);
	uint64_t offset = go->numbers + moves;
	if (moves == 0 || offset >= go->size)
		return false;
	size_t size = ss_image_read_at(image, go->file_offset + offset, numbers,
				       SS_MIN(sizeof(numbers), go->size - offset));
	struct ss_cfi_bytes bytes = { .at = numbers, .end = numbers + size };
	return find_value(&bytes, entry_of(image, function), go->step, address, ret) &&
	       *ret >= 0 && *ret < FRAME_MAX && *ret % WORD == 0;
}

bool ss_go_row_make(struct ss_image *image, uint64_t address, struct ss_cfi_row *ret)
{
	int64_t depth;

	if (!table_of(image) || !find_depth(image, address, &depth))
		return false;
	*ret = (struct ss_cfi_row){ .cfa_register = ss_arch.sp,
				    .cfa_offset = (int32_t)(depth + WORD) };
	for (unsigned reg = 0; reg < SS_ROW_REGS; reg++)
		ret->rules[reg] = SS_RULE_UNDEFINED;
	ret->rules[ss_arch.pc] = SS_RULE_SAVED;
	ret->offsets[ss_arch.pc] = -WORD;
	/* A frame begins with the caller's frame pointer. */
	ret->rules[ss_arch.fp] = depth ? SS_RULE_SAVED : SS_RULE_SAME;
	ret->offsets[ss_arch.fp] = -2 * WORD;
	return true;
}
