/*
 * The DWARF sections of a file that names, lines and inlined calls need, uncompressed, as
 * an ELF image in memory. libdw reads only this image: it cannot open another file whose
 * name the module supplies, and does not have to decompress anything, for which
 * libdeflate, if it is there, takes half the time.
 */
#ifndef SS_SYMBOLIZE_SECTIONS_H
#define SS_SYMBOLIZE_SECTIONS_H

#include "elf/elffile.h"

/* Returns the image, which the caller frees. NULL: no DWARF, too much of it, a compression
   that is not supported, strings without an end, or no memory. */
char *ss_sections_read(const struct ss_elf *elf, size_t *ret_size);

#endif
