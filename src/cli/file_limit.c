#include "cli/file_limit.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit original;
static bool raised;

void ss_file_limit_raise(void)
{
	if (getrlimit(RLIMIT_NOFILE, &original) != 0)
		return;
	const struct rlimit limit = { .rlim_cur = original.rlim_max,
				      .rlim_max = original.rlim_max };
	/* If it fails, files are missing, or reopened. */
	raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

void ss_file_limit_restore(void)
{
	if (raised)
		(void)setrlimit(RLIMIT_NOFILE, &original); /* lowers it: cannot fail */
}
