/*
 * The structs of ELF files. Those of ELFCLASS32 are smaller, and have the same members: they
 * are widened as soon as they have been read, so that nothing else knows of them.
 */
#ifndef SS_ELF_RECORDS_H
#define SS_ELF_RECORDS_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

enum ss_elf_record {
	SS_ELF_HEADER,
	SS_ELF_SEGMENT,
	SS_ELF_SECTION,
	SS_ELF_SYMBOL,
	SS_ELF_DYNAMIC,
	SS_ELF_RELOCATION, /* Elf32_Rel, as i386 has it, and Elf64_Rela */
	SS_ELF_PACKED,	   /* the header of a compressed section */
};

/* How large one is in files of this class. */
size_t ss_elf_record_size(uint8_t elf_class, enum ss_elf_record record);

/* Widens count structs at bytes, in place; bytes has room for the Elf64_ structs. */
void ss_elf_widen(uint8_t elf_class, enum ss_elf_record record, void *bytes,
		  size_t count);

#endif
