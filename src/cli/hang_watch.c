#include "cli/hang_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/failure.h"

enum { NOT_RUN = 127 };

__attribute__((noreturn)) static void run_child(const char *command, pid_t pid,
						enum ss_verdict verdict)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", pid); /* it fits */
	if (setenv("STACKSNAP_PID", number, 1) == 0 &&
	    setenv("STACKSNAP_VERDICT", ss_verdict_name(verdict), 1) == 0)
		(void)execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(NOT_RUN);
}

struct ss_error *ss_hang_run_command(const char *command, pid_t pid,
				     enum ss_verdict verdict)
{
	pid_t child = fork();
	int status = 0;

	if (child < 0)
		return ss_error_new_errno(errno, "running a command");
	if (child == 0)
		run_child(command, pid, verdict);
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return ss_error_new_errno(errno, "waiting for a command");
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		ss_failure_warn("the --exec command failed (%s %d)",
				WIFEXITED(status) ? "exit status" : "signal",
				WIFEXITED(status) ? WEXITSTATUS(status) :
						    WTERMSIG(status));
	return NULL;
}
