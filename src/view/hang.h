/*
 * What a process did while it was watched, and what its threads wait for.
 */
#ifndef SS_VIEW_HANG_H
#define SS_VIEW_HANG_H

#include "view/render.h"

/* Writes the report; snapshot is the last one, which progress compares with those
   before. Errors: NO_MEMORY. That writing failed is left to ferror() of out. */
typedef struct ss_error *ss_hang_writer(const struct ss_snapshot *snapshot,
					const struct ss_progress *progress,
					const struct ss_render_options *options,
					FILE *out);

ss_hang_writer ss_hang_write_text;
ss_hang_writer ss_hang_write_json; /* stacksnap-hang/1, see stacksnap-json(5) */

#endif
