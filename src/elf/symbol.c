#include "elf/symbol.h"

#include <string.h>

#include "elf/elffile.h"

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
	for (size_t i = 0; i < count; i++) {
		if (!found[i].address)
			return false;
	}
	return true;
}

static void search(const struct ss_elf *elf, const Elf64_Shdr *section,
		   const char *const *names, size_t count, struct ss_elf_symbol *ret)
{
	const Elf64_Shdr *strings = ss_elf_section(elf, section->sh_link);

	if (!strings || strings->sh_type == SHT_NOBITS ||
	    strings->sh_size > SS_ELF_SECTION_MAX || !has_string(elf, strings, names[0]))
		return;
	_cleanup_free_ Elf64_Sym *symbols = ss_elf_copy_section(elf, section);
	_cleanup_free_ char *text = ss_elf_copy_section(elf, strings);
	size_t symbol_count = section->sh_size / sizeof(*symbols);

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
	uint32_t bloom_count;  /* 64-bit words */
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
		if ((other | 1) != (hash | 1) ||
		    !read_part(exports->elf, exports->symbols,
			       sizeof(symbol) * (uint64_t)index, &symbol,
			       sizeof(symbol)) ||
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
	uint64_t word = hash / 64 % header->bloom_count;
	uint64_t buckets =
		sizeof(*header) + sizeof(bloom) * (uint64_t)header->bloom_count;
	uint64_t chains = buckets + sizeof(index) * (uint64_t)header->bucket_count;
	uint64_t mask = (uint64_t)1 << hash % 64 |
			(uint64_t)1 << (hash >> header->bloom_shift % 32) % 64;

	if (read_part(exports->elf, exports->table,
		      sizeof(*header) + word * sizeof(bloom), &bloom, sizeof(bloom)) &&
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
