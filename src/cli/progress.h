/*
 * A word on stderr where something takes longer than a second, on a terminal only.
 */
#ifndef SS_CLI_PROGRESS_H
#define SS_CLI_PROGRESS_H

#include <stdbool.h>
#include <time.h>

struct ss_progress {
	timer_t timer;
	bool armed;
};

/* Says what (a constant string) in a second, unless ended before. */
void ss_progress_begin(struct ss_progress *progress, const char *what);
void ss_progress_end(struct ss_progress *progress);

#endif
