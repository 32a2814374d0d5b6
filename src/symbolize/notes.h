/*
 * Texts about modules, kept in the cache of names.
 */
#ifndef SS_SYMBOLIZE_NOTES_H
#define SS_SYMBOLIZE_NOTES_H

#include "stacksnap.h"

/*
 * Texts about modules that the cache keeps with their names, for instance the package that a
 * module belongs to. key: what the text depends on; a text that was added with another key is
 * not found. Call both after ss_snapshot_symbolize(), with its session. find: false: there is
 * none. *ret may be NULL, if that was added, and is valid as long as the session.
 */
bool ss_session_find_note(struct ss_session *session, const struct ss_snapshot *snapshot,
			  size_t module, uint64_t key, const char **ret);
void ss_session_add_note(struct ss_session *session, const struct ss_snapshot *snapshot,
			 size_t module, uint64_t key, const char *text);

#endif
