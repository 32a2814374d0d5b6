#include "elf/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"
#include "elf/elffile.h"

/* 16 million symbols are four times as many as in the largest known program.
   DYNAMIC_MAX is a hundred times what linkers write. Names that tell the compiler (__gnat_) are within the
   first kilobyte. */
enum {
	SYMBOL_COUNT_MAX = 1 << 24,
	DYNAMIC_MAX = 4096,
	NAMES_CHUNK = 16 << 10,
	NAME_BEGIN_MAX = 32,
	NAMES_SEARCHED_MAX = 128 << 10,
};

void ss_table_free(struct ss_table *table)
{
	free(table->symbols);
	free(table->names);
	*table = (struct ss_table){};
}

static const Elf64_Shdr *find_table(const struct ss_elf *elf, uint32_t type)
{
	for (size_t i = 1; i < elf->section_count; i++) {
		if (elf->sections[i].sh_type == type)
			return &elf->sections[i];
	}
	return NULL;
}

/* Moves a table to ret if it is complete. */
static bool take_table(struct ss_table *table, struct ss_table *ret)
{
	if (!table->symbols || !table->names)
		return false;
	*ret = *table;
	*table = (struct ss_table){};
	return true;
}

static size_t symbol_size(const struct ss_elf *elf)
{
	return ss_elf_record_size(elf->header.e_ident[EI_CLASS], SS_ELF_SYMBOL);
}

/* Finds the sections of a table and of its names. False: there is none, or it is corrupted. */
static bool table_find(const struct ss_elf *elf, uint32_t type,
		       const Elf64_Shdr **ret_symbols, const Elf64_Shdr **ret_names)
{
	const Elf64_Shdr *symbols = find_table(elf, type);
	const Elf64_Shdr *names = symbols ? ss_elf_section(elf, symbols->sh_link) : NULL;

	if (!names || names->sh_type != SHT_STRTAB ||
	    symbols->sh_entsize != symbol_size(elf) ||
	    ss_elf_symbol_count(elf, symbols) > SYMBOL_COUNT_MAX)
		return false;
	*ret_symbols = symbols;
	*ret_names = names;
	return true;
}

bool ss_table_read(const struct ss_elf *elf, uint32_t type, struct ss_table *ret)
{
	const Elf64_Shdr *symbols;
	const Elf64_Shdr *names;
	_cleanup_table_ struct ss_table table = {};

	if (!table_find(elf, type, &symbols, &names))
		return false;
	table.symbols = ss_elf_copy_symbols(elf, symbols);
	table.count = ss_elf_symbol_count(elf, symbols);
	table.names = ss_elf_copy_section(elf, names);
	table.names_size = names->sh_size;
	return take_table(&table, ret);
}

bool ss_table_has_name(const struct ss_elf *elf, uint32_t type, const char *begin)
{
	const size_t size = strlen(begin) + 1; /* with the NUL before it */
	const Elf64_Shdr *symbols;
	const Elf64_Shdr *names;
	char bytes[NAMES_CHUNK];
	char wanted[NAME_BEGIN_MAX] = "";
	bool found = false;
	uint64_t at = 0;

	if (size > sizeof(wanted) || !table_find(elf, type, &symbols, &names))
		return false;
	const uint64_t end = SS_MIN(names->sh_size, (uint64_t)NAMES_SEARCHED_MAX);
	memcpy(wanted + 1, begin, size - 1);
	while (!found && end - at >= size) {
		const size_t count = (size_t)SS_MIN(end - at, sizeof(bytes));
		if (!ss_elf_read(elf, names->sh_offset + at, bytes, count))
			return false;
		found = memmem(bytes, count, wanted, size);
		at += count - size + 1; /* one name may be in two pieces */
	}
	return found;
}

/* Entries of the dynamic segment; 0: not there. */
struct dynamic {
	uint64_t symbols;
	uint64_t names;
	uint64_t names_size;
	uint64_t hash;
	uint64_t gnu_hash;
};

static bool read_dynamic(const struct ss_elf *elf, const Elf64_Phdr *segment,
			 struct dynamic *ret)
{
	uint64_t count = SS_MIN(
		segment->p_filesz /
			ss_elf_record_size(elf->header.e_ident[EI_CLASS], SS_ELF_DYNAMIC),
		(uint64_t)DYNAMIC_MAX);
	uint64_t at;
	_cleanup_free_ Elf64_Dyn *entries = NULL;

	/* A memory image is laid out by its loadable segments. */
	if (!ss_elf_locate(elf, segment->p_vaddr, &at))
		return false;
	entries = ss_elf_copy_records(elf, SS_ELF_DYNAMIC, at, count);
	for (uint64_t i = 0; entries && i < count && entries[i].d_tag != DT_NULL; i++) {
		uint64_t value = entries[i].d_un.d_val;
		switch (entries[i].d_tag) {
		case DT_SYMTAB:
			ret->symbols = value;
			break;
		case DT_STRTAB:
			ret->names = value;
			break;
		case DT_STRSZ:
			ret->names_size = value;
			break;
		case DT_HASH:
			ret->hash = value;
			break;
		case DT_GNU_HASH:
			ret->gnu_hash = value;
			break;
		}
	}
	return ret->symbols && ret->names;
}

/* The load bias of a file whose lowest segment is at base. */
static uint64_t load_bias(const struct ss_elf *elf, uint64_t base)
{
	uint64_t lowest = UINT64_MAX;

	for (size_t i = 0; i < elf->segment_count; i++) {
		if (elf->segments[i].p_type == PT_LOAD)
			lowest = SS_MIN(lowest, elf->segments[i].p_vaddr);
	}
	return base - (lowest & ~(uint64_t)0xfff);
}

/* The file offset of a pointer, which may have been relocated. */
static bool locate_pointer(const struct ss_elf *elf, uint64_t pointer, uint64_t bias,
			   uint64_t *ret)
{
	return pointer && (ss_elf_locate(elf, pointer, ret) ||
			   ss_elf_locate(elf, pointer - bias, ret));
}

/* Of the filter of a .gnu.hash section. */
static size_t word_size(const struct ss_elf *elf)
{
	return elf->header.e_ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
}

/* The chain of the last bucket ends with the last symbol of the table. */
static uint64_t count_gnu_hash(const struct ss_elf *elf, uint64_t at)
{
	uint32_t head[4]; /* buckets, first symbol, words of the filter, shift */
	uint32_t last = 0;
	uint32_t link = 0;

	if (!ss_elf_read(elf, at, head, sizeof(head)))
		return 0;
	uint64_t buckets_at = at + sizeof(head) + (uint64_t)head[2] * word_size(elf);
	_cleanup_free_ uint32_t *buckets =
		ss_elf_copy(elf, buckets_at, (uint64_t)head[0] * sizeof(uint32_t));
	for (uint32_t i = 0; buckets && i < head[0]; i++)
		last = SS_MAX(last, buckets[i]);
	if (last < head[1] || !buckets)
		return head[1];
	uint64_t chains_at = buckets_at + (uint64_t)head[0] * sizeof(uint32_t);
	while (last < SYMBOL_COUNT_MAX && !(link & 1)) {
		uint64_t link_at = chains_at + (uint64_t)(last - head[1]) * sizeof(link);
		if (!ss_elf_read(elf, link_at, &link, sizeof(link)))
			return last;
		last++;
	}
	return last;
}

static uint64_t count_symbols(const struct ss_elf *elf, const struct dynamic *dynamic,
			      uint64_t bias)
{
	uint32_t head[2]; /* buckets, chains: as many as symbols */
	uint64_t at;

	if (locate_pointer(elf, dynamic->hash, bias, &at) &&
	    ss_elf_read(elf, at, head, sizeof(head)))
		return head[1];
	if (locate_pointer(elf, dynamic->gnu_hash, bias, &at))
		return count_gnu_hash(elf, at);
	return 0;
}

bool ss_table_read_dynamic(const struct ss_elf *elf, uint64_t base, struct ss_table *ret)
{
	uint64_t bias = load_bias(elf, base);
	_cleanup_table_ struct ss_table table = {};
	struct dynamic dynamic = {};
	uint64_t symbols_at;
	uint64_t names_at;
	bool found = false;

	for (size_t i = 0; i < elf->segment_count && !found; i++) {
		if (elf->segments[i].p_type == PT_DYNAMIC)
			found = read_dynamic(elf, &elf->segments[i], &dynamic);
	}
	if (!found || !locate_pointer(elf, dynamic.symbols, bias, &symbols_at) ||
	    !locate_pointer(elf, dynamic.names, bias, &names_at))
		return false;
	uint64_t count = count_symbols(elf, &dynamic, bias);
	if (count > SYMBOL_COUNT_MAX)
		return false;
	table.count = (size_t)count;
	table.symbols = ss_elf_copy_records(elf, SS_ELF_SYMBOL, symbols_at, count);
	table.names_size = dynamic.names_size;
	table.names = ss_elf_copy(elf, names_at, dynamic.names_size);
	return take_table(&table, ret);
}

enum {
	BATCH = 1024,	 /* symbols read at once */
	SMALL = BATCH,	 /* symbols; a whole table is as fast */
	KEPT_MAX = 8192, /* usually some dozens */
	CANDIDATES_MAX = 8 * KEPT_MAX,
	NAME_PART = 128, /* most names are shorter */
	NAMES_MAX = 4 << 20,
	FIRST_TRIES = 64,
	BUCKETS = 2048,
};

#define NONE UINT64_MAX

/* Addresses, ascending, with an index. A table has ten thousands of symbols, and a binary search
   for each would take as long as to sort them. */
struct places {
	const uint64_t *items;
	size_t count;
	unsigned shift;
	/* How many are below items[0] + ((i - 1) << shift), of all i from 1 on. */
	uint32_t below[BUCKETS + 3];
};

struct reader {
	const struct ss_elf *elf;
	const struct ss_table_excerpt *excerpt;
	const Elf64_Shdr *symbols;
	const Elf64_Shdr *names;
	struct places *addresses;
	/* For each address where the last symbol at or before it begins. NONE until it is
	   known, 0 if there is none. */
	uint64_t *starts;
	/* Of all symbols, in their order: the first ones, and those that may be wanted. */
	SS_VECTOR(Elf64_Sym) candidates;
	/* Both, ascending: symbols that cover one of these are kept. */
	uint64_t *all;
	struct places *all_places;
	SS_VECTOR(Elf64_Sym) kept; /* from index 1 on; names are offsets in text */
	struct ss_buffer text;
	size_t tries; /* to find a first symbol */
	bool unusual;
};

static void reader_deinit(struct reader *reader)
{
	free(reader->addresses);
	free(reader->starts);
	ss_vector_free(&reader->candidates);
	free(reader->all);
	free(reader->all_places);
	ss_vector_free(&reader->kept);
	ss_buffer_deinit(&reader->text);
}

/* At least one item. NULL without memory. */
static struct places *places_new(const uint64_t *items, size_t count)
{
	struct places *places = malloc(sizeof(*places));
	size_t at = 0;

	if (!places)
		return NULL;
	*places = (struct places){ .items = items, .count = count };
	while ((items[count - 1] - items[0]) >> places->shift >= BUCKETS)
		places->shift++;
	for (size_t i = 0; i <= BUCKETS; i++) {
		while (at < count && (items[at] - items[0]) >> places->shift < i)
			at++;
		places->below[i + 1] = (uint32_t)at;
	}
	places->below[BUCKETS + 2] = (uint32_t)count;
	return places;
}

/* The first one at or after start, or count. Without branches until a bucket with items: they
   could not be predicted. */
static size_t find(const struct places *places, uint64_t start)
{
	const uint64_t *items = places->items;
	uint64_t above = start > items[0] ? start - items[0] : 0;
	uint64_t bucket = SS_MIN(above >> places->shift, (uint64_t)BUCKETS);

	bucket += above > 0;
	size_t from = places->below[bucket];
	size_t count = places->below[bucket + 1] - from;
	return from + ss_lower_bound(count, i, items[from + i] < start);
}

static bool covers(const Elf64_Sym *symbol, uint64_t address)
{
	return address >= symbol->st_value &&
	       address - symbol->st_value < symbol->st_size;
}

/* Drops the last candidates before an address that are not wanted, now that a later symbol
   begins there. Tables are often sorted: all would be candidates. */
static void drop_passed(struct reader *reader, size_t at)
{
	while (reader->candidates.count > FIRST_TRIES) {
		const Elf64_Sym *last =
			&reader->candidates.items[reader->candidates.count - 1];
		if (find(reader->addresses, last->st_value) != at ||
		    covers(last, reader->starts[at]))
			return;
		reader->candidates.count--;
	}
}

/* A symbol between two addresses is wanted if none that begins later is between them, or if it
   covers where the last one begins. One that covers the start of a symbol behind
   the address covers the address, too, and thus the start before it. */
static void note(struct reader *reader, const Elf64_Sym *symbol)
{
	size_t at = find(reader->addresses, symbol->st_value);
	bool before = at < reader->addresses->count;
	uint64_t start = before ? reader->starts[at] : NONE;

	if (before && (start == NONE || start < symbol->st_value)) {
		reader->starts[at] = symbol->st_value;
		drop_passed(reader, at);
	} else if (reader->candidates.count >= FIRST_TRIES &&
		   !(before && (start == symbol->st_value || covers(symbol, start)))) {
		return;
	}
	Elf64_Sym *candidate = reader->candidates.count < CANDIDATES_MAX ?
				       ss_vector_push(&reader->candidates) :
				       NULL;
	if (candidate)
		*candidate = *symbol;
	reader->unusual = !candidate;
}

/* An address without a start in the gap before it has that of the one before. */
static void fill_starts(struct reader *reader)
{
	for (size_t i = 0; i < reader->excerpt->count; i++) {
		if (reader->starts[i] == NONE)
			reader->starts[i] = i ? reader->starts[i - 1] : 0;
	}
}

/* Merges the addresses with the starts, which are ascending, too. */
static bool merge(struct reader *reader)
{
	const uint64_t *addresses = reader->excerpt->addresses;
	size_t count = reader->excerpt->count;
	size_t next = 0;
	size_t merged = 0;

	reader->all = malloc(2 * count * sizeof(*reader->all));
	for (size_t i = 0; reader->all && i < count; i++) {
		while (next < count && reader->starts[next] <= addresses[i])
			reader->all[merged++] = reader->starts[next++];
		reader->all[merged++] = addresses[i];
	}
	/* A start is at or before its address, or 0. */
	reader->all_places = reader->all ? places_new(reader->all, merged) : NULL;
	return reader->all_places != NULL;
}

/* Appends a name with its NUL. False: it is too long, or cannot be read. */
static bool add_name(struct reader *reader, uint64_t at)
{
	char part[NAME_PART];
	uint64_t size = reader->names->sh_size;

	while (at < size && reader->text.size < NAMES_MAX) {
		uint64_t more = SS_MIN(size - at, (uint64_t)NAME_PART);
		if (!ss_elf_read(reader->elf, reader->names->sh_offset + at, part, more))
			return false;
		size_t length = strnlen(part, more);
		ss_buffer_add(&reader->text, part, length);
		at += more;
		if (length == more && at < size)
			continue;
		ss_buffer_add_byte(&reader->text, '\0');
		return !reader->text.failed;
	}
	return false;
}

static void keep(struct reader *reader, const Elf64_Sym *symbol, bool starts)
{
	size_t name = reader->text.size;
	bool read = add_name(reader, symbol->st_name);

	if (!read || reader->kept.count == KEPT_MAX) {
		reader->unusual = true;
	} else if (!reader->excerpt->accepts_name(reader->text.bytes + name)) {
		/* It does not count, so where the last one begins is not known. */
		reader->unusual = starts;
		ss_buffer_truncate(&reader->text, name);
	} else {
		Elf64_Sym *kept = ss_vector_push(&reader->kept);
		if (kept) {
			*kept = *symbol;
			kept->st_name = (Elf64_Word)name;
		}
		reader->unusual = !kept;
	}
}

static void keep_if_wanted(struct reader *reader, const Elf64_Sym *symbol)
{
	const struct places *all = reader->all_places;
	size_t at = find(all, symbol->st_value);
	bool reaches = at < all->count;
	/* At an address, too: then that is where the last one begins. */
	bool starts = reaches && all->items[at] == symbol->st_value;
	bool first = reader->kept.count == 1;

	if (first && reader->tries++ == FIRST_TRIES)
		reader->unusual = true;
	else if (first || starts || (reaches && covers(symbol, all->items[at])))
		keep(reader, symbol, starts);
}

/* Notes all symbols but the first, which is not one. */
static bool read_symbols(struct reader *reader)
{
	_cleanup_free_ Elf64_Sym *batch = malloc(BATCH * sizeof(*batch));
	uint64_t count = ss_elf_symbol_count(reader->elf, reader->symbols);

	for (uint64_t at = 1; batch && at < count && !reader->unusual; at += BATCH) {
		uint64_t size = SS_MIN(count - at, (uint64_t)BATCH);
		if (!ss_elf_read_records(reader->elf, SS_ELF_SYMBOL,
					 reader->symbols->sh_offset +
						 at * symbol_size(reader->elf),
					 batch, size))
			return false;
		for (uint64_t i = 0; i < size && !reader->unusual; i++) {
			if (reader->excerpt->accepts(&batch[i], reader->names->sh_size))
				note(reader, &batch[i]);
		}
	}
	return batch && !reader->unusual;
}

static bool keep_wanted(struct reader *reader)
{
	if (!ss_vector_push(&reader->kept))
		return false;
	for (size_t i = 0; i < reader->candidates.count && !reader->unusual; i++)
		keep_if_wanted(reader, &reader->candidates.items[i]);
	return !reader->unusual && reader->kept.count > 1;
}

/* Whether a section is in the file as it is. */
static bool is_plain(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NOBITS && !(section->sh_flags & SHF_COMPRESSED) &&
	       section->sh_size <= SS_ELF_SECTION_MAX &&
	       section->sh_offset <= elf->size &&
	       section->sh_size <= elf->size - section->sh_offset;
}

static bool prepare(struct reader *reader)
{
	const struct ss_table_excerpt *excerpt = reader->excerpt;

	reader->addresses = places_new(excerpt->addresses, excerpt->count);
	reader->starts = malloc(excerpt->count * sizeof(*reader->starts));
	for (size_t i = 0; reader->starts && i < excerpt->count; i++)
		reader->starts[i] = NONE;
	return reader->addresses && reader->starts;
}

bool ss_table_read_excerpt(const struct ss_elf *elf, uint32_t type,
			   const struct ss_table_excerpt *excerpt, struct ss_table *ret)
{
	__attribute__((cleanup(reader_deinit))) struct reader reader = {
		.elf = elf,
		.excerpt = excerpt,
	};

	if (!table_find(elf, type, &reader.symbols, &reader.names) ||
	    ss_elf_symbol_count(elf, reader.symbols) < SMALL ||
	    !is_plain(elf, reader.symbols) || !is_plain(elf, reader.names))
		return false;
	if (excerpt->count == 0 || !prepare(&reader) || !read_symbols(&reader))
		return false;
	fill_starts(&reader);
	if (!merge(&reader) || !keep_wanted(&reader))
		return false;
	*ret = (struct ss_table){ .symbols = reader.kept.items,
				  .count = reader.kept.count,
				  .names = reader.text.bytes,
				  .names_size = reader.text.size };
	reader.kept.items = NULL;
	reader.text = (struct ss_buffer){};
	return true;
}

enum {
	PART = 64 * 1024,
	NAME_MAX_SIZE = 256,
	CHAIN_MAX = 4096, /* of a valid table: a few */
};

/* Whether the string is the end of one in a table. A copy of the table, which has many megabytes
   in some programs, would take several times as long. */
static bool has_string(const struct ss_elf *elf, const Elf64_Shdr *strings,
		       const char *string)
{
	size_t size = strlen(string) + 1;
	char part[PART];

	/* Parts overlap by what may be the beginning of the string. */
	for (uint64_t at = 0; size <= PART && at + size <= strings->sh_size;
	     at += PART - (size - 1)) {
		size_t n = (size_t)SS_MIN(strings->sh_size - at, (uint64_t)PART);
		if (strings->sh_offset > UINT64_MAX - at ||
		    !ss_elf_read(elf, strings->sh_offset + at, part, n))
			return false;
		if (memmem(part, n, string, size))
			return true;
	}
	return false;
}

static void set_found(struct ss_elf_symbol *found, const Elf64_Sym *symbol)
{
	*found = (struct ss_elf_symbol){ .address = symbol->st_value,
					 .size = symbol->st_size };
}

static bool are_found(const struct ss_elf_symbol *found, size_t count)
{
	return ss_all(count, i, found[i].address);
}

static void search(const struct ss_elf *elf, const Elf64_Shdr *section,
		   const char *const *names, size_t count, struct ss_elf_symbol *ret)
{
	const Elf64_Shdr *strings = ss_elf_section(elf, section->sh_link);

	if (!strings || strings->sh_type == SHT_NOBITS ||
	    strings->sh_size > SS_ELF_SECTION_MAX || !has_string(elf, strings, names[0]))
		return;
	_cleanup_free_ Elf64_Sym *symbols = ss_elf_copy_symbols(elf, section);
	_cleanup_free_ char *text = ss_elf_copy_section(elf, strings);
	size_t symbol_count = ss_elf_symbol_count(elf, section);

	for (size_t i = 0; symbols && text && i < symbol_count; i++) {
		const Elf64_Sym *symbol = &symbols[i];
		/* The copy ends with a NUL. */
		if (symbol->st_name >= strings->sh_size || symbol->st_shndx == SHN_UNDEF)
			continue;
		for (size_t k = 0; k < count; k++) {
			if (!ret[k].address &&
			    strcmp(text + symbol->st_name, names[k]) == 0)
				set_found(&ret[k], symbol);
		}
	}
}

/* The header of a .gnu.hash section; glibc's elf/dl-lookup.c reads the same. */
struct hash_header {
	uint32_t bucket_count;
	uint32_t first_symbol; /* lower ones are not in the table */
	uint32_t bloom_count;  /* words of an address */
	uint32_t bloom_shift;
};

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Reads a part of a section. */
static bool read_part(const struct ss_elf *elf, const Elf64_Shdr *section, uint64_t at,
		      void *bytes, size_t size)
{
	return at <= section->sh_size && size <= section->sh_size - at &&
	       section->sh_offset <= UINT64_MAX - at &&
	       ss_elf_read(elf, section->sh_offset + at, bytes, size);
}

/* A hash table with the sections that it refers to. */
struct exports {
	const struct ss_elf *elf;
	const Elf64_Shdr *table;
	const Elf64_Shdr *symbols;
	const Elf64_Shdr *strings;
	struct hash_header header;
};

/* False: the module has none, or it is not readable. */
static bool find_exports(const struct ss_elf *elf, struct exports *ret)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *table = &elf->sections[i];
		if (table->sh_type != SHT_GNU_HASH)
			continue;
		*ret = (struct exports){ .elf = elf, .table = table };
		ret->symbols = ss_elf_section(elf, table->sh_link);
		if (ret->symbols)
			ret->strings = ss_elf_section(elf, ret->symbols->sh_link);
		return ret->strings && ret->symbols->sh_type == SHT_DYNSYM &&
		       ret->strings->sh_type == SHT_STRTAB &&
		       read_part(elf, table, 0, &ret->header, sizeof(ret->header)) &&
		       ret->header.bucket_count > 0 && ret->header.bloom_count > 0;
	}
	return false;
}

static bool has_name(const struct exports *exports, const Elf64_Sym *symbol,
		     const char *name)
{
	char text[NAME_MAX_SIZE];
	size_t size = strlen(name) + 1;

	return symbol->st_shndx != SHN_UNDEF && size <= sizeof(text) &&
	       read_part(exports->elf, exports->strings, symbol->st_name, text, size) &&
	       memcmp(text, name, size) == 0;
}

static bool read_symbol(const struct exports *exports, uint32_t index, Elf64_Sym *ret)
{
	const size_t size = symbol_size(exports->elf);

	if (!read_part(exports->elf, exports->symbols, size * (uint64_t)index, ret, size))
		return false;
	ss_elf_widen(exports->elf->header.e_ident[EI_CLASS], SS_ELF_SYMBOL, ret, 1);
	return true;
}

/* Follows the chain of a bucket: hashes of symbols, the last one of which is odd. */
static void search_chain(const struct exports *exports, uint64_t chains, uint32_t index,
			 const char *name, struct ss_elf_symbol *ret)
{
	const uint32_t hash = hash_of(name);
	uint32_t other = 0;

	for (size_t i = 0; i < CHAIN_MAX && !(other & 1); i++, index++) {
		uint64_t at =
			chains +
			sizeof(other) * (uint64_t)(index - exports->header.first_symbol);
		Elf64_Sym symbol;
		if (!read_part(exports->elf, exports->table, at, &other, sizeof(other)))
			return;
		if ((other | 1) != (hash | 1) || !read_symbol(exports, index, &symbol) ||
		    !has_name(exports, &symbol, name))
			continue;
		set_found(ret, &symbol);
		return;
	}
}

static void search_exports(const struct exports *exports, const char *name,
			   struct ss_elf_symbol *ret)
{
	const struct hash_header *header = &exports->header;
	const uint32_t hash = hash_of(name);
	uint64_t bloom = 0;
	uint32_t index = 0;
	const size_t size = word_size(exports->elf);
	const uint32_t bits = (uint32_t)size * 8;
	uint64_t word = hash / bits % header->bloom_count;
	uint64_t buckets = sizeof(*header) + size * (uint64_t)header->bloom_count;
	uint64_t chains = buckets + sizeof(index) * (uint64_t)header->bucket_count;
	uint64_t mask = (uint64_t)1 << hash % bits |
			(uint64_t)1 << (hash >> header->bloom_shift % 32) % bits;

	if (read_part(exports->elf, exports->table, sizeof(*header) + word * size, &bloom,
		      size) &&
	    (bloom & mask) == mask &&
	    read_part(exports->elf, exports->table,
		      buckets + hash % header->bucket_count * sizeof(index), &index,
		      sizeof(index)) &&
	    index >= header->first_symbol)
		search_chain(exports, chains, index, name, ret);
}

bool ss_elf_find_symbols(const struct ss_module_impl *module, const char *const *names,
			 size_t count, struct ss_elf_symbol *ret)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_module(module);
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	struct exports exports;
	bool found = false;

	memset(ret, 0, count * sizeof(*ret));
	/* Most modules have a hash table of what they export. Reading the names of the others takes
	   milliseconds for large programs, also for one that is not there. */
	if (elf && find_exports(elf, &exports)) {
		for (size_t i = 0; i < count; i++) {
			search_exports(&exports, names[i], &ret[i]);
			if (!ret[0].address)
				break;
		}
		return true;
	}
	for (size_t t = 0; elf && t < SS_ARRAY_SIZE(types); t++) {
		for (size_t i = 0; i < elf->section_count; i++) {
			if (elf->sections[i].sh_type != types[t])
				continue;
			if (!are_found(ret, count))
				search(elf, &elf->sections[i], names, count, ret);
			found = true;
		}
	}
	return found;
}

bool ss_elf_find_hidden_symbols(const struct ss_module_impl *module, const char *section,
				const char *const *names, size_t count,
				struct ss_elf_symbol *ret)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_module(module);
	const Elf64_Shdr *first = elf ? ss_elf_find_section(elf, section) : NULL;

	memset(ret, 0, count * sizeof(*ret));
	if (!first || !first->sh_addr)
		return false;
	for (size_t i = 0; i < elf->section_count; i++) {
		if (elf->sections[i].sh_type == SHT_SYMTAB)
			search(elf, &elf->sections[i], names, count, ret);
	}
	ret[0] = (struct ss_elf_symbol){ .address = first->sh_addr,
					 .size = first->sh_size };
	return true;
}

bool ss_elf_find_section_address(const struct ss_module_impl *module, const char *name,
				 struct ss_elf_symbol *ret)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_module(module);
	const Elf64_Shdr *section = elf ? ss_elf_find_section(elf, name) : NULL;

	if (!section || !section->sh_addr)
		return false;
	*ret = (struct ss_elf_symbol){ .address = section->sh_addr,
				       .size = section->sh_size };
	return true;
}
