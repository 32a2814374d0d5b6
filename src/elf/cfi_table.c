#include "elf/cfi_table.h"

#include <elf.h>
#include <libelf.h>
#include <string.h>

#include "base/bytes.h"
#include "base/search.h"
#include "base/vector.h"
#include "elf/debugfile.h"
#include "elf/elffile.h"
#include "elf/image.h"

enum {
	SECTIONS_MAX = 4096,
	/* 64 MiB of .eh_frame describe a million functions. */
	SECTION_SIZE_MAX = 64 << 20,
	LENGTH_64 = 0xffffffff,
	CIE_ID = 0xffffffff,
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

static bool read_section_header(const struct ss_image *image, const Elf64_Ehdr *header,
				size_t index, Elf64_Shdr *ret)
{
	if (ss_module_read(image->module, header->e_shoff + index * header->e_shentsize,
			   ret, header->e_shentsize) != header->e_shentsize)
		return false;
	ss_elf_widen(image->arch->elf_class, SS_ELF_SECTION, ret, 1);
	return true;
}

static bool find_section(const struct ss_image *image, Elf64_Shdr *ret)
{
	Elf64_Ehdr header;
	Elf64_Shdr names;

	if (ss_module_read(image->module, 0, &header, sizeof(header)) != sizeof(header))
		return false;
	ss_elf_widen(image->arch->elf_class, SS_ELF_HEADER, &header, 1);
	if (header.e_shoff == 0 ||
	    header.e_shentsize !=
		    ss_elf_record_size(image->arch->elf_class, SS_ELF_SECTION) ||
	    header.e_shnum > SECTIONS_MAX || header.e_shstrndx >= header.e_shnum ||
	    !read_section_header(image, &header, header.e_shstrndx, &names))
		return false;
	for (size_t i = 0; i < header.e_shnum; i++) {
		if (!read_section_header(image, &header, i, ret))
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
			struct ss_cfi_place *entry = ss_vector_push(&index->entries);
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
		uint64_t start; /* index->word bytes */
	} __attribute__((packed)) head = {};
	const size_t size = offsetof(struct debug_head, start) + index->word;

	for (size_t at = 0; index->size - at >= size;) {
		memcpy(&head, index->bytes + at, size);
		if (head.length == LENGTH_64)
			break;
		if (head.length != 0 && head.cie != CIE_ID) {
			struct ss_cfi_place *entry = ss_vector_push(&index->entries);
			if (!entry)
				return false;
			*entry = (struct ss_cfi_place){ .start = head.start, .fde = at };
		}
		if (head.length > index->size - at - sizeof(head.length))
			break;
		at += sizeof(head.length) + head.length;
	}
	return index->entries.count > 0;
}

SS_DEFINE_COMPARE(compare_entries, struct ss_cfi_place, start)

static void sort_entries(struct ss_cfi_index *index)
{
	qsort(index->entries.items, index->entries.count, sizeof(*index->entries.items),
	      compare_entries);
}

/* Indexes .eh_frame. NULL: there is none, it has no readable FDE, or no memory. */
static struct ss_cfi_index *cfi_index_new(struct ss_image *image)
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

/* Indexes .debug_frame. It owns its bytes afterwards, also on failure. */
static struct ss_cfi_index *index_debug_frame(const struct ss_cfi_index *section)
{
	struct ss_cfi_index *index = calloc(1, sizeof(*index));

	if (!index) {
		free(section->bytes);
		return NULL;
	}
	*index = *section;
	if (!add_debug_entries(index)) {
		ss_cfi_index_free(index);
		return NULL;
	}
	sort_entries(index);
	return index;
}

/* Copies bytes at an offset of .debug_frame; fewer at its end. Returns their number. */
static size_t cfi_index_read(const struct ss_cfi_index *index, uint64_t offset,
			     void *bytes, size_t size)
{
	if (!index->bytes || offset >= index->size)
		return 0;
	size_t n = SS_MIN(size, index->size - (size_t)offset);
	memcpy(bytes, index->bytes + offset, n);
	return n;
}

/* Finds the last FDE whose code starts at or before address. *start is the address of the
   code, *fde that of the FDE (ELF virtual; in .debug_frame its offset). */
static bool cfi_index_search(const struct ss_cfi_index *index, uint64_t address,
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

struct header_entry {
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
	uint64_t room =
		image->frame_header_size > used ?
			(image->frame_header_size - used) / sizeof(struct header_entry) :
			0;
	*ret = (struct ss_cfi_table){ .header = image->frame_header,
				      .entries = at,
				      .count = SS_MIN(count, room) };
	return ret->count > 0;
}

static bool read_entry(struct ss_image *image, const struct ss_cfi_table *table,
		       uint64_t index, struct header_entry *ret)
{
	return ss_image_read(image, table->entries + index * sizeof(*ret), ret,
			     sizeof(*ret)) == sizeof(*ret);
}

static bool use_index(struct ss_image *image, struct ss_cfi_table *ret)
{
	if (!image->cfi_index_tried) {
		image->cfi_index_tried = true;
		image->cfi_index = cfi_index_new(image);
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
	struct header_entry last = { .start = INT32_MIN };
	struct header_entry entry;

	for (uint64_t i = 0; i < table->count; i++) {
		if (!read_entry(image, table, i, &entry) || entry.start < last.start)
			return false;
		last = entry;
	}
	return true;
}

/*
 * Finds a second table, for addresses that the first does not cover: an index, if
 * .eh_frame_hdr is not sorted (lld 14 does not sort it if code precedes it). False: there
 * is none.
 */
static bool cfi_table_find_other(struct ss_image *image, const struct ss_cfi_table *table,
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
		return cfi_index_search(table->index, address, start, fde);
	int64_t offset = (int64_t)(address - table->header);
	uint64_t low = 0;
	uint64_t high = table->count;
	struct header_entry entry;

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

enum {
	POINTER_FORMAT = 0x0f,
	POINTER_PCREL = 0x10,
	RECORDS_MAX = 1 << 14, /* of a section in memory */
	CIE_MAX = 256,
	FDE_MAX = SS_CFI_PROGRAM_MAX + 64,
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
	uint8_t word;			  /* bytes of an address */
};

static size_t read_source(const struct source *source, uint64_t at, void *bytes,
			  size_t size)
{
	if (source->memory)
		return source->memory->read(source->memory, at, bytes, size);
	return source->debug ? cfi_index_read(source->debug, at, bytes, size) :
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
static void skip_pointer(struct ss_cursor *b, uint8_t word)
{
	uint8_t encoding = ss_cursor_byte(b);

	switch (encoding & POINTER_FORMAT) {
	case 0x00:
		(void)ss_cursor_fixed(b, word);
		break;
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
static bool read_augmentation(struct ss_cursor *b, const char *letters, uint8_t word,
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
			skip_pointer(b, word);
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
	return read_augmentation(&b, letters + 1, source->word, ret) &&
	       take_program(&b, &ret->initial);
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
	uint64_t address_size = version == 4 ? ss_cursor_byte(&b) : source->word;
	uint64_t segment_size = version == 4 ? ss_cursor_byte(&b) : 0;
	if (address_size != source->word || segment_size != 0)
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

/* Reads a pointer of an FDE. base: what it is relative to. */
static uint64_t take_pointer(struct ss_cursor *b, uint8_t encoding, uint8_t word,
			     uint64_t base)
{
	uint64_t value = 0;

	switch (encoding & POINTER_FORMAT) {
	case 0x00:
		value = ss_cursor_fixed(b, word);
		break;
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
		return word == sizeof(uint32_t) ? (uint32_t)(value + base) : value + base;
	if ((encoding & ~POINTER_FORMAT) != 0)
		b->failed = true;
	return value;
}

/* Reads an FDE of .eh_frame. *cie is the address of the CIE in ret, or 0. */
static enum ss_cfi_found read_fde(const struct source *source,
				  const struct record *record, uint64_t address,
				  uint64_t *cie, struct ss_cfi_entry *ret)
{
	struct ss_cursor b = bytes_of(record);
	uint64_t wanted = record->body - ss_cursor_fixed(&b, 4);

	if (*cie == 0 || wanted != *cie) {
		*cie = 0;
		ret->signal = false;
		if (!read_cie(source, wanted, ret))
			return SS_CFI_COMPLEX;
		*cie = wanted;
	}
	ret->start = take_pointer(&b, ret->pointers, source->word,
				  record->body + (uint64_t)(b.at - record->bytes));
	ret->end = ret->start +
		   take_pointer(&b, ret->pointers & POINTER_FORMAT, source->word, 0);
	if (!b.failed && (address < ret->start || address >= ret->end))
		return SS_CFI_NONE;
	uint64_t augmentation = ss_cursor_uleb128(&b);
	if (b.failed || augmentation > (uint64_t)(b.end - b.at))
		return SS_CFI_COMPLEX;
	b.at += augmentation;
	return finish(&b, address, ret);
}

static enum ss_cfi_found find_in_eh_frame(const struct source *source,
					  const struct ss_cfi_table *table,
					  uint64_t address, struct ss_cfi_entry *ret)
{
	struct record record;
	uint64_t start;
	uint64_t fde;
	uint64_t cie = 0;

	if (!ss_cfi_table_search(source->image, table, address, &start, &fde))
		return SS_CFI_NONE;
	if (!read_record(source, fde, FDE_MAX, &record))
		return SS_CFI_COMPLEX;
	return read_fde(source, &record, address, &cie, ret);
}

static enum ss_cfi_found find_in_debug_frame(const struct source *source,
					     uint64_t address, struct ss_cfi_entry *ret)
{
	struct record record;
	uint64_t start;
	uint64_t fde;

	if (!source->debug || !cfi_index_search(source->debug, address, &start, &fde))
		return SS_CFI_NONE;
	if (!read_record(source, fde, FDE_MAX, &record))
		return SS_CFI_COMPLEX;
	struct ss_cursor b = bytes_of(&record);
	uint64_t cie = ss_cursor_fixed(&b, 4);
	if (!read_debug_cie(source, cie, ret))
		return SS_CFI_COMPLEX;
	ret->start = ss_cursor_fixed(&b, source->word);
	ret->end = ret->start + ss_cursor_fixed(&b, source->word);
	return finish(&b, address, ret);
}

/*
 * The .debug_frame section, with which programs without .eh_frame are unwound. It is
 * not loaded with the program, but read from the module's file or its separate debug
 * file, and may be compressed.
 */

/* 64 MiB describe a million functions. */
enum { DEBUG_FRAME_MAX = 64 << 20 };

/* Decompresses a section with libelf. */
static uint8_t *decompress_section(Elf *handle, const struct ss_elf *elf,
				   const Elf64_Shdr *section, size_t *size)
{
	Elf_Scn *compressed = elf_getscn(handle, (size_t)(section - elf->sections));
	Elf_Data *data = compressed && elf_compress(compressed, 0, 0) >= 0 ?
				 elf_rawdata(compressed, NULL) :
				 NULL;

	if (!data || !data->d_buf || data->d_size > DEBUG_FRAME_MAX)
		return NULL;
	uint8_t *bytes = malloc(data->d_size + 1);
	if (!bytes)
		return NULL;
	memcpy(bytes, data->d_buf, data->d_size);
	*size = data->d_size;
	return bytes;
}

static uint8_t *read_compressed(const struct ss_elf *elf, const Elf64_Shdr *section,
				size_t *size)
{
	Elf64_Chdr header;

	if (elf->fd < 0 || section->sh_size > DEBUG_FRAME_MAX ||
	    elf_version(EV_CURRENT) == EV_NONE ||
	    !ss_elf_read_records(elf, SS_ELF_PACKED, section->sh_offset, &header, 1) ||
	    header.ch_size > DEBUG_FRAME_MAX)
		return NULL;
	Elf *handle = elf_begin(elf->fd, ELF_C_READ, NULL);
	uint8_t *bytes = handle ? decompress_section(handle, elf, section, size) : NULL;
	(void)elf_end(handle); /* returns a reference count; accepts NULL */
	return bytes;
}

static bool read_section(const struct ss_elf *elf, struct ss_cfi_index *ret)
{
	const Elf64_Shdr *section = elf ? ss_elf_find_section(elf, ".debug_frame") : NULL;

	if (!section || section->sh_size > DEBUG_FRAME_MAX)
		return false;
	ret->word = elf->header.e_ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
	ret->size = section->sh_size;
	ret->bytes = section->sh_flags & SHF_COMPRESSED ?
			     read_compressed(elf, section, &ret->size) :
			     ss_elf_copy_section(elf, section);
	return ret->bytes != NULL;
}

/* The index of the decompressed section, or NULL. session: where debug files are; NULL: reads
   the module's own file only. */
static struct ss_cfi_index *debug_frame_read(const struct ss_session *session,
					     const struct ss_module_impl *module)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *own = ss_elf_from_module(module);
	_cleanup_(ss_elf_cleanup) struct ss_elf *debug = NULL;
	struct ss_cfi_index section = {};

	if (!read_section(own, &section)) {
		debug = session ? ss_debugfile_find(session, module, own) : NULL;
		if (!read_section(debug, &section))
			return NULL;
	}
	return index_debug_frame(&section);
}

/* The index of .debug_frame, built on first use. NULL: there is none. */
static const struct ss_cfi_index *find_debug_index(struct ss_image *image)
{
	if (!image->debug_index_tried)
		image->debug_index = debug_frame_read(image->session, image->module);
	image->debug_index_tried = true;
	return image->debug_index;
}

struct ss_cfi_index *ss_cfi_index_debug_frame(const struct ss_module_impl *module)
{
	return debug_frame_read(NULL, module);
}

enum ss_cfi_found ss_cfi_entry_find_in_index(const struct ss_cfi_index *index,
					     uint64_t address, struct ss_cfi_entry *ret)
{
	const struct source source = { .debug = index, .word = index->word };

	ret->signal = false;
	return find_in_debug_frame(&source, address, ret);
}

enum ss_cfi_found ss_cfi_entry_find(struct ss_image *image,
				    const struct ss_cfi_table *table, uint64_t address,
				    struct ss_cfi_entry *ret)
{
	struct source source = { .image = image, .word = image->arch->word };

	ret->signal = false;
	enum ss_cfi_found found = find_in_eh_frame(&source, table, address, ret);
	struct ss_cfi_table other;
	if (found == SS_CFI_NONE && cfi_table_find_other(image, table, &other))
		found = find_in_eh_frame(&source, &other, address, ret);
	if (found != SS_CFI_NONE)
		return found;
	source.debug = find_debug_index(image);
	return find_in_debug_frame(&source, address, ret);
}

enum ss_cfi_found ss_cfi_entry_find_in_memory(const struct ss_memory *memory,
					      uint8_t word, uint64_t section,
					      uint64_t address, struct ss_cfi_entry *ret)
{
	const struct source source = { .memory = memory, .word = word };
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
			if (found == SS_CFI_FOUND)
				return found;
		}
		section += sizeof(head[0]) + head[0];
	}
	return SS_CFI_NONE;
}
