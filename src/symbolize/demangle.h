/*
 * Names of C++, Rust and D as their programmers wrote them. The names come from hostile
 * files: short ones can stand for gigabytes, and nested ones can exhaust the stack, so
 * what a name may take is bounded, and a name that takes more stays as it is.
 */
#ifndef SS_SYMBOLIZE_DEMANGLE_H
#define SS_SYMBOLIZE_DEMANGLE_H

#include <stddef.h>

/* A good amount for one snapshot: a hundred thousand names of common size. */
#define SS_DEMANGLE_BUDGET ((size_t)64 << 20)

/*
 * The demangled form of name, to be freed, or NULL: it is not mangled, it cannot be
 * demangled within the bounds, or there is no memory; then name itself is what to show.
 * A version behind '@' stays behind the name. What the demangler wrote, in vain or not,
 * is taken off *budget; at 0 nothing is demangled any more, so that a file full of
 * hostile names costs a second and not a day.
 */
char *ss_name_demangle(const char *name, size_t *budget);

#endif
