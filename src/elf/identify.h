/*
 * Identifies a module: its build-id, and whether the file at its path is the one that is
 * mapped. The privileged side only opens files and copies bytes.
 */
#ifndef SS_ELF_IDENTIFY_H
#define SS_ELF_IDENTIFY_H

#include "model/module.h"

/*
 * Sets the build-id of a module that has a file or bytes. A file that turns out to be
 * of another build is closed, and pub.problem says so. The first call does the work;
 * all threads that share the module may call it.
 */
void ss_module_identify(struct ss_module_impl *module);

#endif
