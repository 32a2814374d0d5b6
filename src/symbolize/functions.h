/*
 * Where functions begin that have no name, by the unwind tables (.eh_frame, .debug_frame) of
 * a file. The calls of such a function are one row of a report, not one each.
 */
#ifndef SS_SYMBOLIZE_FUNCTIONS_H
#define SS_SYMBOLIZE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elffile.h"

struct ss_functions;

/* Of a file that is open; elf may be freed afterwards. NULL: it has no unwind tables, or no
   memory. */
struct ss_functions *ss_functions_new(const struct ss_elf *elf);
void ss_functions_free(struct ss_functions *functions);

/* Finds the start of the function with code at an ELF virtual address. */
bool ss_functions_find(struct ss_functions *functions, uint64_t address, uint64_t *ret);

SS_DEFINE_CLEANUP(struct ss_functions, ss_functions, ss_functions_free)

#endif
