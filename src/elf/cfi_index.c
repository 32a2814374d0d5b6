#include "elf/cfi_index.h"

#include <elf.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"
#include "elf/image.h"

enum {
	SECTIONS_MAX = 4096,
	/* 64 MiB of .eh_frame describe a million functions. */
	SECTION_SIZE_MAX = 64 << 20,
	LENGTH_64 = 0xffffffff,
	CIE_ID = 0xffffffff,
};

struct entry {
	uint64_t start;
	uint64_t fde;
};

struct ss_cfi_index {
	SS_VECTOR(struct entry) entries; /* sorted by start */
	uint8_t *bytes;			 /* of .debug_frame; NULL: .eh_frame */
	size_t size;
};

static bool is_eh_frame(const struct ss_image *image, const Elf64_Shdr *names,
			const Elf64_Shdr *section)
{
	static const char expected[] = ".eh_frame";
	char name[sizeof(expected)];

	/* gold uses the section type that the psABI defines. */
	return (section->sh_type == SHT_PROGBITS ||
		section->sh_type == SHT_X86_64_UNWIND) &&
	       section->sh_name < names->sh_size &&
	       ss_module_read(image->module, names->sh_offset + section->sh_name, name,
			      sizeof(name)) == sizeof(name) &&
	       memcmp(name, expected, sizeof(expected)) == 0;
}

static bool find_section(const struct ss_image *image, Elf64_Shdr *ret)
{
	Elf64_Ehdr header;
	Elf64_Shdr names;

	if (ss_module_read(image->module, 0, &header, sizeof(header)) != sizeof(header) ||
	    header.e_shoff == 0 || header.e_shentsize != sizeof(*ret) ||
	    header.e_shnum > SECTIONS_MAX || header.e_shstrndx >= header.e_shnum ||
	    ss_module_read(image->module,
			   header.e_shoff + header.e_shstrndx * sizeof(names), &names,
			   sizeof(names)) != sizeof(names))
		return false;
	for (size_t i = 0; i < header.e_shnum; i++) {
		if (ss_module_read(image->module, header.e_shoff + i * sizeof(*ret), ret,
				   sizeof(*ret)) != sizeof(*ret))
			return false;
		if (is_eh_frame(image, &names, ret))
			return ret->sh_size <= SECTION_SIZE_MAX;
	}
	return false;
}

/* An FDE starts with the offset of its CIE and the address of its code, which compilers
   and linkers encode as pcrel sdata4. Users of the FDE check the encoding in its CIE. */
struct fde_head {
	uint32_t length;
	uint32_t cie;
	int32_t start;
};

static bool add_entries(struct ss_cfi_index *index, const uint8_t *bytes,
			const Elf64_Shdr *section)
{
	size_t at = 0;

	while (section->sh_size - at >= sizeof(struct fde_head)) {
		struct fde_head head;
		memcpy(&head, bytes + at, sizeof(head));
		if (head.length == LENGTH_64)
			break;
		/* A zero length ends the section, but linkers leave the one of
		   crtend.o in the middle. */
		if (head.length != 0 && head.cie != 0) {
			struct entry *entry = ss_vector_push(&index->entries);
			if (!entry)
				return false;
			entry->fde = section->sh_addr + at;
			entry->start = entry->fde + offsetof(struct fde_head, start) +
				       (uint64_t)(int64_t)head.start;
		}
		if (head.length > section->sh_size - at - sizeof(head.length))
			break;
		at += sizeof(head.length) + head.length;
	}
	return index->entries.count > 0;
}

/* The entries of .debug_frame: DWARF 5, section 6.4.1. Addresses are absolute, and a CIE
   has all bits of its id set. */
static bool add_debug_entries(struct ss_cfi_index *index)
{
	struct debug_head {
		uint32_t length;
		uint32_t cie;
		uint64_t start;
	} __attribute__((packed)) head;

	for (size_t at = 0; index->size - at >= sizeof(head);) {
		memcpy(&head, index->bytes + at, sizeof(head));
		if (head.length == LENGTH_64)
			break;
		if (head.length != 0 && head.cie != CIE_ID) {
			struct entry *entry = ss_vector_push(&index->entries);
			if (!entry)
				return false;
			*entry = (struct entry){ .start = head.start, .fde = at };
		}
		if (head.length > index->size - at - sizeof(head.length))
			break;
		at += sizeof(head.length) + head.length;
	}
	return index->entries.count > 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a;
	const struct entry *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void sort_entries(struct ss_cfi_index *index)
{
	qsort(index->entries.items, index->entries.count, sizeof(*index->entries.items),
	      compare_entries);
}

struct ss_cfi_index *ss_cfi_index_new(struct ss_image *image)
{
	Elf64_Shdr section;

	if (!find_section(image, &section))
		return NULL;
	struct ss_cfi_index *index = calloc(1, sizeof(*index));
	_cleanup_free_ uint8_t *bytes = malloc(section.sh_size + 1);
	if (!index || !bytes ||
	    ss_module_read(image->module, section.sh_offset, bytes, section.sh_size) !=
		    (ssize_t)section.sh_size ||
	    !add_entries(index, bytes, &section)) {
		ss_cfi_index_free(index);
		return NULL;
	}
	sort_entries(index);
	return index;
}

struct ss_cfi_index *ss_cfi_index_new_debug(uint8_t *bytes, size_t size)
{
	struct ss_cfi_index *index = calloc(1, sizeof(*index));

	if (!index) {
		free(bytes);
		return NULL;
	}
	index->bytes = bytes;
	index->size = size;
	if (!add_debug_entries(index)) {
		ss_cfi_index_free(index);
		return NULL;
	}
	sort_entries(index);
	return index;
}

void ss_cfi_index_free(struct ss_cfi_index *index)
{
	if (!index)
		return;
	ss_vector_free(&index->entries);
	free(index->bytes);
	free(index);
}

size_t ss_cfi_index_read(const struct ss_cfi_index *index, uint64_t offset, void *bytes,
			 size_t size)
{
	if (!index->bytes || offset >= index->size)
		return 0;
	size_t n = SS_MIN(size, index->size - (size_t)offset);
	memcpy(bytes, index->bytes + offset, n);
	return n;
}

bool ss_cfi_index_search(const struct ss_cfi_index *index, uint64_t address,
			 uint64_t *start, uint64_t *fde)
{
	size_t low = ss_lower_bound(index->entries.count, i,
				    index->entries.items[i].start <= address);

	if (low == 0)
		return false;
	*start = index->entries.items[low - 1].start;
	*fde = index->entries.items[low - 1].fde;
	return true;
}
