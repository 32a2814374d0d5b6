/*
 * What functions a user means: a name as people type it, compared with linkage names and
 * demangled ones.
 *
 * C++: without parameters all overloads match; spaces, ABI tags and inline namespaces of the
 * standard library do not count; template arguments may be left out, all of them or the last
 * ones: "std::vector<int>::push_back" means
 * "std::vector<int, std::allocator<int> >::push_back(int const&)".
 */
#ifndef SS_TRACE_PATTERN_H
#define SS_TRACE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* How well a name matches. */
enum ss_pattern_match {
	SS_PATTERN_NO = 0,
	SS_PATTERN_SUFFIX, /* without the enclosing namespaces or classes */
	SS_PATTERN_WHOLE,
};

/* name: demangled, with parameters and possibly a result, as libiberty writes it; or a plain
   name. Wildcards (* ? [) of the pattern match the name without parameters. */
enum ss_pattern_match ss_pattern_match(const char *pattern, const char *name);

bool ss_pattern_has_wildcards(const char *pattern);

/* Whether a mangled name can match: it contains the longest identifier of the pattern. */
bool ss_pattern_may_match(const char *pattern, const char *mangled);

/* What the forms of a probe are. */
enum ss_pattern_kind {
	SS_PATTERN_FUNCTION,
	SS_PATTERN_OFFSET, /* MODULE+0xOFFSET */
	SS_PATTERN_LINE,   /* FILE:LINE */
};

struct ss_pattern {
	enum ss_pattern_kind kind;
	char *scope;	/* module, provider or file before the colon; NULL: any module */
	char *function; /* or the name of a USDT probe */
	unsigned long number; /* offset or line */
};

/* Splits what the user gave. False: no memory. */
bool ss_pattern_parse(const char *text, struct ss_pattern *ret);
void ss_pattern_deinit(struct ss_pattern *pattern);

/* Whether a module is meant: "libc.so.6", "libc", a path, or with wildcards. NULL: any. */
bool ss_pattern_is_module(const char *scope, const char *path);

#endif
