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
#include "model/module.h"
#include "model/session.h"
#include "symbolize/inlines.h"
#include "symbolize/lines.h"

struct ss_names;

struct ss_name {
	const char *symbol; /* of the function that contains the code; NULL: unknown */
	uint64_t start;	    /* ELF virtual address of symbol */
	struct ss_location
		line; /* of the address itself, in the innermost inlined function */
	size_t inline_count;
	struct ss_inline inlines[SS_INLINES_MAX];
};

/* Reads nothing yet. NULL without memory. */
struct ss_names *ss_names_new(void);
void ss_names_free(struct ss_names *names);

/* Reads what flags (enum ss_symbolize_flags) request and was not read before, from the
   file or image of the module and from its debug files. */
void ss_names_read(struct ss_names *names, const struct ss_session *session,
		   const struct ss_module_impl *module, unsigned flags);

/* Finds the symbol with a size, such as a variable, that covers an ELF virtual address. */
bool ss_names_find_data(const struct ss_names *names, uint64_t address,
			struct ss_name *ret);

/* Whether a file, debug file or image of the module was found. */
bool ss_names_found(const struct ss_names *names);

/* Why the file at the module's path is not used, if that is known; or NULL. */
const char *ss_names_problem(const struct ss_names *names);

/* Looks up an ELF virtual address. Strings are valid as long as names. */
void ss_names_find(struct ss_names *names, uint64_t address, unsigned flags,
		   struct ss_name *ret);

SS_DEFINE_CLEANUP(struct ss_names, ss_names, ss_names_free)

#endif
