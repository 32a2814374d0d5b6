#include "cli/hang_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "cli/failure.h"
#include "diagnose/progress.h"

enum { NOT_RUN = 127 };

struct command {
	const char *text;
	pid_t pid;
	enum ss_verdict verdict;
};

/* In the child. */
static int execute(void *data, int channel)
{
	const struct command *command = data;
	char number[16];

	(void)channel;						    /* none */
	(void)snprintf(number, sizeof(number), "%d", command->pid); /* it fits */
	if (setenv("STACKSNAP_PID", number, 1) == 0 &&
	    setenv("STACKSNAP_VERDICT", ss_verdict_name(command->verdict), 1) == 0)
		(void)execl("/bin/sh", "sh", "-c", command->text, NULL);
	return NOT_RUN;
}

struct ss_error *ss_hang_run_command(const char *command, pid_t pid,
				     enum ss_verdict verdict)
{
	const struct ss_child_options options = {};
	struct command data = { command, pid, verdict };
	struct ss_child child = SS_NO_CHILD;
	struct ss_error *error = ss_child_start(&options, execute, &data, &child);

	if (error)
		return error;
	(void)ss_child_wait(&child, SS_CHILD_FOREVER);
	if (child.status != 0)
		ss_failure_warn("the --exec command failed (%s %d)",
				WIFEXITED(child.status) ? "exit status" : "signal",
				WIFEXITED(child.status) ? WEXITSTATUS(child.status) :
							  WTERMSIG(child.status));
	return NULL;
}
