/*
 * The symbols and DWARF of one module, read on first use and only as far as requested.
 * Names are linkage names: demangling is left to the caller.
 */
#ifndef SS_SYMBOLIZE_NAMES_H
#define SS_SYMBOLIZE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "elf/elffile.h"
#include "data/module.h"
#include "data/session.h"
#include "symbolize/inlines.h"
#include "symbolize/lines.h"
#include "symbolize/lookups.h"

/*
 * Where functions begin that have no name, by the unwind tables (.eh_frame, .debug_frame) of
 * a file. The calls of such a function are one row of a report, not one each.
 */

struct ss_functions;

/* Of a file that is open; elf may be freed afterwards. NULL: it has no unwind tables, or no
   memory. */
struct ss_functions *ss_functions_new(const struct ss_elf *elf);
void ss_functions_free(struct ss_functions *functions);

/* Finds the start of the function with code at an ELF virtual address. */
bool ss_functions_find(struct ss_functions *functions, uint64_t address, uint64_t *ret);

SS_DEFINE_CLEANUP(struct ss_functions, ss_functions, ss_functions_free)

struct ss_names;

struct ss_names_addresses {
	SS_VECTOR(uint64_t) list;
};

/* Reads nothing yet. NULL without memory. */
struct ss_names *ss_names_new(void);
void ss_names_free(struct ss_names *names);

/* Prepares for lookups with flags (enum ss_symbolize_flags). What they request is read
   from the file or image of the module and from its debug files: now, or, if the module is
   cached, when an address is not in the cache. session and module must be valid during the
   lookups. */
void ss_names_read(struct ss_names *names, struct ss_session *session,
		   const struct ss_module_impl *module, unsigned flags);

/* Lists the addresses that will be looked up in a module, in any order. */
struct ss_names_plan {
	bool (*list)(void *data, const struct ss_module_impl *module,
		     struct ss_names_addresses *ret);
	void *data;
};

/* The plan is asked when the symbols of a large module must be read: then only those
   are read that are found at these addresses, and all of them if another address is looked up.
   It must be valid during the lookups; NULL: there is none any more. */
void ss_names_set_plan(struct ss_names *names, const struct ss_names_plan *plan);

/* Finds the symbol with a size, such as a variable, that covers an ELF virtual address. */
bool ss_names_find_data(struct ss_names *names, uint64_t address, struct ss_name *ret);

/* Whether a file, debug file or image of the module was found. */
bool ss_names_found(const struct ss_names *names);

/* Why the file at the module's path is not used, if that is known; or NULL. */
const char *ss_names_problem(const struct ss_names *names);

/* Looks up an ELF virtual address. Strings are valid as long as names. */
void ss_names_find(struct ss_names *names, uint64_t address, unsigned flags,
		   struct ss_name *ret);

/* A text that is cached with the lookups, see ss_session_find_note(). */
bool ss_names_find_note(struct ss_names *names, uint64_t key, const char **ret);
void ss_names_add_note(struct ss_names *names, uint64_t key, const char *text);

/* Appends to a file what a cache should keep, see ss_session_save(). False: that failed. */
bool ss_names_save(const struct ss_names *names, int fd);

/* Finds the start of a function without a name, of a module of a recording. */
bool ss_names_find_start(struct ss_names *names, uint64_t address, uint64_t *ret);

SS_DEFINE_CLEANUP(struct ss_names, ss_names, ss_names_free)

/*
 * The names of modules, which a session keeps from one snapshot to the next, so that the
 * symbols of a module are read and sorted only once.
 */

/* Empties the cache if it has too many modules. No result of ss_names_cache_find() may be
   in use. */
void ss_names_cache_trim(struct ss_session *session);

/* The names of a module, which the session owns. The first time nothing is read yet. NULL:
   no memory, or too many modules since the last ss_names_cache_trim(). */
struct ss_names *ss_names_cache_find(struct ss_session *session,
				     const struct ss_module_impl *module);

#endif
