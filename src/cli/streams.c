#include "cli/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/failure.h"

/* argp prints the help and exits: only an exit handler can check its output. */
static void check_stdout(void)
{
	if (ferror(stdout) == 0 && fflush(stdout) == 0)
		return;
	ss_failure_warn("cannot write to standard output");
	_exit(SS_STATUS_NOTHING);
}

void ss_streams_prepare(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* open() returns the lowest free number: this one */
		if (open("/dev/null", O_RDONLY) != fd)
			_exit(SS_STATUS_NOTHING);
	}
	(void)atexit(check_stdout); /* if it fails, write errors of --help go unnoticed */
}
