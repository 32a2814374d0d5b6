#include "elf/cfi_entry.h"

#include <string.h>

#include "base/cursor.h"
#include "elf/cfi_index.h"

enum {
	/* pcrel | sdata4, which every linker uses for the pointers of an FDE */
	POINTER_PCREL_SDATA4 = 0x1b,
	POINTER_FORMAT = 0x0f,
	POINTER_PCREL = 0x10,
	RECORDS_MAX = 1 << 14, /* of a section in memory */
	CIE_MAX = 256,
	FDE_MAX = SS_CFI_PROGRAM_MAX + 64,
	LENGTH_64 = 0xffffffff,
	ADDRESS_SIZE = 8,
	/* In a CIE, the value in place of the offset of a CIE. In .eh_frame it is 0. */
	DEBUG_CIE_ID = 0xffffffff,
};

/* The bytes of an entry after its length. */
struct record {
	uint8_t bytes[FDE_MAX];
	size_t size;
	uint64_t body; /* ELF virtual address of bytes; or their offset in .debug_frame */
};

/* The section to read. */
struct source {
	struct ss_image *image;
	const struct ss_cfi_index *debug; /* .debug_frame; NULL: .eh_frame of image */
	const struct ss_memory *memory;	  /* or .eh_frame in memory */
};

static size_t read_source(const struct source *source, uint64_t at, void *bytes,
			  size_t size)
{
	if (source->memory)
		return source->memory->read(source->memory, at, bytes, size);
	return source->debug ? ss_cfi_index_read(source->debug, at, bytes, size) :
			       ss_image_read(source->image, at, bytes, size);
}

static bool read_record(const struct source *source, uint64_t address, size_t max,
			struct record *ret)
{
	uint32_t length;

	if (read_source(source, address, &length, sizeof(length)) != sizeof(length) ||
	    length == 0 || length == LENGTH_64 || length > max)
		return false;
	ret->body = address + sizeof(length);
	ret->size = length;
	return read_source(source, ret->body, ret->bytes, length) == length;
}

static struct ss_cursor bytes_of(const struct record *record)
{
	return (struct ss_cursor){ .at = record->bytes,
				   .end = record->bytes + record->size };
}

static bool take_program(struct ss_cursor *b, struct ss_cfi_program *ret)
{
	ret->size = (size_t)(b->end - b->at);
	if (b->failed || ret->size > sizeof(ret->bytes))
		return false;
	memcpy(ret->bytes, b->at, ret->size);
	return true;
}

/* Skips the personality pointer of an augmentation. */
static void skip_pointer(struct ss_cursor *b)
{
	uint8_t encoding = ss_cursor_byte(b);

	switch (encoding & POINTER_FORMAT) {
	case 0x00:
	case 0x04:
	case 0x0c:
		(void)ss_cursor_fixed(b, 8);
		break;
	case 0x03:
	case 0x0b:
		(void)ss_cursor_fixed(b, 4);
		break;
	default:
		b->failed = true;
	}
}

/* Reads the data of the letters after 'z'. */
static bool read_augmentation(struct ss_cursor *b, const char *letters,
			      struct ss_cfi_entry *ret)
{
	uint64_t size = ss_cursor_uleb128(b);
	const uint8_t *data = b->at;
	ret->pointers = 0; /* absolute addresses */
	if (size > (uint64_t)(b->end - b->at))
		return false;
	for (; *letters; letters++) {
		if (*letters == 'R')
			ret->pointers = ss_cursor_byte(b);
		else if (*letters == 'L')
			(void)ss_cursor_byte(b); /* for exception handling */
		else if (*letters == 'P')
			skip_pointer(b);
		else if (*letters == 'S')
			ret->signal = true;
		else if (*letters == 'B' || *letters == 'G')
			continue; /* aarch64: signed with the B key; tagged stack */
		else
			return false;
	}
	b->at = data + size;
	return !b->failed;
}

static void read_factors(struct ss_cursor *b, uint64_t version, struct ss_cfi_entry *ret)
{
	ret->code_align = ss_cursor_uleb128(b);
	ret->data_align = ss_cursor_sleb128(b);
	ret->return_register = version == 1 ? ss_cursor_byte(b) : ss_cursor_uleb128(b);
}

static bool read_cie(const struct source *source, uint64_t address,
		     struct ss_cfi_entry *ret)
{
	struct record record;

	if (!read_record(source, address, CIE_MAX, &record))
		return false;
	struct ss_cursor b = bytes_of(&record);
	uint64_t id = ss_cursor_fixed(&b, 4);
	uint64_t version = ss_cursor_byte(&b);
	const char *letters = (const char *)b.at;
	const uint8_t *nul = memchr(b.at, 0, (size_t)(b.end - b.at));
	if (id != 0 || (version != 1 && version != 3) || !nul || letters[0] != 'z')
		return false;
	b.at = nul + 1;
	read_factors(&b, version, ret);
	return read_augmentation(&b, letters + 1, ret) && take_program(&b, &ret->initial);
}

/* Entries with augmentation are rejected: compilers do not use it in .debug_frame. */
static bool read_debug_cie(const struct source *source, uint64_t offset,
			   struct ss_cfi_entry *ret)
{
	struct record record;

	if (!read_record(source, offset, CIE_MAX, &record))
		return false;
	struct ss_cursor b = bytes_of(&record);
	uint64_t id = ss_cursor_fixed(&b, 4);
	uint64_t version = ss_cursor_byte(&b);
	uint64_t letters = ss_cursor_byte(&b);
	if (id != DEBUG_CIE_ID || letters != 0 ||
	    (version != 1 && version != 3 && version != 4))
		return false;
	uint64_t address_size = version == 4 ? ss_cursor_byte(&b) : ADDRESS_SIZE;
	uint64_t segment_size = version == 4 ? ss_cursor_byte(&b) : 0;
	if (address_size != ADDRESS_SIZE || segment_size != 0)
		return false;
	read_factors(&b, version, ret);
	return take_program(&b, &ret->initial);
}

static enum ss_cfi_found finish(struct ss_cursor *b, uint64_t address,
				struct ss_cfi_entry *ret)
{
	if (b->failed)
		return SS_CFI_COMPLEX;
	if (address < ret->start || address >= ret->end)
		return SS_CFI_NONE;
	return take_program(b, &ret->program) ? SS_CFI_FOUND : SS_CFI_COMPLEX;
}

static enum ss_cfi_found find_in_eh_frame(const struct source *source,
					  const struct ss_cfi_table *table,
					  uint64_t address, struct ss_cfi_entry *ret)
{
	struct record record;
	uint64_t start;
	uint64_t fde;

	if (!ss_cfi_table_search(source->image, table, address, &start, &fde))
		return SS_CFI_NONE;
	if (!read_record(source, fde, FDE_MAX, &record))
		return SS_CFI_COMPLEX;
	struct ss_cursor b = bytes_of(&record);
	uint64_t cie_pointer = ss_cursor_fixed(&b, 4);
	if (cie_pointer == 0 || !read_cie(source, record.body - cie_pointer, ret) ||
	    ret->pointers != POINTER_PCREL_SDATA4)
		return SS_CFI_COMPLEX;
	uint64_t here = record.body + (uint64_t)(b.at - record.bytes);
	ret->start = here + (uint64_t)(int64_t)(int32_t)ss_cursor_fixed(&b, 4);
	ret->end = ret->start + (uint32_t)ss_cursor_fixed(&b, 4);
	uint64_t augmentation = ss_cursor_uleb128(&b);
	if (b.failed || augmentation > (uint64_t)(b.end - b.at))
		return SS_CFI_COMPLEX;
	b.at += augmentation;
	return finish(&b, address, ret);
}

static enum ss_cfi_found find_in_debug_frame(const struct source *source,
					     uint64_t address, struct ss_cfi_entry *ret)
{
	struct record record;
	uint64_t start;
	uint64_t fde;

	if (!source->debug || !ss_cfi_index_search(source->debug, address, &start, &fde))
		return SS_CFI_NONE;
	if (!read_record(source, fde, FDE_MAX, &record))
		return SS_CFI_COMPLEX;
	struct ss_cursor b = bytes_of(&record);
	uint64_t cie = ss_cursor_fixed(&b, 4);
	if (!read_debug_cie(source, cie, ret))
		return SS_CFI_COMPLEX;
	ret->start = ss_cursor_fixed(&b, ADDRESS_SIZE);
	ret->end = ret->start + ss_cursor_fixed(&b, ADDRESS_SIZE);
	return finish(&b, address, ret);
}

enum ss_cfi_found ss_cfi_entry_find(struct ss_image *image,
				    const struct ss_cfi_table *table, uint64_t address,
				    struct ss_cfi_entry *ret)
{
	struct source source = { .image = image };

	ret->signal = false;
	enum ss_cfi_found found = find_in_eh_frame(&source, table, address, ret);
	struct ss_cfi_table other;
	if (found == SS_CFI_NONE && ss_cfi_table_find_other(image, table, &other))
		found = find_in_eh_frame(&source, &other, address, ret);
	if (found != SS_CFI_NONE)
		return found;
	source.debug = ss_image_debug_index(image);
	return find_in_debug_frame(&source, address, ret);
}

/* Reads a pointer of an FDE. base: what it is relative to. */
static uint64_t take_pointer(struct ss_cursor *b, uint8_t encoding, uint64_t base)
{
	uint64_t value = 0;

	switch (encoding & POINTER_FORMAT) {
	case 0x00:
	case 0x04:
	case 0x0c:
		value = ss_cursor_fixed(b, 8);
		break;
	case 0x03:
		value = ss_cursor_fixed(b, 4);
		break;
	case 0x0b:
		value = (uint64_t)(int64_t)(int32_t)ss_cursor_fixed(b, 4);
		break;
	default:
		b->failed = true;
	}
	if ((encoding & ~POINTER_FORMAT) == POINTER_PCREL)
		return value + base;
	if ((encoding & ~POINTER_FORMAT) != 0)
		b->failed = true;
	return value;
}

/* Reads an FDE in memory. *cie is the address of the CIE in ret, or 0. */
static enum ss_cfi_found read_fde(const struct source *source,
				  const struct record *record, uint64_t address,
				  uint64_t *cie, struct ss_cfi_entry *ret)
{
	struct ss_cursor b = bytes_of(record);
	uint64_t wanted = record->body - ss_cursor_fixed(&b, 4);

	if (wanted != *cie) {
		*cie = 0;
		ret->signal = false;
		if (!read_cie(source, wanted, ret))
			return SS_CFI_NONE;
		*cie = wanted;
	}
	ret->start = take_pointer(&b, ret->pointers,
				  record->body + (uint64_t)(b.at - record->bytes));
	ret->end = ret->start + take_pointer(&b, ret->pointers & POINTER_FORMAT, 0);
	if (b.failed || address < ret->start || address >= ret->end)
		return SS_CFI_NONE;
	uint64_t augmentation = ss_cursor_uleb128(&b);
	if (b.failed || augmentation > (uint64_t)(b.end - b.at))
		return SS_CFI_COMPLEX;
	b.at += augmentation;
	return finish(&b, address, ret);
}

enum ss_cfi_found ss_cfi_entry_find_in_memory(const struct ss_memory *memory,
					      uint64_t section, uint64_t address,
					      struct ss_cfi_entry *ret)
{
	const struct source source = { .memory = memory };
	uint64_t cie = 0;

	for (unsigned i = 0; i < RECORDS_MAX; i++) {
		struct record record;
		uint32_t head[2]; /* length, and 0 for a CIE */
		if (!ss_memory_read(memory, section, head, sizeof(head)) ||
		    head[0] < sizeof(head[1]) || head[0] == LENGTH_64)
			return SS_CFI_NONE;
		if (head[1] != 0 && read_record(&source, section, FDE_MAX, &record)) {
			enum ss_cfi_found found =
				read_fde(&source, &record, address, &cie, ret);
			if (found != SS_CFI_NONE)
				return found;
		}
		section += sizeof(head[0]) + head[0];
	}
	return SS_CFI_NONE;
}
