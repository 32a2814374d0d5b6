/*
 * An index of the FDEs of a section without a binary search table: .debug_frame, and
 * .eh_frame of files without .eh_frame_hdr (static programs of some linkers), which is
 * found by the section headers. One pass over the section builds it.
 */
#ifndef SS_ELF_CFI_INDEX_H
#define SS_ELF_CFI_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_image;
struct ss_cfi_index;

/* Indexes .eh_frame. NULL: there is none, it has no readable FDE, or no memory. */
struct ss_cfi_index *ss_cfi_index_new(struct ss_image *image);

/* Indexes size bytes of .debug_frame. It owns bytes afterwards, also on failure. */
struct ss_cfi_index *ss_cfi_index_new_debug(uint8_t *bytes, size_t size);
void ss_cfi_index_free(struct ss_cfi_index *index);

/* Copies bytes at an offset of .debug_frame; fewer at its end. Returns their number. */
size_t ss_cfi_index_read(const struct ss_cfi_index *index, uint64_t offset, void *bytes,
			 size_t size);

/* Finds the last FDE whose code starts at or before address. *start is the address of the
   code, *fde that of the FDE (ELF virtual; in .debug_frame its offset). */
bool ss_cfi_index_search(const struct ss_cfi_index *index, uint64_t address,
			 uint64_t *start, uint64_t *fde);

#endif
