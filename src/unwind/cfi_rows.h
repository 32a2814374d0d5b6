/*
 * CFI rows of ELF files. They are kept between captures, because they depend on files
 * only and not on addresses.
 */
#ifndef SS_UNWIND_CFI_ROWS_H
#define SS_UNWIND_CFI_ROWS_H

#include "unwind/cfi_row.h"

/* NULL without memory. */
struct ss_cfi_rows *ss_cfi_rows_new(void);
void ss_cfi_rows_free(struct ss_cfi_rows *rows);

/* Finds the row of an address (ELF virtual). It is set if FOUND is returned, and valid until the
   next call. */
enum ss_cfi_found ss_cfi_rows_find(struct ss_cfi_rows *rows, struct ss_image *image,
				   const struct ss_cfi_table *table, uint64_t address,
				   const struct ss_cfi_row **ret);

/* The start (ELF virtual) of the function that has the row of an address. 0: not known. */
uint64_t ss_cfi_rows_find_function(struct ss_cfi_rows *rows, struct ss_image *image,
				   const struct ss_cfi_table *table, uint64_t address);

#endif
