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
#ifndef SS_SYMBOLIZE_LOOKUPS_H
#define SS_SYMBOLIZE_LOOKUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "symbolize/inlines.h"

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

#endif
