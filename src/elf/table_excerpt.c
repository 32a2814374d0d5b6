#include "elf/table_excerpt.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"

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
	uint64_t count = reader->symbols->sh_size / sizeof(*batch);

	for (uint64_t at = 1; batch && at < count && !reader->unusual; at += BATCH) {
		uint64_t size = SS_MIN(count - at, (uint64_t)BATCH);
		if (!ss_elf_read(reader->elf,
				 reader->symbols->sh_offset + at * sizeof(*batch), batch,
				 size * sizeof(*batch)))
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

	if (!ss_table_find(elf, type, &reader.symbols, &reader.names) ||
	    reader.symbols->sh_size < SMALL * sizeof(Elf64_Sym) ||
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
