/*
 * The binary search table of a module's unwind information (.eh_frame_hdr). Format:
 * Linux Standard Base core, "DWARF Extensions".
 */
#ifndef SS_UNWIND_CFI_TABLE_H
#define SS_UNWIND_CFI_TABLE_H

#include "unwind/image.h"

struct ss_cfi_table {
	uint64_t header;  /* ELF virtual address of .eh_frame_hdr */
	uint64_t entries; /* of the first entry: pairs of 32-bit offsets from header */
	uint64_t count;
	const struct ss_cfi_index *index; /* instead, where there is no header; the
					     image's */
};

/* Finds the table. False: there is none, or not one that can be searched; *ret is
   empty then. */
bool ss_cfi_table_find(struct ss_image *image, struct ss_cfi_table *ret);

/*
 * The table to search where the first one led nowhere: an index, where .eh_frame_hdr is
 * not sorted (as lld 14 leaves it if code lies before it). False: there is no other.
 */
bool ss_cfi_table_find_other(struct ss_image *image, const struct ss_cfi_table *table,
			     struct ss_cfi_table *ret);

/* Finds the last FDE that begins at or before address (all ELF virtual): where it
   begins and where it lies itself. Whether it reaches so far is for the FDE to say. */
bool ss_cfi_table_search(struct ss_image *image, const struct ss_cfi_table *table,
			 uint64_t address, uint64_t *start, uint64_t *fde);

#endif
