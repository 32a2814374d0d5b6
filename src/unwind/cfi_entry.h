/*
 * One entry of .eh_frame or .debug_frame: an FDE with its CIE, found and read. Formats:
 * LSB core 10.6, DWARF 5 section 6.4.1.
 */
#ifndef SS_UNWIND_CFI_ENTRY_H
#define SS_UNWIND_CFI_ENTRY_H

#include "unwind/cfi_table.h"

/* Programs are some dozen bytes; what is larger is left to libunwind. */
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
	bool signal;		       /* augmentation 'S': pc is not a return address */
	struct ss_cfi_program initial; /* of the CIE */
	struct ss_cfi_program program; /* of the FDE */
};

enum ss_cfi_found {
	SS_CFI_FOUND,
	SS_CFI_NONE,	/* no FDE covers the address */
	SS_CFI_COMPLEX, /* an encoding or a size that is not read here */
};

/* Finds and reads the FDE that covers address (ELF virtual), in .eh_frame or, if it has
   none, in .debug_frame. */
enum ss_cfi_found ss_cfi_entry_find(struct ss_image *image,
				    const struct ss_cfi_table *table, uint64_t address,
				    struct ss_cfi_entry *ret);

/* A cursor over the bytes of an entry or program; never passes its end. */
struct ss_cfi_bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool failed; /* something was read beyond the end */
};

uint64_t ss_cfi_read_fixed(struct ss_cfi_bytes *b, size_t size);
uint64_t ss_cfi_read_uleb(struct ss_cfi_bytes *b);
int64_t ss_cfi_read_sleb(struct ss_cfi_bytes *b);

#endif
