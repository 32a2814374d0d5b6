/*
 * All that is known of the names of one module: its symbol index and its DWARF, read
 * once and only as far as asked for. Names are as linked; it does not demangle and
 * knows nothing of snapshots.
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
	const char *symbol;	 /* of the function that has the code; NULL: not known */
	uint64_t start;		 /* ELF virtual address of symbol */
	struct ss_location line; /* of the address itself: in the innermost inline */
	size_t inline_count;
	struct ss_inline inlines[SS_INLINES_MAX];
};

/* Nothing is read yet. NULL without memory. */
struct ss_names *ss_names_new(void);
void ss_names_free(struct ss_names *names);

/* Reads what flags (enum ss_symbolize_flags) ask for, as far as it was not read before,
   from the module's file or image and from its debug files. */
void ss_names_read(struct ss_names *names, const struct ss_session *session,
		   const struct ss_module_impl *module, unsigned flags);

/* The sized symbol that covers an ELF virtual address, such as a variable. False: none
   does. */
bool ss_names_find_data(const struct ss_names *names, uint64_t address,
			struct ss_name *ret);

/* Whether there was a file, debug file or image of the module to read from. */
bool ss_names_found(const struct ss_names *names);

/* What is at an ELF virtual address. Strings are valid as long as names. */
void ss_names_find(struct ss_names *names, uint64_t address, unsigned flags,
		   struct ss_name *ret);

SS_DEFINE_CLEANUP(struct ss_names, ss_names, ss_names_free)

#endif
