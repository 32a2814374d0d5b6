/*
 * Finds and reads one entry of .eh_frame or .debug_frame: an FDE with its CIE. Formats: LSB
 * core 10.6, DWARF 5 section 6.4.1.
 */
#ifndef SS_ELF_CFI_ENTRY_H
#define SS_ELF_CFI_ENTRY_H

#include "base/cursor.h"
#include "elf/cfi_table.h"
#include "model/memory.h"

/* Programs have a few dozen bytes. libunwind reads larger ones. */
enum { SS_CFI_PROGRAM_MAX = 512 };

struct ss_cfi_program {
	uint8_t bytes[SS_CFI_PROGRAM_MAX];
	size_t size;
};

struct ss_cfi_entry {
	uint64_t start; /* ELF virtual */
	uint64_t end;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t pointers;	       /* their encoding in .eh_frame, DW_EH_PE_... */
	bool signal;		       /* augmentation 'S': pc is not a return address */
	struct ss_cfi_program initial; /* of the CIE */
	struct ss_cfi_program program; /* of the FDE */
};

enum ss_cfi_found {
	SS_CFI_FOUND,
	SS_CFI_NONE,	/* no FDE covers the address */
	SS_CFI_COMPLEX, /* an encoding or size that is not supported */
};

/* Finds the FDE that covers address (ELF virtual): in .eh_frame, otherwise in
   .debug_frame. */
enum ss_cfi_found ss_cfi_entry_find(struct ss_image *image,
				    const struct ss_cfi_table *table, uint64_t address,
				    struct ss_cfi_entry *ret);

/*
 * The same in a copy of .eh_frame in memory, as compilers of JIT code make it: section is
 * its address, and address is one of the process. Reads all entries before the one that it
 * finds, up to a limit.
 */
enum ss_cfi_found ss_cfi_entry_find_in_memory(const struct ss_memory *memory,
					      uint64_t section, uint64_t address,
					      struct ss_cfi_entry *ret);

#endif
