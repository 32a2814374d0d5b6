/*
 * The DWARF sections of a file that names, lines and inlined calls need, uncompressed, as
 * an ELF image in memory. libdw reads only this image: it cannot open another file whose
 * name the module supplies, and does not have to decompress anything, for which
 * libdeflate, if it is there, takes half the time.
 */
#ifndef SS_SYMBOLIZE_SECTIONS_H
#define SS_SYMBOLIZE_SECTIONS_H

#include "elf/elffile.h"

struct ss_sections {
	char *bytes; /* the image; NULL: none */
	size_t size;
};

/* Reads the image. False: no DWARF, too much of it, a compression that is not supported,
   strings without an end, or no memory. may_fault: large sections may be mapped, which takes
   no time. Where they are used, SIGBUS kills the process if the file was truncated meanwhile:
   only for a process that may die. */
bool ss_sections_read(const struct ss_elf *elf, bool may_fault, struct ss_sections *ret);
void ss_sections_deinit(struct ss_sections *sections);

#endif
