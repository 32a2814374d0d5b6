/*
 * The symbols of a large table that can be found at given addresses. To copy and sort all
 * symbols of a program takes milliseconds, and a snapshot needs a few dozen. The table is read
 * in parts, and only names of what is kept are read.
 *
 * For these addresses a search of the excerpt finds what a search of the whole table finds.
 * It has
 *  - symbols that cover an address;
 *  - for each address those that begin where the last one at or before it begins, of
 *    which one without a size may name it;
 *  - symbols that cover that place, where one without a size does not count then.
 */
#ifndef SS_ELF_TABLE_EXCERPT_H
#define SS_ELF_TABLE_EXCERPT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/tables.h"

struct ss_table_excerpt {
	const uint64_t *addresses; /* ascending */
	size_t count;
	/* Which symbols and names count. names_size: of the table's section of names */
	bool (*accepts)(const Elf64_Sym *symbol, size_t names_size);
	bool (*accepts_name)(const char *name);
};

/* Like ss_table_read(), with the order of the table. The result has a symbol that counts if the
   table has one. False: read the whole table. It is small, or unusual, or there is none. */
bool ss_table_read_excerpt(const struct ss_elf *elf, uint32_t type,
			   const struct ss_table_excerpt *excerpt, struct ss_table *ret);

#endif
