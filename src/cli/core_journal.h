/*
 * The journal of systemd (systemd-journald(8)), with the fields of its own handler
 * (systemd.journal-fields(7)), so that "coredumpctl list" and others find crashes.
 */
#ifndef SS_CLI_CORE_JOURNAL_H
#define SS_CLI_CORE_JOURNAL_H

#include "cli/core_reports.h"

/* Sends an entry about a crash to the journal, or a line to the log if there is no journal. path: of
   the report, or NULL; problem: why there is none, or what is missing in it, or NULL. Never blocks. */
void ss_core_journal_send(const struct ss_core_process *process, const char *path,
			  const char *problem);

#endif
