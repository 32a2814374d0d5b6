/*
 * The row of a CFI table for one address: where the frame's caller left its registers.
 * Only rows of the usual kinds are made here, CFA = register + offset and registers saved
 * at CFA + offset, and what functions that align their stack have: the CFA saved at
 * register + offset, registers at frame pointer + offset. Whatever else there is, is for
 * libunwind.
 *
 * Why not libunwind for all: its cache takes a lock with two system calls a step
 * (1.6.2), and holds 128 rows; with it a frame costs 0.6 to 2.6 us, with this 0.03.
 */
#ifndef SS_UNWIND_CFI_ROW_H
#define SS_UNWIND_CFI_ROW_H

#include "unwind/cfi_entry.h"

enum { SS_ROW_REGS = 17 }; /* DWARF registers that a row has rules for */

enum ss_row_rule {
	SS_RULE_SAME = 0,  /* not changed */
	SS_RULE_SAVED,	   /* at CFA + offset */
	SS_RULE_SAVED_FP,  /* at frame pointer + offset */
	SS_RULE_UNDEFINED, /* lost; of the return address: the outermost frame */
};

struct ss_cfi_row {
	uint8_t cfa_register; /* DWARF number */
	int32_t cfa_offset;
	bool cfa_saved; /* the CFA is the word at register + offset */
	uint8_t rules[SS_ROW_REGS];
	int32_t offsets[SS_ROW_REGS];
};

/* Makes the row for an address (ELF virtual) from the entry that covers it. False: the
   program does something that a row cannot say. */
bool ss_cfi_row_make(const struct ss_cfi_entry *entry, uint64_t address,
		     struct ss_cfi_row *ret);

#endif
