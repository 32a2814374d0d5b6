#include "elf/tables.h"

#include <stdlib.h>
#include <string.h>

/* 16 million symbols are four times as many as in the largest known program.
   DYNAMIC_MAX is a hundred times what linkers write. */
enum { SYMBOL_COUNT_MAX = 1 << 24, DYNAMIC_MAX = 4096 };

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

bool ss_table_find(const struct ss_elf *elf, uint32_t type,
		   const Elf64_Shdr **ret_symbols, const Elf64_Shdr **ret_names)
{
	const Elf64_Shdr *symbols = find_table(elf, type);
	const Elf64_Shdr *names = symbols ? ss_elf_section(elf, symbols->sh_link) : NULL;

	if (!names || names->sh_type != SHT_STRTAB ||
	    symbols->sh_entsize != sizeof(Elf64_Sym) ||
	    symbols->sh_size / sizeof(Elf64_Sym) > SYMBOL_COUNT_MAX)
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

	if (!ss_table_find(elf, type, &symbols, &names))
		return false;
	table.symbols = ss_elf_copy_section(elf, symbols);
	table.count = symbols->sh_size / sizeof(Elf64_Sym);
	table.names = ss_elf_copy_section(elf, names);
	table.names_size = names->sh_size;
	return take_table(&table, ret);
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
	uint64_t count =
		SS_MIN(segment->p_filesz / sizeof(Elf64_Dyn), (uint64_t)DYNAMIC_MAX);
	uint64_t at;
	_cleanup_free_ Elf64_Dyn *entries = NULL;

	/* A memory image is laid out by its loadable segments. */
	if (!ss_elf_locate(elf, segment->p_vaddr, &at))
		return false;
	entries = ss_elf_copy(elf, at, count * sizeof(Elf64_Dyn));
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

/* The chain of the last bucket ends with the last symbol of the table. */
static uint64_t count_gnu_hash(const struct ss_elf *elf, uint64_t at)
{
	uint32_t head[4]; /* buckets, first symbol, words of the filter, shift */
	uint32_t last = 0;
	uint32_t link = 0;

	if (!ss_elf_read(elf, at, head, sizeof(head)))
		return 0;
	uint64_t buckets_at = at + sizeof(head) + (uint64_t)head[2] * 8;
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
	table.symbols = ss_elf_copy(elf, symbols_at, count * sizeof(Elf64_Sym));
	table.names_size = dynamic.names_size;
	table.names = ss_elf_copy(elf, names_at, dynamic.names_size);
	return take_table(&table, ret);
}
