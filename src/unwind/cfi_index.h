/*
 * An index of the FDEs of a section that has no table to search: .eh_frame of files
 * without .eh_frame_hdr (static programs of some linkers), which section headers lead
 * to, and .debug_frame. Made by one walk over the section.
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

/* The same of size bytes of .debug_frame, which it takes over in any case. */
struct ss_cfi_index *ss_cfi_index_new_debug(uint8_t *bytes, size_t size);
void ss_cfi_index_free(struct ss_cfi_index *index);

/* Copies bytes of .debug_frame, from an offset in it. Short at its end. */
size_t ss_cfi_index_read(const struct ss_cfi_index *index, uint64_t offset, void *bytes,
			 size_t size);

/* The last FDE that begins at or before address, all ELF virtual addresses; that of
   the FDE itself is an offset in .debug_frame. */
bool ss_cfi_index_search(const struct ss_cfi_index *index, uint64_t address,
			 uint64_t *start, uint64_t *fde);

#endif
