#include "elf/symbol.h"

#include <string.h>

#include "elf/elffile.h"

enum { PART = 64 * 1024 };

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
			if (ret[k].address ||
			    strcmp(text + symbol->st_name, names[k]) != 0)
				continue;
			ret[k] = (struct ss_elf_symbol){ .address = symbol->st_value,
							 .size = symbol->st_size };
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

/* False also if the table is not readable. A name that is not exported is in it once in some
   thousand times, by its hash. */
static bool may_export(const struct ss_elf *elf, const Elf64_Shdr *table,
		       const char *name)
{
	uint32_t hash = hash_of(name);
	struct hash_header header;
	uint64_t bloom = 0;
	uint32_t bucket = 0;

	if (!read_part(elf, table, 0, &header, sizeof(header)) ||
	    header.bucket_count == 0 || header.bloom_count == 0)
		return false;
	uint64_t word = hash / 64 % header.bloom_count;
	uint64_t buckets = sizeof(header) + sizeof(bloom) * (uint64_t)header.bloom_count;
	uint64_t mask = (uint64_t)1 << hash % 64 |
			(uint64_t)1 << (hash >> header.bloom_shift % 32) % 64;
	if (!read_part(elf, table, sizeof(header) + word * sizeof(bloom), &bloom,
		       sizeof(bloom)) ||
	    (bloom & mask) != mask)
		return false;
	return read_part(elf, table,
			 buckets + hash % header.bucket_count * sizeof(bucket), &bucket,
			 sizeof(bucket)) &&
	       bucket >= header.first_symbol;
}

/* A module that exports symbols, and not this one. Most have a hash table; reading the names
   instead takes milliseconds for large programs. */
static bool is_not_exported(const struct ss_elf *elf, const char *name)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		if (elf->sections[i].sh_type == SHT_GNU_HASH)
			return !may_export(elf, &elf->sections[i], name);
	}
	return false;
}

static struct ss_elf *open_elf(const struct ss_module_impl *module)
{
	if (module->fd >= 0)
		return ss_elf_from_fd(module->fd);
	return module->bytes ? ss_elf_from_memory(module->bytes, module->size) : NULL;
}

bool ss_elf_find_symbols(const struct ss_module_impl *module, const char *const *names,
			 size_t count, struct ss_elf_symbol *ret)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = open_elf(module);
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	bool found = false;

	memset(ret, 0, count * sizeof(*ret));
	if (elf && is_not_exported(elf, names[0]))
		return true;
	for (size_t t = 0; elf && t < sizeof(types) / sizeof(types[0]); t++) {
		for (size_t i = 0; i < elf->section_count; i++) {
			if (elf->sections[i].sh_type != types[t])
				continue;
			search(elf, &elf->sections[i], names, count, ret);
			found = true;
		}
	}
	return found;
}
