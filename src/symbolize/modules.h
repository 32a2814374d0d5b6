/*
 * The names of modules that a session keeps from one snapshot to the next, so that a
 * module's symbols are sorted once however often the process is looked at.
 */
#ifndef SS_SYMBOLIZE_MODULES_H
#define SS_SYMBOLIZE_MODULES_H

#include "model/module.h"
#include "model/session.h"
#include "symbolize/names.h"

/* Forgets everything if too many modules have come together. Call it while nobody holds
   a result of ss_modules_find(). */
void ss_modules_trim(struct ss_session *session);

/* The names of a module, new ones (nothing read yet) the first time. NULL: no memory,
   or too many modules since the last ss_modules_trim(). The session owns them. */
struct ss_names *ss_modules_find(struct ss_session *session,
				 const struct ss_module_impl *module);

#endif
