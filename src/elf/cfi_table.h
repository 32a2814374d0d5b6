/*
 * The binary search table of a module's unwind information (.eh_frame_hdr). Format:
 * Linux Standard Base core, "DWARF Extensions".
 */
#ifndef SS_ELF_CFI_TABLE_H
#define SS_ELF_CFI_TABLE_H

#include "elf/image.h"

struct ss_cfi_table {
	uint64_t header;  /* ELF virtual address of .eh_frame_hdr */
	uint64_t entries; /* of the first entry: pairs of 32-bit offsets from header */
	uint64_t count;
	const struct ss_cfi_index *index; /* without a header; owned by the image */
};

/* Finds the table. False: there is none that can be searched; *ret is then empty. */
bool ss_cfi_table_find(struct ss_image *image, struct ss_cfi_table *ret);

/*
 * Finds a second table, for addresses that the first does not cover: an index, if
 * .eh_frame_hdr is not sorted (lld 14 does not sort it if code precedes it). False: there
 * is none.
 */
bool ss_cfi_table_find_other(struct ss_image *image, const struct ss_cfi_table *table,
			     struct ss_cfi_table *ret);

/* Finds the last FDE whose code starts at or before address (ELF virtual). *start is the
   address of the code, *fde that of the FDE. The FDE may end before address. */
bool ss_cfi_table_search(struct ss_image *image, const struct ss_cfi_table *table,
			 uint64_t address, uint64_t *start, uint64_t *fde);

#endif
