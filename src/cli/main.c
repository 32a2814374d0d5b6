#include <sys/resource.h>

#include "cli/command.h"
#include "cli/streams.h"

/* A file is kept open for each module on a stack, and record keeps one for each thread: both
   may be more than the usual limit of 1,024 files. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE,
			&limit); /* if it fails, files are missing, or reopened */
}

int main(int argc, char **argv)
{
	ss_streams_prepare();
	raise_file_limit();
	return ss_command_run(argc, argv);
}
