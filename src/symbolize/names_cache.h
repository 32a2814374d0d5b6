/*
 * The names of modules, which a session keeps from one snapshot to the next, so that the
 * symbols of a module are read and sorted only once.
 */
#ifndef SS_SYMBOLIZE_NAMES_CACHE_H
#define SS_SYMBOLIZE_NAMES_CACHE_H

#include "model/module.h"
#include "model/session.h"
#include "symbolize/names.h"

/* Empties the cache if it has too many modules. No result of ss_names_cache_find() may be
   in use. */
void ss_names_cache_trim(struct ss_session *session);

/* The names of a module, which the session owns. The first time nothing is read yet. NULL:
   no memory, or too many modules since the last ss_names_cache_trim(). */
struct ss_names *ss_names_cache_find(struct ss_session *session,
				     const struct ss_module_impl *module);

#endif
