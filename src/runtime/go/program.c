#include "runtime/go/program.h"

#include <stdlib.h>
#include <string.h>

#include "elf/elffile.h"

enum {
	CODE_MAX = 2048,   /* bytes of runtime.allgadd; 350 in Go 1.19 to 1.27 */
	OPERANDS_MAX = 64, /* 25 there */
	WORD = 8,
	SLICE = 3 * WORD, /* pointer, length, capacity */
	BUILD_INFO_STRINGS = 32,
	BUILD_INFO_INLINE = 2, /* flag: strings follow, not pointers (Go 1.18) */
};

static const char list_user[] = "runtime.allgadd";

/* The version, see Go's src/debug/buildinfo: a magic number, flags, and strings, each
   preceded by its length. False: there is none. */
static bool read_version(const struct ss_elf *elf, struct ss_go_program *ret)
{
	static const char magic[] = "\xff Go buildinf:";
	uint8_t head[BUILD_INFO_STRINGS + 1 + sizeof(ret->version)] = {};
	Elf64_Shdr section;

	if (!ss_go_find_build_info(elf, &section))
		return false;
	size_t size = SS_MIN(sizeof(head), section.sh_size);
	if (size < BUILD_INFO_STRINGS ||
	    !ss_elf_read(elf, section.sh_offset, head, size) ||
	    memcmp(head, magic, sizeof(magic) - 1) != 0)
		return false;
	size_t length = head[BUILD_INFO_STRINGS];
	if (!(head[sizeof(magic)] & BUILD_INFO_INLINE) || length >= sizeof(ret->version))
		return true;
	memcpy(ret->version, head + BUILD_INFO_STRINGS + 1, length);
	return true;
}

/* The number in "go1.NUMBER". 0: not known, for example of a version under development. */
static unsigned minor_of(const char *version)
{
	static const char prefix[] = "go1.";
	unsigned minor = 0;

	if (strncmp(version, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	for (const char *at = version + sizeof(prefix) - 1; *at >= '0' && *at <= '9';
	     at++) {
		minor = minor * 10 + (unsigned)(*at - '0');
		if (minor > 1000)
			return 0;
	}
	return minor;
}

/* The function table ------------------------------------------------------- */

static uint64_t read_word(struct ss_image *image, const struct ss_go_table *go,
			  uint64_t offset, unsigned size)
{
	uint64_t word = 0;

	if (offset > go->size || go->size - offset < size ||
	    ss_image_read_at(image, go->file_offset + offset, &word, size) != size)
		return 0;
	return word;
}

static bool has_name(struct ss_image *image, const struct ss_go_table *go,
		     uint64_t description)
{
	uint64_t at = go->names + read_word(image, go, description + go->word, 4);
	char name[sizeof(list_user)];

	return at < go->names_end && go->names_end - at >= sizeof(name) &&
	       ss_image_read_at(image, go->file_offset + at, name, sizeof(name)) ==
		       sizeof(name) &&
	       memcmp(name, list_user, sizeof(name)) == 0;
}

/* Finds the function that appends to the list. Functions are sorted by address, and the
   runtime's are among the first. */
static bool find_function(struct ss_image *image, const struct ss_go_table *go,
			  uint64_t *ret_start, uint64_t *ret_size)
{
	for (uint64_t i = 0; i < go->count; i++) {
		uint64_t pair = go->functions + i * 2 * go->word;
		uint64_t next = pair + 2 * (uint64_t)go->word;
		uint64_t description =
			go->base + read_word(image, go, pair + go->word, go->word);
		if (!has_name(image, go, description))
			continue;
		uint64_t start = read_word(image, go, pair, go->word);
		uint64_t end = read_word(image, go, next, go->word);
		*ret_start = go->text + start;
		*ret_size = end - start;
		return end > start;
	}
	return false;
}

/* The list ----------------------------------------------------------------- */

/* The address of the operand if a 64-bit mov from or to memory relative to the instruction
   pointer begins at code, which is at address. 0: it does not. */
static uint64_t find_operand(const uint8_t *code, uint64_t address)
{
	enum { REX_W = 0x48, REX_MASK = 0xf8, LOAD = 0x8b, STORE = 0x89, LENGTH = 7 };
	int32_t displacement;

	if ((code[0] & REX_MASK) != REX_W || (code[1] != LOAD && code[1] != STORE) ||
	    (code[2] & 0xc7) != 0x05)
		return 0;
	memcpy(&displacement, code + 3, sizeof(displacement));
	return address + LENGTH + (uint64_t)(int64_t)displacement;
}

static bool contains(const uint64_t *list, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i] == address)
			return true;
	}
	return false;
}

/* The only three words in a row that the function accesses are the slice. 0: not found. */
static uint64_t find_slice(const uint64_t *operands, size_t count)
{
	uint64_t slice = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t at = operands[i];
		if (at == slice || !contains(operands, count, at + WORD) ||
		    !contains(operands, count, at + 2 * (uint64_t)WORD))
			continue;
		if (slice || contains(operands, count, at - WORD) ||
		    contains(operands, count, at + SLICE))
			return 0;
		slice = at;
	}
	return slice;
}

/* 0: not found. */
static uint64_t find_list(struct ss_image *image, const struct ss_go_table *go)
{
	enum { LENGTH = 7 };
	uint64_t operands[OPERANDS_MAX];
	uint8_t code[CODE_MAX];
	uint64_t start = 0;
	uint64_t size = 0;
	size_t count = 0;

	if (!find_function(image, go, &start, &size))
		return 0;
	size = ss_image_read(image, start, code, SS_MIN(size, (uint64_t)sizeof(code)));
	for (size_t i = 0; i + LENGTH <= size && count < OPERANDS_MAX; i++) {
		uint64_t operand = find_operand(code + i, start + i);
		if (operand)
			operands[count++] = operand;
	}
	return find_slice(operands, count);
}

/* Everything --------------------------------------------------------------- */

static void find(struct ss_image *image, struct ss_go_program *ret)
{
	const struct ss_go_layout *layout = ss_go_layout_find(minor_of(ret->version));
	const struct ss_go_table *go = ss_image_go_table(image);

	if (image->arch != &ss_arch_x86_64)
		ret->problem = "they are known on x86-64 only";
	else if (!layout)
		ret->problem = "the layout of its runtime is not known";
	else if (!go)
		ret->problem = "its function table cannot be read";
	else if (!(ret->list = find_list(image, go)))
		ret->problem = "their list was not found in the runtime's code";
	else
		ret->layout = layout;
}

const struct ss_go_program *ss_go_program_find(struct ss_image *image)
{
	struct ss_go_program *program = image->go_program;

	if (!program && (program = calloc(1, sizeof(*program)))) {
		_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
			ss_elf_from_module(image->module);
		program->is_go = elf && read_version(elf, program);
		if (program->is_go)
			find(image, program);
		image->go_program = program;
	}
	return program && program->is_go ? program : NULL;
}
