/*
 * Symbols of a module by which a runtime is recognised. A session keeps what it found, also that
 * there are none: a recording asks for the same ones at each tick.
 */
#ifndef SS_RUNTIME_MODULE_SYMBOLS_H
#define SS_RUNTIME_MODULE_SYMBOLS_H

#include "elf/tables.h"
#include "runtime/runtime.h"

/*
 * Finds symbols of a module of the capture, by index. names: a constant, of which the module must
 * have the first one, exported or, unless section is NULL, in a section of its own with that name.
 * Fills ret, whose addresses are those in the file, and *ret_bias. False: it is not there, or its
 * file must not be read.
 */
bool ss_module_symbols_find(const struct ss_runtime_process *process, int32_t index,
			    const char *const *names, size_t count, const char *section,
			    struct ss_elf_symbol *ret, uint64_t *ret_bias);

/* Finds a section by name: its address in the process, and its size. False: the same. */
bool ss_module_section_find(const struct ss_runtime_process *process, int32_t index,
			    const char *name, struct ss_elf_symbol *ret);

#endif
