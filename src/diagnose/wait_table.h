/*
 * The table of functions that are known to wait, and what they wait for. Its built-in part
 * is the file wait_functions.txt; stacksnap-waits(5) specifies the format.
 */
#ifndef SS_DIAGNOSE_WAIT_TABLE_H
#define SS_DIAGNOSE_WAIT_TABLE_H

#include "base/intern.h"
#include "base/vector.h"
#include "stacksnap.h"

/* The text of wait_functions.txt, made by embed.cmake. */
extern const char ss_wait_functions[];
extern const size_t ss_wait_functions_size;

struct ss_wait_entry {
	const char *function; /* may contain '*', which stands for any characters */
	size_t size;	      /* of function */
	const char *words;    /* what it waits for; NULL: no more than the kind */
	enum ss_wait_purpose purpose;
	size_t number; /* of two entries for a function the later one counts */
};

struct ss_wait_table {
	struct ss_intern *strings;
	SS_VECTOR(struct ss_wait_entry) exact; /* ascending by function, then number */
	SS_VECTOR(struct ss_wait_entry) globs; /* in order of number */
	size_t count;
	size_t built_in; /* the first of them */
};

/* A symbol's name without result, parameters, version and what a compiler appends to parts and
   clones of functions. Of the first 257 bytes. Returns its size; *ret points into symbol. */
size_t ss_wait_table_plain_name(const char *symbol, const char **ret);

/* The entry for a symbol, with or without parameters, mangled or not; or NULL. */
const struct ss_wait_entry *ss_wait_table_find(const struct ss_wait_table *table,
					       const char *symbol);

#endif
