#include <sys/resource.h>

#include "cli/command.h"
#include "cli/streams.h"

/* A file is kept open for each module that a stack refers to: a process may have more of
   them than the 1,024 that are usual. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* else modules say what is missing */
}

int main(int argc, char **argv)
{
	ss_streams_prepare();
	raise_file_limit();
	return ss_command_run(argc, argv);
}
