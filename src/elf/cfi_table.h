/*
 * The binary search table of a module's unwind information (.eh_frame_hdr). Format:
 * Linux Standard Base core, "DWARF Extensions".
 */
#ifndef SS_ELF_CFI_TABLE_H
#define SS_ELF_CFI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "elf/image.h"
#include "data/memory.h"

/*
 * An index of the FDEs of a section without a binary search table: .debug_frame, and
 * .eh_frame of files without .eh_frame_hdr (static programs of some linkers), which is
 * found by the section headers. One pass over the section builds it.
 */

struct ss_cfi_table {
	uint64_t header;  /* ELF virtual address of .eh_frame_hdr */
	uint64_t entries; /* of the first entry: pairs of 32-bit offsets from header */
	uint64_t count;
	const struct ss_cfi_index *index; /* without a header; owned by the image */
};

/* Finds the table. False: there is none that can be searched; *ret is then empty. */
bool ss_cfi_table_find(struct ss_image *image, struct ss_cfi_table *ret);

/* Finds the last FDE whose code starts at or before address (ELF virtual). *start is the
   address of the code, *fde that of the FDE. The FDE may end before address. */
bool ss_cfi_table_search(struct ss_image *image, const struct ss_cfi_table *table,
			 uint64_t address, uint64_t *start, uint64_t *fde);

/*
 * Finds and reads one entry of .eh_frame or .debug_frame: an FDE with its CIE. Formats: LSB
 * core 10.6, DWARF 5 section 6.4.1.
 */

/* Programs have a few dozen bytes; those of large functions that push arguments, some thousands. */
enum { SS_CFI_PROGRAM_MAX = 16 << 10 };

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

/* An index of the .debug_frame of a file whose code is where it says; free it by
   ss_cfi_index_free(). NULL: it has none, or no memory. */
struct ss_cfi_index *ss_cfi_index_debug_frame(const struct ss_module_impl *module);

/* The same as ss_cfi_entry_find() in such an index. */
enum ss_cfi_found ss_cfi_entry_find_in_index(const struct ss_cfi_index *index,
					     uint64_t address, struct ss_cfi_entry *ret);

/*
 * The same in a copy of .eh_frame in memory, as compilers of JIT code make it: section is its
 * address, and address is one of the process, whose addresses have word bytes. Reads all entries
 * before the one that it finds, up to a limit.
 */
enum ss_cfi_found ss_cfi_entry_find_in_memory(const struct ss_memory *memory,
					      uint8_t word, uint64_t section,
					      uint64_t address, struct ss_cfi_entry *ret);

#endif
