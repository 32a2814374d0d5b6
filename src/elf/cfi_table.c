#include "elf/cfi_table.h"

#include <string.h>

#include "elf/cfi_index.h"

/* DWARF pointer encodings, LSB core 10.5.1. */
enum {
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_OMIT = 0xff,
	PE_TABLE = 0x3b, /* datarel | sdata4, which every linker uses */
	PE_FORMAT = 0x0f,
};

struct header {
	uint8_t version;
	uint8_t frame_encoding;
	uint8_t count_encoding;
	uint8_t table_encoding;
};

struct entry {
	int32_t start; /* from the header */
	int32_t fde;
};

static size_t encoded_size(uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_UDATA2:
	case PE_SDATA2:
		return 2;
	case PE_UDATA4:
	case PE_SDATA4:
		return 4;
	case PE_UDATA8:
	case PE_SDATA8:
		return 8;
	default:
		return 0;
	}
}

static bool find_header(struct ss_image *image, struct ss_cfi_table *ret)
{
	struct header header;
	uint64_t count = 0;

	if (image->frame_header == 0 || ss_image_read(image, image->frame_header, &header,
						      sizeof(header)) != sizeof(header))
		return false;
	size_t frame_size = encoded_size(header.frame_encoding);
	size_t count_size = encoded_size(header.count_encoding);
	if (header.version != 1 || header.table_encoding != PE_TABLE ||
	    header.count_encoding == PE_OMIT || frame_size == 0 || count_size == 0)
		return false;
	uint64_t at = image->frame_header + sizeof(header) + frame_size;
	if (ss_image_read(image, at, &count, count_size) != count_size)
		return false;
	at += count_size;
	/* The program header limits the size of the section. */
	uint64_t used = at - image->frame_header;
	uint64_t room = image->frame_header_size > used ?
				(image->frame_header_size - used) / sizeof(struct entry) :
				0;
	*ret = (struct ss_cfi_table){ .header = image->frame_header,
				      .entries = at,
				      .count = SS_MIN(count, room) };
	return ret->count > 0;
}

static bool read_entry(struct ss_image *image, const struct ss_cfi_table *table,
		       uint64_t index, struct entry *ret)
{
	return ss_image_read(image, table->entries + index * sizeof(*ret), ret,
			     sizeof(*ret)) == sizeof(*ret);
}

static bool use_index(struct ss_image *image, struct ss_cfi_table *ret)
{
	if (!image->cfi_index_tried) {
		image->cfi_index_tried = true;
		image->cfi_index = ss_cfi_index_new(image);
	}
	*ret = (struct ss_cfi_table){ .index = image->cfi_index };
	return ret->index != NULL;
}

bool ss_cfi_table_find(struct ss_image *image, struct ss_cfi_table *ret)
{
	return find_header(image, ret) || use_index(image, ret);
}

static bool is_sorted(struct ss_image *image, const struct ss_cfi_table *table)
{
	struct entry last = { .start = INT32_MIN };
	struct entry entry;

	for (uint64_t i = 0; i < table->count; i++) {
		if (!read_entry(image, table, i, &entry) || entry.start < last.start)
			return false;
		last = entry;
	}
	return true;
}

bool ss_cfi_table_find_other(struct ss_image *image, const struct ss_cfi_table *table,
			     struct ss_cfi_table *ret)
{
	if (table->count == 0)
		return false;
	if (!image->table_checked)
		image->table_sorted = is_sorted(image, table);
	image->table_checked = true;
	return !image->table_sorted && use_index(image, ret);
}

bool ss_cfi_table_search(struct ss_image *image, const struct ss_cfi_table *table,
			 uint64_t address, uint64_t *start, uint64_t *fde)
{
	if (table->index)
		return ss_cfi_index_search(table->index, address, start, fde);
	int64_t offset = (int64_t)(address - table->header);
	uint64_t low = 0;
	uint64_t high = table->count;
	struct entry entry;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (!read_entry(image, table, middle, &entry))
			return false;
		if (entry.start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !read_entry(image, table, low - 1, &entry))
		return false;
	*start = table->header + (uint64_t)(int64_t)entry.start;
	*fde = table->header + (uint64_t)(int64_t)entry.fde;
	return true;
}
