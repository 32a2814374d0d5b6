/*
 * A pool that keeps each string once. Strings stay at the same address until the pool is
 * freed, and equal strings have equal addresses.
 */
#ifndef SS_BASE_INTERN_H
#define SS_BASE_INTERN_H

#include <stddef.h>

#include "base/cleanup.h"

struct ss_intern;

/* NULL without memory. */
struct ss_intern *ss_intern_new(void);
void ss_intern_free(struct ss_intern *pool);

/* The pool's NUL-terminated copy of the first size bytes of text, which contain no NUL. NULL
   without memory. */
const char *ss_intern_bytes(struct ss_intern *pool, const char *text, size_t size);
const char *ss_intern_string(struct ss_intern *pool, const char *text);

SS_DEFINE_CLEANUP(struct ss_intern, ss_intern, ss_intern_free)

#endif
