/*
 * Unwinding by CFI of ELF files.
 */
#ifndef SS_UNWIND_CFI_H
#define SS_UNWIND_CFI_H

#include "arch/arch.h"
#include "elf/cfi_table.h"
#include "unwind/unwinder.h"

/*
 * The row of a CFI table for one address: where the frame's caller left its registers.
 * Only the usual kinds of rows are supported: CFA = register + offset with registers
 * saved at CFA + offset, and those of functions that realign their stack, with the CFA
 * saved at register + offset and registers at frame pointer + offset. libunwind handles
 * the rest.
 *
 * libunwind could do all of it, but its cache takes a lock with two system calls per step
 * (1.6.2) and holds 128 rows: a frame costs 0.6 to 2.6 us, and 0.03 us with this.
 */

enum {
	/* Calls preserve at most 6 registers on x86-64, 11 on aarch64. */
	SS_ROW_SAVED_MAX = 12,
};

enum ss_row_return {
	SS_RETURN_SAVED,     /* at CFA + return_offset */
	SS_RETURN_LINK,	     /* in the link register */
	SS_RETURN_UNDEFINED, /* nowhere: the outermost frame */
};

struct ss_row_saved {
	int32_t offset;
	uint8_t reg;
	bool from_fp; /* at frame pointer + offset, not at CFA + offset */
};

/* Registers that a row does not mention have not changed. */
struct ss_cfi_row {
	uint64_t undefined; /* bit n: register n is lost */
	int32_t cfa_offset;
	int32_t return_offset;
	uint8_t cfa_register;
	bool cfa_saved;	    /* the CFA is the word at register + offset */
	bool return_signed; /* with a pointer authentication code */
	uint8_t return_rule;
	uint8_t saved_count;
	struct ss_row_saved saved[SS_ROW_SAVED_MAX];
};

/* Makes the row for an address (ELF virtual) from the entry that covers it. False: a
   row cannot express the entry's program. */
bool ss_cfi_row_make(const struct ss_arch *arch, const struct ss_cfi_entry *entry,
		     uint64_t address, struct ss_cfi_row *ret);

/*
 * Steps to the caller of a frame, by a row of a CFI table.
 */

/* A register that was saved but cannot be read is not known in the caller's frame. */
enum ss_step ss_cfi_row_apply(const struct ss_cfi_row *row, struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame);

/* Finds the row for a frame. Rows are kept between captures, because they depend on files only and
   not on addresses. False: there is none that can be expressed. */
bool ss_cfi_find_row(struct ss_unwind_context *ctx, const struct ss_unwind_frame *frame,
		     struct ss_cfi_row *ret);

/* The start of the function of a frame, or 0: not known. */
uint64_t ss_cfi_find_function(struct ss_unwind_context *ctx,
			      const struct ss_unwind_frame *frame);

/* Whether a function with CFI starts at pc, and the byte before pc has no CFI. */
bool ss_cfi_starts_at(struct ss_unwind_context *ctx, uint64_t pc);

#endif
