#include "symbolize/symtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "symbolize/segments.h"
#include "symbolize/tables.h"

enum { TABLES_MAX = 2 };

struct entry {
	uint64_t start;
	uint64_t end;	    /* equal to start: sizeless */
	const char *name;   /* in pools */
	uint64_t limit;	    /* sizeless: the end of its section */
	uint32_t order;	    /* in the tables */
	uint8_t preference; /* by binding, better is higher */
};

struct ss_symtab {
	SS_VECTOR(struct entry) entries;
	char *pools[TABLES_MAX];
	size_t pool_count;
	struct ss_segments globals;
	struct ss_segments locals; /* and what is sizeless */
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

/* GNU_UNIQUE and whatever else comes up rank below local, as in elfutils. */
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

/* $a, $d, $t and $x mark where code and data begin on some processors. */
static bool is_mapping_symbol(const char *name)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (!name[2] || name[2] == '.');
}

static bool is_useful(const struct ss_table *table, const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_name >= table->names_size || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx == SHN_ABS || symbol->st_shndx == SHN_COMMON)
		return false;
	if (type == STT_SECTION || type == STT_FILE || type == STT_TLS)
		return false;
	const char *name = table->names + symbol->st_name;
	return name[0] && !is_mapping_symbol(name);
}

/* Where the section, or without sections the segment, of a symbol ends; its own start
   if it lies in none. */
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
		struct entry *entry = &symtab->entries.items[symtab->entries.count];
		*entry = (struct entry){
			.start = symbol->st_value,
			.end = symbol_end(symbol),
			.name = table->names + symbol->st_name,
			.limit = symbol->st_size ? 0 : section_end(elf, symbol),
			.order = (uint32_t)symtab->entries.count++,
			.preference = binding_preference(symbol),
		};
	}
	symtab->pools[symtab->pool_count++] = take_ptr(table->names);
	return symtab->entries.count - before;
}

size_t ss_symtab_add(struct ss_symtab *symtab, const struct ss_elf *elf, uint32_t type)
{
	_cleanup_table_ struct ss_table table = {};

	return ss_table_read(elf, type, &table) ? add_table(symtab, elf, &table) : 0;
}

size_t ss_symtab_add_dynamic(struct ss_symtab *symtab, const struct ss_elf *elf,
			     uint64_t base)
{
	_cleanup_table_ struct ss_table table = {};

	return ss_table_read_dynamic(elf, base, &table) ? add_table(symtab, elf, &table) :
							  0;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Of equal starts the better one comes last, as ss_segments_build() wants it. */
static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end == a->start && b->end == b->start) {
		/* Of two labels elfutils takes the local one, then the last. */
		bool local = a->preference == PREFERENCE_LOCAL;
		if (local != (b->preference == PREFERENCE_LOCAL))
			return local ? 1 : -1;
		return compare(a->order, b->order);
	}
	if (a->preference != b->preference)
		return a->preference < b->preference ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return compare(b->order, a->order);
}

/* A label lasts to the next symbol, whatever that is, and not beyond its section. It
   counts for nothing where a sized symbol reaches over its start. */
static void bound_labels(struct ss_symtab *symtab)
{
	struct entry *entries = symtab->entries.items;
	size_t count = symtab->entries.count;
	uint64_t reach = 0;
	uint64_t next = UINT64_MAX;

	for (size_t i = count; i-- > 0;) {
		if (i + 1 < count && entries[i + 1].start != entries[i].start)
			next = entries[i + 1].start;
		if (entries[i].end == entries[i].start)
			entries[i].limit = SS_MIN(entries[i].limit, next);
	}
	for (size_t i = 0; i < count; i++) {
		if (entries[i].end != entries[i].start)
			reach = SS_MAX(reach, entries[i].end);
		else if (entries[i].start < reach)
			entries[i].limit = entries[i].start;
	}
}

static bool build_segments(struct ss_symtab *symtab, bool global, struct ss_range *ranges,
			   struct ss_segments *segments)
{
	size_t count = 0;

	for (size_t i = 0; i < symtab->entries.count; i++) {
		const struct entry *entry = &symtab->entries.items[i];
		bool sized = entry->end != entry->start;
		if (global != (sized && entry->preference != PREFERENCE_LOCAL))
			continue;
		ranges[count++] = (struct ss_range){
			.start = entry->start,
			.end = sized ? entry->end : entry->limit,
			.value = (uint32_t)i,
		};
	}
	return ss_segments_build(segments, ranges, count);
}

bool ss_symtab_build(struct ss_symtab *symtab)
{
	_cleanup_free_ struct ss_range *ranges =
		calloc(symtab->entries.count + 1, sizeof(*ranges));

	if (!ranges)
		return false;
	if (symtab->entries.count)
		qsort(symtab->entries.items, symtab->entries.count, sizeof(struct entry),
		      compare_entries);
	bound_labels(symtab);
	return build_segments(symtab, true, ranges, &symtab->globals) &&
	       build_segments(symtab, false, ranges, &symtab->locals);
}

struct ss_symtab *ss_symtab_from_memory(const void *bytes, size_t size, uint64_t base)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_memory(bytes, size);
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *symtab = ss_symtab_new();

	if (!elf || !symtab)
		return NULL;
	if (!ss_symtab_add(symtab, elf, SHT_SYMTAB) &&
	    !ss_symtab_add(symtab, elf, SHT_DYNSYM))
		(void)ss_symtab_add_dynamic(symtab, elf, base); /* none: empty */
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
