/*
 * What documents in JSON have in common: texts that may be any bytes, deadlocks, and the
 * writing of values.
 */
#ifndef SS_VIEW_JSON_VALUES_H
#define SS_VIEW_JSON_VALUES_H

#include <stdio.h>

#include <jansson.h>

#include "stacksnap.h"

/* A string, made valid UTF-8, or null for NULL. NULL without memory. */
json_t *ss_json_text(const char *text);

/*
 * Writes and frees value. Without memory (NULL) out gets no valid JSON: its error flag
 * cannot be set from here, so the document is broken off with a word that no parser
 * accepts.
 */
void ss_json_write(json_t *value, size_t flags, FILE *out);

/* Arrays of objects, see stacksnap-json(5). NULL without memory. */
json_t *ss_json_deadlocks(const struct ss_snapshot *snapshot);
json_t *ss_json_circles(const struct ss_snapshot *snapshot);
json_t *ss_json_blockers(const struct ss_snapshot *snapshot);

#endif
