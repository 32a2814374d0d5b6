/*
 * The symbols and DWARF of one module, read on first use and only as far as requested.
 * Names are linkage names: demangling is left to the caller.
 */
#ifndef SS_SYMBOLIZE_NAMES_H
#define SS_SYMBOLIZE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "data/module.h"
#include "data/session.h"
#include "elf/elffile.h"
#include "symbolize/lines.h"

/*
 * What was looked up in one module, by address: symbol, source line and inlined calls, so
 * that a later snapshot need not read the module's symbols and DWARF again. It can be
 * written to bytes and read from them; where the bytes are kept is left to the caller.
 * They are untrusted: a file that is truncated, damaged, or of another version or build
 * is refused as a whole.
 *
 * Layout: a header of 24 bytes (magic and version, size of the rest, XXH3-64 of the rest);
 * the sources; strings, each with its length and a NUL; lookups that refer to them by
 * number. Numbers are LEB128.
 */

/* Larger ones are not read, and not written: some 30,000 addresses. Decoding that many
   takes as long as reading the symbols of a program of average size. */
enum { SS_LOOKUPS_SIZE_MAX = 1 << 20 };

struct ss_name {
	const char *symbol; /* of the function that contains the code; NULL: unknown */
	uint64_t start;	    /* ELF virtual address of symbol */
	struct ss_location
		line; /* of the address itself, in the innermost inlined function */
	size_t inline_count;
	struct ss_inline inlines[SS_INLINES_MAX];
};

/* Identifies a file, and each change of it. Zeros: there is none. */
struct ss_lookup_file {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t modified_ns;
	uint64_t changed_ns; /* status change: nobody can choose it */
};

/* Where names come from: lookups of other sources are not valid. Zeroed before it is
   filled, because it is compared as bytes. */
struct ss_lookup_sources {
	uint8_t build_id[64];
	uint64_t build_id_size;
	struct ss_lookup_file files[3]; /* the module, its debug file, its dwz file */
};

/* The kind of a lookup that is forgotten if it was not found or added since it was read; the
   caller chooses the others. */
enum { SS_LOOKUP_NOTE = 0x81 };

struct ss_lookups;

/* NULL without memory. */
struct ss_lookups *ss_lookups_new(void);
void ss_lookups_free(struct ss_lookups *lookups);

/* Adds lookups from bytes, which are copied. False, with nothing added: they are not
   valid, or belong to other sources. */
bool ss_lookups_read(struct ss_lookups *lookups, const void *bytes, size_t size,
		     const struct ss_lookup_sources *sources);

/* kind: what was looked up, for instance with or without lines. Strings are valid as long as
   lookups, or as those that were added. False: it was not looked up. */
bool ss_lookups_find(struct ss_lookups *lookups, uint64_t address, uint8_t kind,
		     struct ss_name *ret);

/* Adds a lookup that is missing. The strings of name must outlive lookups. */
void ss_lookups_add(struct ss_lookups *lookups, uint64_t address, uint8_t kind,
		    const struct ss_name *name);

/* Whether anything was added since the bytes were read. */
bool ss_lookups_changed(const struct ss_lookups *lookups);

/* Appends the bytes of all lookups; or, if that is too much, of those that were found or
   added since they were read. False: still too much, or no memory. */
bool ss_lookups_write(const struct ss_lookups *lookups,
		      const struct ss_lookup_sources *sources, struct ss_buffer *ret);

SS_DEFINE_CLEANUP(struct ss_lookups, ss_lookups, ss_lookups_free)

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

/* Compilers whose names may be those of C as well: only the module tells. */
enum ss_name_compiler { SS_COMPILER_OTHER, SS_COMPILER_GHC, SS_COMPILER_GNAT };

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

/* Whether a compiler made the module: what it links to every program is there. Reads its files the
   first time. */
bool ss_names_is_of(struct ss_names *names, enum ss_name_compiler compiler);

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

/*
 * Demangles names of C++, Rust, D, OCaml, Free Pascal, GHC and GNAT. They come from untrusted files: a short name can
 * expand to gigabytes, and a nested one can exhaust the stack. Therefore the memory and
 * stack for a name are limited, and a name that needs more stays mangled.
 */

/* For one snapshot: a hundred thousand names of typical size. */
#define SS_DEMANGLE_BUDGET ((size_t)64 << 20)

/*
 * Returns the demangled form of name, which the caller frees. NULL: name is not mangled or
 * exceeds the limits, or there is no memory; callers show name itself. The bytes that the demangler wrote, successfully or not, are subtracted from
 * *budget. At 0 nothing is demangled any more, so that a file full of hostile names costs
 * a second and not a day.
 */
char *ss_name_demangle(const char *name, size_t *budget);

/* Which of the compilers may have made a name whose names may be those of C as well. */
enum ss_name_compiler ss_name_find_compiler(const char *name);

/* Like ss_name_demangle(), for a name of a module that this compiler made. */
char *ss_name_demangle_of(enum ss_name_compiler compiler, const char *name,
			  size_t *budget);

/* Bytes of a symbol of an ELF file without its version: "poll" of "poll@@GLIBC_2.2.5".
   Only the symbol table of some files has versions in its names, so no output shows them. */
size_t ss_name_plain_size(const char *name);

#endif
