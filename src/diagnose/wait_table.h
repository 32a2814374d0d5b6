/*
 * Functions that are known to wait: see stacksnap-waits(5).
 */
#ifndef SS_DIAGNOSE_WAIT_TABLE_H
#define SS_DIAGNOSE_WAIT_TABLE_H

#include "base/intern.h"
#include "base/vector.h"
#include "stacksnap.h"

/* A table of functions that are known to wait, and what they wait for. */
struct ss_wait_table;

/* Creates a table with the functions that are built in. Errors: NO_MEMORY. */
struct ss_error *ss_wait_table_new(struct ss_wait_table **ret);

/*
 * Adds the functions that a text in the format of stacksnap-waits(5) lists. They take
 * precedence over those that the table has. file is the name of the text in errors.
 * Errors: INVALID (the table may have functions of the lines before), NO_MEMORY.
 */
struct ss_error *ss_wait_table_add(struct ss_wait_table *table, const char *file,
				   const char *text, size_t size);
void ss_wait_table_free(struct ss_wait_table *table);

/* The functions that were added, as a text that ss_wait_table_add() reads; *ret is NULL if
   there are none. The caller frees it with free(3). Errors: NO_MEMORY. */
struct ss_error *ss_wait_table_added(const struct ss_wait_table *table, char **ret);

/* What the functions of a stack say about a wait. */
struct ss_stack_purpose {
	enum ss_wait_purpose purpose;
	size_t symbol;	      /* index of the function that says it */
	const char *function; /* its name without result and parameters: size bytes in the
				 symbol */
	size_t size;
	const char *words; /* its description, or NULL; valid as long as the table */
};

/*
 * Searches the functions of a stack, the innermost first, in a table, as
 * ss_snapshot_diagnose() does. call is the name of the system call that the thread waits in.
 * A symbol may be NULL: it has no name. Leave out frames outside of a signal handler.
 */
struct ss_stack_purpose ss_wait_table_search(const struct ss_wait_table *table,
					     const char *call, const char *const *symbols,
					     size_t count);

/*
 * The table. Its built-in part is the file wait_functions.txt.
 */

/* The text of that file, made by embed.cmake. */
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

SS_DEFINE_CLEANUP(struct ss_wait_table, ss_wait_table, ss_wait_table_free)

#endif
