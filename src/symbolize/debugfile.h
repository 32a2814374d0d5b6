/*
 * Finding what was stripped from a module: a separate debug file, by build-id or by
 * .gnu_debuglink, the alternate file that dwz shares between several, and the small
 * symbol table that is embedded as .gnu_debugdata.
 *
 * Names of files come from the module and are hostile. Only regular files of our own
 * file system are opened (below the sysroot first, if there is one), and none is
 * believed unless its build-id, or without any its checksum, agrees: a file of another
 * build at the right path gives wrong names without a warning.
 */
#ifndef SS_SYMBOLIZE_DEBUGFILE_H
#define SS_SYMBOLIZE_DEBUGFILE_H

#include "model/module.h"
#include "model/session.h"
#include "symbolize/elffile.h"

/* The file of a module of which nothing but its build-id and path is known (it was
   recorded): at its path, or in the debug directory; only one of that very build. NULL:
   there is none. The caller frees. */
struct ss_elf *ss_debugfile_find_module(const struct ss_session *session,
					const struct ss_module_impl *module);

/* The same from where the session's finder has it, or NULL. */
struct ss_elf *ss_debugfile_fetch_module(const struct ss_session *session,
					 const struct ss_module_impl *module);

/* The debug file of a module, or NULL. elf is the module's own file or image, and may
   be NULL. The caller frees. */
struct ss_elf *ss_debugfile_find(const struct ss_session *session,
				 const struct ss_module_impl *module,
				 const struct ss_elf *elf);

/* The file that .gnu_debugaltlink of elf refers to, or NULL. The caller frees. */
struct ss_elf *ss_debugfile_find_alternate(const struct ss_session *session,
					   const struct ss_elf *elf);

/* The ELF image in .gnu_debugdata, unpacked, or NULL. The caller frees. */
struct ss_elf *ss_debugfile_embedded(const struct ss_elf *elf);

#endif
