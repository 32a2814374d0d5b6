/*
 * Finds the data that was stripped from a module: the separate debug file, by build-id
 * or by .gnu_debuglink; the alternate file that dwz shares between several debug files;
 * and the small symbol table that is embedded as .gnu_debugdata.
 *
 * File names come from the module and are untrusted input. Only regular files of our own
 * mount namespace are opened (below the sysroot first, if there is one). Each must have
 * the right build-id or, if the module has none, the right checksum: a file of another
 * build would give wrong names without a warning.
 */
#ifndef SS_ELF_DEBUGFILE_H
#define SS_ELF_DEBUGFILE_H

#include "elf/elffile.h"
#include "data/module.h"
#include "data/session.h"

/*
 * Identifies the file of a module that has no build-id (Go's, rustc's), so that a recording
 * can be named later: size, time of modification, inode, and a hash of what names are
 * read from. Reads the file, which is untrusted input. stacksnap-recording(5) specifies the
 * hash.
 */

/* Sets pub.file of a module that has a file and no build-id, according to
   ss_module_identify(). Without memory, or if it is no ELF file, there is none. */
void ss_module_identify_file(struct ss_module_impl *module);

/* Finds the file of a recorded module by its path and build-id, at its path or in the
   debug directory. Without a build-id the file at its path must have the recorded identity;
   otherwise *why says what differs. NULL: there is none. The caller frees. */
struct ss_elf *ss_debugfile_find_module(struct ss_session *session,
					const struct ss_module_impl *module,
					const char **why);

/* Opens the file at path if it has the build-id of the module (or, of a core file, that of
   Go, which is not a GNU build-id; so does ss_debugfile_find_module()). NULL: it has not, or cannot
   be opened. The caller frees. */
struct ss_elf *ss_debugfile_open_module(const struct ss_session *session,
					const struct ss_module_impl *module,
					const char *path);

/* The same as ss_debugfile_find_module(), through the session's file finder. */
struct ss_elf *ss_debugfile_fetch_module(const struct ss_session *session,
					 const struct ss_module_impl *module);

/* Finds the debug file of a module. elf: the module's own file or image, or NULL. NULL:
   there is none. The caller frees. */
struct ss_elf *ss_debugfile_find(const struct ss_session *session,
				 const struct ss_module_impl *module,
				 const struct ss_elf *elf);

/* Finds the file that .gnu_debugaltlink of elf refers to, or NULL. The caller frees. */
struct ss_elf *ss_debugfile_find_alternate(const struct ss_session *session,
					   const struct ss_elf *elf);

/* Decompresses the ELF image in .gnu_debugdata. NULL: there is none. The caller frees. */
struct ss_elf *ss_debugfile_embedded(const struct ss_elf *elf);

#endif
