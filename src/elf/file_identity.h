/*
 * Identifies the file of a module that has no build-id (Go's, rustc's), so that a recording
 * can be named later: size, time of modification, inode, and a hash of what names are
 * read from. Reads the file, which is untrusted input. stacksnap-recording(5) specifies the
 * hash.
 */
#ifndef SS_ELF_FILE_IDENTITY_H
#define SS_ELF_FILE_IDENTITY_H

#include "elf/elffile.h"
#include "model/module.h"

/* Sets pub.file of a module that has a file and no build-id, according to
   ss_module_identify(). Without memory, or if it is no ELF file, there is none. */
void ss_module_identify_file(struct ss_module_impl *module);

/*
 * Compares a file with an identity that has a hash. NULL: it is that file. Otherwise says why
 * it is not. copy: it may be a copy, with another inode and time. budget: bytes that may still
 * be hashed.
 */
const char *ss_file_identity_check(const struct ss_file_identity *identity,
				   const struct ss_elf *elf, bool copy, uint64_t *budget);

#endif
