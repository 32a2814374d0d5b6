/*
 * The symbol index of one module: its symbols in address order, so that a lookup is a
 * binary search. It returns the linkage name and the start of a symbol. Of several symbols
 * at an address it chooses as elfutils does (dwfl_module_addrinfo), because users expect
 * the same names:
 *
 *  1. a symbol with a size that covers the address; global and weak before local ones;
 *  2. of these the one that begins last;
 *  3. of equal starts global, weak, local; then the smaller; then the first in the table;
 *  4. otherwise the nearest symbol without a size before the address in the same section,
 *     if no other symbol is in between. (elfutils does this in stripped files as well, so
 *     that code after memset() in musl's libc gets the name of memset().)
 */
#ifndef SS_SYMBOLIZE_SYMTAB_H
#define SS_SYMBOLIZE_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elffile.h"

/*
 * Converts address ranges that may overlap into a sorted list of segments that do not, so
 * that a lookup is one binary search. Where ranges overlap, either the one that begins
 * last wins, which in nested code is the innermost one, or the one with the greatest
 * value. Ranges come from untrusted files: no arrangement of them is slow.
 */

#define SS_SEGMENT_NONE UINT32_MAX

struct ss_range {
	uint64_t start;
	uint64_t end; /* exclusive; empty ranges are ignored */
	uint32_t value;
};

struct ss_segments {
	uint64_t *starts; /* separate from values, because a search reads only these */
	uint32_t *values;
	size_t count;
};

/* Sorts ranges by start in linear time; ranges with equal starts keep their order. False
   without memory, with nothing changed. */
bool ss_ranges_sort(struct ss_range *ranges, size_t count);

/* Builds segments from ranges that are sorted by start; of equal starts the later range
   wins. False without memory, with segments empty. */
bool ss_segments_build(struct ss_segments *segments, const struct ss_range *ranges,
		       size_t count);

/* The same, but of overlapping ranges the one with the greatest value wins. Values are
   unique. O(n log n). */
bool ss_segments_build_by_value(struct ss_segments *segments,
				const struct ss_range *ranges, size_t count);
void ss_segments_free(struct ss_segments *segments);

/* The index of the first segment that begins after address, or the number of segments. */
size_t ss_segments_after(const struct ss_segments *segments, uint64_t address);

/* The value of the range that covers address, or SS_SEGMENT_NONE. */
uint32_t ss_segments_find(const struct ss_segments *segments, uint64_t address);

struct ss_symbol {
	uint64_t start; /* ELF virtual address */
	uint64_t size;	/* 0: unknown */
	const char *name;
};

struct ss_symtab;

/* An index without symbols, or NULL without memory. */
struct ss_symtab *ss_symtab_new(void);
void ss_symtab_free(struct ss_symtab *symtab);

/* Declares that only these addresses will be looked up, ascending, before tables are added: most
   symbols of large tables are left out. The addresses are used until the index is built. */
void ss_symtab_expect(struct ss_symtab *symtab, const uint64_t *addresses, size_t count);

/* Adds the table of this section type (SHT_SYMTAB, SHT_DYNSYM) and returns the number of
   usable symbols. Tables added first have priority. At most three tables. The index keeps
   copies, so that elf may be freed. */
size_t ss_symtab_add(struct ss_symtab *symtab, const struct ss_elf *elf, uint32_t type);

/* The same for the function table of a Go program's runtime. */
size_t ss_symtab_add_go(struct ss_symtab *symtab, const struct ss_elf *elf);

/* The same for the dynamic symbols of an image without section headers, whose lowest
   segment was mapped at base. */
size_t ss_symtab_add_dynamic(struct ss_symtab *symtab, const struct ss_elf *elf,
			     uint64_t base);

/* Declares that the tables lack functions, as .dynsym does. Then a symbol without a size
   names only its own address, instead of everything up to the next symbol. */
void ss_symtab_set_partial(struct ss_symtab *symtab);

/* Sorts the symbols; only then may the index be searched. False without memory. */
bool ss_symtab_build(struct ss_symtab *symtab);

/* A sorted index of the best table of a memory image, for fuzzers and the vDSO. NULL: not
   an ELF image, or no memory. bytes may be freed afterwards. */
struct ss_symtab *ss_symtab_from_memory(const void *bytes, size_t size, uint64_t base);

/* The symbol at an ELF virtual address. Its name is valid as long as the index. */
bool ss_symtab_find(const struct ss_symtab *symtab, uint64_t address,
		    struct ss_symbol *ret);

/* The number of symbols, for statistics and tests. */
size_t ss_symtab_count(const struct ss_symtab *symtab);

SS_DEFINE_CLEANUP(struct ss_symtab, ss_symtab, ss_symtab_free)

#endif
