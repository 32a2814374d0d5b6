/*
 * What stacksnap record says on stderr: a line while it works, and the summary.
 */
#ifndef SS_CLI_RECORD_REPORT_H
#define SS_CLI_RECORD_REPORT_H

#include "stacksnap.h"

/* What was said on the way, and need not be said again. */
struct ss_record_said {
	bool undropped;
};

/* A progress function of a recorder, said its data: one line that is written over, on a
   terminal only; and, once, that what is too old could not be dropped. */
void ss_record_report_progress(void *said, const struct ss_recorder_summary *summary);

/* path: of the file, or NULL. */
void ss_record_report_end(const struct ss_recorder_summary *summary, const char *path,
			  struct ss_record_said *said);

#endif
