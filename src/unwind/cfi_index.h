/*
 * An index of .eh_frame for files that have no .eh_frame_hdr (static programs of some
 * linkers): made by one walk over the section, which section headers lead to.
 */
#ifndef SS_UNWIND_CFI_INDEX_H
#define SS_UNWIND_CFI_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_image;
struct ss_cfi_index;

/* NULL: no such section, or no FDE in it whose start can be read. */
struct ss_cfi_index *ss_cfi_index_new(struct ss_image *image);
void ss_cfi_index_free(struct ss_cfi_index *index);

/* The last FDE that begins at or before address, all ELF virtual addresses. */
bool ss_cfi_index_search(const struct ss_cfi_index *index, uint64_t address,
			 uint64_t *start, uint64_t *fde);

#endif
