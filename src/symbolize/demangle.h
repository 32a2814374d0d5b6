/*
 * Names of C++, Rust and D as their programmers wrote them. The names come from hostile
 * files: short ones can stand for gigabytes, and nested ones can exhaust the stack, so
 * what a name may take is bounded, and a name that takes more stays as it is.
 */
#ifndef SS_SYMBOLIZE_DEMANGLE_H
#define SS_SYMBOLIZE_DEMANGLE_H

/*
 * The demangled form of name, to be freed, or NULL: it is not mangled, it cannot be
 * demangled within the bounds, or there is no memory; then name itself is what to show.
 * A version behind '@' stays behind the name.
 */
char *ss_name_demangle(const char *name);

#endif
