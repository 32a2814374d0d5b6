#include "symbolize/symtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"
#include "elf/go_table.h"
#include "elf/tables.h"

/* A radix sort, because qsort() takes as long as everything else about a symbol table. */
enum { DIGIT_BITS = 11, DIGIT_COUNT = 1 << DIGIT_BITS, DIGITS = 6 };

struct histogram {
	size_t counts[DIGITS][DIGIT_COUNT];
};

static size_t digit_of(uint64_t address, size_t digit)
{
	return (size_t)(address >> (digit * DIGIT_BITS)) & (DIGIT_COUNT - 1);
}

static void count_digits(struct histogram *histogram, const struct ss_range *ranges,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t digit = 0; digit < DIGITS; digit++)
			histogram->counts[digit][digit_of(ranges[i].start, digit)]++;
	}
}

/* Sorts by one digit. */
static void sort_digit(size_t *counts, size_t digit, const struct ss_range *from,
		       struct ss_range *to, size_t count)
{
	size_t place = 0;

	for (size_t i = 0; i < DIGIT_COUNT; i++) {
		size_t next = place + counts[i];
		counts[i] = place;
		place = next;
	}
	for (size_t i = 0; i < count; i++)
		to[counts[digit_of(from[i].start, digit)]++] = from[i];
}

bool ss_ranges_sort(struct ss_range *ranges, size_t count)
{
	_cleanup_free_ struct histogram *histogram = calloc(1, sizeof(*histogram));
	_cleanup_free_ struct ss_range *other = calloc(count + 1, sizeof(*other));
	struct ss_range *from = ranges;
	struct ss_range *to = other;

	if (!histogram || !other)
		return false;
	count_digits(histogram, ranges, count);
	for (size_t digit = 0; digit < DIGITS && count; digit++) {
		size_t *counts = histogram->counts[digit];
		/* Usually all ranges have the same upper digits. */
		if (counts[digit_of(from[0].start, digit)] == count)
			continue;
		sort_digit(counts, digit, from, to, count);
		struct ss_range *swap = from;
		from = to;
		to = swap;
	}
	if (from != ranges)
		memcpy(ranges, from, count * sizeof(*ranges));
	return true;
}

static void emit(struct ss_segments *segments, uint64_t start, uint32_t value)
{
	size_t count = segments->count;

	if (count && segments->starts[count - 1] == start)
		count--;
	if (count && segments->values[count - 1] == value) {
		segments->count = count;
		return;
	}
	segments->starts[count] = start;
	segments->values[count] = value;
	segments->count = count + 1;
}

/* Pops the ranges that end at or before address. Where one ends, the next one on the stack
   that is still open continues. */
static size_t end_ranges(struct ss_segments *segments, const struct ss_range **stack,
			 size_t depth, uint64_t address)
{
	while (depth && stack[depth - 1]->end <= address) {
		uint64_t end = stack[depth - 1]->end;
		while (depth && stack[depth - 1]->end <= end)
			depth--;
		emit(segments, end, depth ? stack[depth - 1]->value : SS_SEGMENT_NONE);
	}
	return depth;
}

/* Each range begins one segment and ends at most one. */
static bool make_segments(struct ss_segments *segments, size_t count)
{
	*segments = (struct ss_segments){
		.starts = calloc(2 * count + 1, sizeof(*segments->starts)),
		.values = calloc(2 * count + 1, sizeof(*segments->values)),
	};
	if (segments->starts && segments->values)
		return true;
	ss_segments_free(segments);
	return false;
}

bool ss_segments_build(struct ss_segments *segments, const struct ss_range *ranges,
		       size_t count)
{
	_cleanup_free_ const struct ss_range **stack = calloc(count + 1, sizeof(*stack));
	size_t depth = 0;

	*segments = (struct ss_segments){};
	if (!stack || !make_segments(segments, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].end <= ranges[i].start)
			continue;
		depth = end_ranges(segments, stack, depth, ranges[i].start);
		emit(segments, ranges[i].start, ranges[i].value);
		stack[depth++] = &ranges[i];
	}
	(void)end_ranges(segments, stack, depth, UINT64_MAX); /* all of them end */
	return true;
}

/* A binary heap of ranges, the one with the greatest value on top. */
struct heap {
	const struct ss_range **items;
	size_t count;
};

static void swap_items(struct heap *heap, size_t a, size_t b)
{
	const struct ss_range *item = heap->items[a];

	heap->items[a] = heap->items[b];
	heap->items[b] = item;
}

static void heap_push(struct heap *heap, const struct ss_range *range)
{
	size_t at = heap->count++;

	heap->items[at] = range;
	while (at && heap->items[(at - 1) / 2]->value < heap->items[at]->value) {
		swap_items(heap, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static void heap_pop(struct heap *heap)
{
	size_t at = 0;

	heap->items[0] = heap->items[--heap->count];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= heap->count)
			return;
		if (child + 1 < heap->count &&
		    heap->items[child + 1]->value > heap->items[child]->value)
			child++;
		if (heap->items[child]->value <= heap->items[at]->value)
			return;
		swap_items(heap, at, child);
		at = child;
	}
}

bool ss_segments_build_by_value(struct ss_segments *segments,
				const struct ss_range *ranges, size_t count)
{
	_cleanup_free_ const struct ss_range **items = calloc(count + 1, sizeof(*items));
	struct heap heap = { .items = items };
	size_t next = 0;

	*segments = (struct ss_segments){};
	if (!items || !make_segments(segments, count))
		return false;
	while (next < count || heap.count) {
		/* Where the topmost range ends or the next one begins. */
		uint64_t at = heap.count ? heap.items[0]->end : UINT64_MAX;
		if (next < count)
			at = SS_MIN(at, ranges[next].start);
		for (; next < count && ranges[next].start <= at; next++) {
			if (ranges[next].end > ranges[next].start)
				heap_push(&heap, &ranges[next]);
		}
		while (heap.count && heap.items[0]->end <= at)
			heap_pop(&heap);
		emit(segments, at, heap.count ? heap.items[0]->value : SS_SEGMENT_NONE);
	}
	return true;
}

void ss_segments_free(struct ss_segments *segments)
{
	free(segments->starts);
	free(segments->values);
	*segments = (struct ss_segments){};
}

size_t ss_segments_after(const struct ss_segments *segments, uint64_t address)
{
	return ss_lower_bound(segments->count, i, segments->starts[i] <= address);
}

uint32_t ss_segments_find(const struct ss_segments *segments, uint64_t address)
{
	size_t behind = ss_segments_after(segments, address);

	return behind ? segments->values[behind - 1] : SS_SEGMENT_NONE;
}

enum { TABLES_MAX = 3 };

struct entry {
	uint64_t start;
	uint64_t end;	    /* equal to start: a label, which has no size */
	const char *name;   /* in pools */
	uint64_t limit;	    /* of a label: the end of its section */
	uint8_t preference; /* by binding; higher is better */
};

struct ss_symtab {
	SS_VECTOR(struct entry) entries; /* in table order */
	char *pools[TABLES_MAX];
	size_t pool_count;
	bool partial;		  /* functions without a symbol exist */
	const uint64_t *expected; /* or NULL */
	size_t expected_count;
	struct ss_segments globals; /* value: index of entry */
	struct ss_segments locals;  /* and labels */
};

struct ss_symtab *ss_symtab_new(void)
{
	return calloc(1, sizeof(struct ss_symtab));
}

void ss_symtab_free(struct ss_symtab *symtab)
{
	if (!symtab)
		return;
	for (size_t i = 0; i < symtab->pool_count; i++)
		free(symtab->pools[i]);
	ss_vector_free(&symtab->entries);
	ss_segments_free(&symtab->globals);
	ss_segments_free(&symtab->locals);
	free(symtab);
}

void ss_symtab_set_partial(struct ss_symtab *symtab)
{
	symtab->partial = true;
}

void ss_symtab_expect(struct ss_symtab *symtab, const uint64_t *addresses, size_t count)
{
	symtab->expected = addresses;
	symtab->expected_count = count;
}

/* GNU_UNIQUE and unknown bindings rank below local, as in elfutils. */
static uint8_t binding_preference(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 3;
	case STB_WEAK:
		return 2;
	case STB_LOCAL:
		return 1;
	default:
		return 0;
	}
}

enum { PREFERENCE_LOCAL = 1 };

/* Mapping symbols: on ARM and others $a, $d, $t and $x mark code and data. */
static bool is_mapping_symbol(const char *name)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (!name[2] || name[2] == '.');
}

static bool is_useful_symbol(const Elf64_Sym *symbol, size_t names_size)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_name >= names_size || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx == SHN_ABS || symbol->st_shndx == SHN_COMMON)
		return false;
	return type != STT_SECTION && type != STT_FILE && type != STT_TLS;
}

static bool is_useful_name(const char *name)
{
	return name[0] && !is_mapping_symbol(name);
}

static bool is_useful(const struct ss_table *table, const Elf64_Sym *symbol)
{
	return is_useful_symbol(symbol, table->names_size) &&
	       is_useful_name(table->names + symbol->st_name);
}

/* The end of the section of a symbol, or without sections of its segment; its start if it
   is in none. */
static uint64_t section_end(const struct ss_elf *elf, const Elf64_Sym *symbol)
{
	const Elf64_Shdr *section = ss_elf_section(elf, symbol->st_shndx);
	uint64_t start = symbol->st_value;

	if (section && start >= section->sh_addr)
		return SS_MAX(start, section->sh_addr + section->sh_size);
	for (size_t i = 0; i < elf->segment_count && !elf->section_count; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];
		if (segment->p_type == PT_LOAD && start >= segment->p_vaddr &&
		    start - segment->p_vaddr < segment->p_memsz)
			return SS_MAX(start, segment->p_vaddr + segment->p_memsz);
	}
	return start;
}

static uint64_t symbol_end(const Elf64_Sym *symbol)
{
	return symbol->st_size > UINT64_MAX - symbol->st_value ?
		       UINT64_MAX :
		       symbol->st_value + symbol->st_size;
}

static size_t add_table(struct ss_symtab *symtab, const struct ss_elf *elf,
			struct ss_table *table)
{
	size_t before = symtab->entries.count;

	if (symtab->pool_count == TABLES_MAX ||
	    !ss_vector_reserve(&symtab->entries, before + table->count))
		return 0;
	for (size_t i = 1; i < table->count; i++) {
		const Elf64_Sym *symbol = &table->symbols[i];
		if (!is_useful(table, symbol))
			continue;
		struct entry *entry = &symtab->entries.items[symtab->entries.count++];
		*entry = (struct entry){
			.start = symbol->st_value,
			.end = symbol_end(symbol),
			.name = table->names + symbol->st_name,
			.limit = symbol->st_size ? 0 : section_end(elf, symbol),
			.preference = binding_preference(symbol),
		};
	}
	/* A useless table must not take the place of another one. */
	if (symtab->entries.count > before)
		symtab->pools[symtab->pool_count++] = take_ptr(table->names);
	return symtab->entries.count - before;
}

size_t ss_symtab_add(struct ss_symtab *symtab, const struct ss_elf *elf, uint32_t type)
{
	const struct ss_table_excerpt excerpt = { .addresses = symtab->expected,
						  .count = symtab->expected_count,
						  .accepts = is_useful_symbol,
						  .accepts_name = is_useful_name };
	_cleanup_table_ struct ss_table table = {};

	if (symtab->expected && ss_table_read_excerpt(elf, type, &excerpt, &table))
		return add_table(symtab, elf, &table);
	return ss_table_read(elf, type, &table) ? add_table(symtab, elf, &table) : 0;
}

size_t ss_symtab_add_go(struct ss_symtab *symtab, const struct ss_elf *elf)
{
	_cleanup_table_ struct ss_table table = {};

	return ss_go_table_read(elf, &table) ? add_table(symtab, elf, &table) : 0;
}

size_t ss_symtab_add_dynamic(struct ss_symtab *symtab, const struct ss_elf *elf,
			     uint64_t base)
{
	_cleanup_table_ struct ss_table table = {};

	return ss_table_read_dynamic(elf, base, &table) ? add_table(symtab, elf, &table) :
							  0;
}

static bool is_label(const struct entry *entry)
{
	return entry->end == entry->start;
}

static int compare_labels(const struct entry *a, const struct entry *b)
{
	bool a_local = a->preference == PREFERENCE_LOCAL;
	bool b_local = b->preference == PREFERENCE_LOCAL;

	/* elfutils prefers the local one, then the last one. */
	if (a_local != b_local)
		return a_local ? 1 : -1;
	return (a > b) - (a < b);
}

/* Of equal starts the better one comes last, as ss_segments_build() requires. Labels come
   after symbols with a size, which may exclude them. */
static int compare_aliases(const void *left, const void *right, void *data)
{
	const struct entry *entries = data;
	const struct entry *a = &entries[((const struct ss_range *)left)->value];
	const struct entry *b = &entries[((const struct ss_range *)right)->value];

	if (is_label(a) != is_label(b))
		return is_label(a) ? 1 : -1;
	if (is_label(a))
		return compare_labels(a, b);
	if (a->preference != b->preference)
		return a->preference < b->preference ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (a < b) - (a > b);
}

static void sort_aliases(const struct ss_symtab *symtab, struct ss_range *ranges)
{
	size_t count = symtab->entries.count;

	for (size_t i = 0; i < count;) {
		size_t end = i + 1;
		while (end < count && ranges[end].start == ranges[i].start)
			end++;
		if (end - i > 1)
			qsort_r(&ranges[i], end - i, sizeof(*ranges), compare_aliases,
				symtab->entries.items);
		i = end;
	}
}

/* A label extends to the next symbol of any kind, and not beyond its section. It is ignored
   if a symbol with a size covers its start. */
static void bound_labels(const struct ss_symtab *symtab, struct ss_range *ranges)
{
	size_t count = symtab->entries.count;
	uint64_t next = UINT64_MAX;
	uint64_t reach = 0;

	for (size_t i = count; i-- > 0;) {
		const struct entry *entry = &symtab->entries.items[ranges[i].value];
		if (i + 1 < count && ranges[i + 1].start != ranges[i].start)
			next = ranges[i + 1].start;
		if (is_label(entry))
			ranges[i].end = SS_MIN(entry->limit, next);
		if (is_label(entry) && symtab->partial)
			ranges[i].end = SS_MIN(ranges[i].end, ranges[i].start + 1);
	}
	for (size_t i = 0; i < count; i++) {
		if (!is_label(&symtab->entries.items[ranges[i].value]))
			reach = SS_MAX(reach, ranges[i].end);
		else if (ranges[i].start < reach)
			ranges[i].end = ranges[i].start;
	}
}

/* Global symbols are searched first, so they have their own segments. */
static bool build_segments(struct ss_symtab *symtab, const struct ss_range *ranges)
{
	size_t count = symtab->entries.count;
	_cleanup_free_ struct ss_range *some = calloc(count + 1, sizeof(*some));
	size_t globals = 0;
	size_t locals = 0;

	if (!some)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &symtab->entries.items[ranges[i].value];
		if (is_label(entry) || entry->preference == PREFERENCE_LOCAL)
			some[locals++] = ranges[i];
	}
	if (!ss_segments_build(&symtab->locals, some, locals))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &symtab->entries.items[ranges[i].value];
		if (!is_label(entry) && entry->preference != PREFERENCE_LOCAL)
			some[globals++] = ranges[i];
	}
	return ss_segments_build(&symtab->globals, some, globals);
}

bool ss_symtab_build(struct ss_symtab *symtab)
{
	size_t count = symtab->entries.count;
	_cleanup_free_ struct ss_range *ranges = calloc(count + 1, sizeof(*ranges));

	if (!ranges)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &symtab->entries.items[i];
		ranges[i] = (struct ss_range){ entry->start, entry->end, (uint32_t)i };
	}
	if (!ss_ranges_sort(ranges, count))
		return false;
	sort_aliases(symtab, ranges);
	bound_labels(symtab, ranges);
	return build_segments(symtab, ranges);
}

struct ss_symtab *ss_symtab_from_memory(const void *bytes, size_t size, uint64_t base)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_memory(bytes, size);
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *symtab = ss_symtab_new();

	if (!elf || !symtab)
		return NULL;
	if (!ss_symtab_add(symtab, elf, SHT_SYMTAB) &&
	    !ss_symtab_add(symtab, elf, SHT_DYNSYM))
		(void)ss_symtab_add_dynamic(symtab, elf, base); /* may add none */
	return ss_symtab_build(symtab) ? take_ptr(symtab) : NULL;
}

bool ss_symtab_find(const struct ss_symtab *symtab, uint64_t address,
		    struct ss_symbol *ret)
{
	uint32_t found = ss_segments_find(&symtab->globals, address);

	if (found == SS_SEGMENT_NONE)
		found = ss_segments_find(&symtab->locals, address);
	if (found == SS_SEGMENT_NONE)
		return false;
	const struct entry *entry = &symtab->entries.items[found];
	*ret = (struct ss_symbol){ .start = entry->start,
				   .size = entry->end - entry->start,
				   .name = entry->name };
	return true;
}

size_t ss_symtab_count(const struct ss_symtab *symtab)
{
	return symtab->entries.count;
}
