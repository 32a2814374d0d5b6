/*
 * Demangles names of C++, Rust and D. They come from untrusted files: a short name can
 * expand to gigabytes, and a nested one can exhaust the stack. Therefore the memory and
 * stack for a name are limited, and a name that needs more stays mangled.
 */
#ifndef SS_SYMBOLIZE_DEMANGLE_H
#define SS_SYMBOLIZE_DEMANGLE_H

#include <stddef.h>

/* For one snapshot: a hundred thousand names of typical size. */
#define SS_DEMANGLE_BUDGET ((size_t)64 << 20)

/*
 * Returns the demangled form of name, which the caller frees. NULL: name is not mangled or
 * exceeds the limits, or there is no memory; callers show name itself. The bytes that the demangler wrote, successfully or not, are subtracted from
 * *budget. At 0 nothing is demangled any more, so that a file full of hostile names costs
 * a second and not a day.
 */
char *ss_name_demangle(const char *name, size_t *budget);

/* Bytes of a symbol of an ELF file without its version: "poll" of "poll@@GLIBC_2.2.5".
   Only the symbol table of some files has versions in its names, so no output shows them. */
size_t ss_name_plain_size(const char *name);

#endif
