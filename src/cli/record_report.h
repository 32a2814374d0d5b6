/*
 * What stacksnap record says on stderr: a line while it works, and the summary.
 */
#ifndef SS_CLI_RECORD_REPORT_H
#define SS_CLI_RECORD_REPORT_H

#include "stacksnap.h"

/* A progress function of a recorder: one line that is written over, on a terminal
   only. */
void ss_record_report_progress(void *data, const struct ss_recorder_summary *summary);

/* path: of the file, or NULL. */
void ss_record_report_end(const struct ss_recorder_summary *summary, const char *path);

#endif
