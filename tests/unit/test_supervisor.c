/*
 * Signals of the supervisor reach its command and what that has started, and nobody else.
 */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stacksnap.h"
#include "crash/supervisor.h"

static pid_t start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(test_command)
{
	struct ss_supervisor *supervisor = NULL;
	pid_t command = start();
	int status = 0;

	assert_null(ss_supervisor_new(command, &supervisor));
	ss_supervisor_signal(supervisor, command, SIGTERM);
	assert_int_equal(waitpid(command, &status, 0), command);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	ss_supervisor_free(supervisor);
}

TEST(test_child_of_command)
{
	struct ss_supervisor *supervisor = NULL;
	int ends[2];
	pid_t child = 0;

	assert_int_equal(pipe(ends), 0);
	pid_t command = fork();
	if (command == 0) {
		int status = 0;
		child = start();
		(void)!write(ends[1], &child, sizeof(child));
		_exit(waitpid(child, &status, 0) == child && WIFSIGNALED(status) ?
			      WTERMSIG(status) :
			      0);
	}
	assert_int_equal(read(ends[0], &child, sizeof(child)), sizeof(child));
	assert_null(ss_supervisor_new(command, &supervisor));
	ss_supervisor_signal(supervisor, child, SIGTERM);
	int status = 0;
	assert_int_equal(waitpid(command, &status, 0), command);
	assert_int_equal(WEXITSTATUS(status), SIGTERM);
	ss_supervisor_free(supervisor);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* As if the number of a process that has ended had been used again. */
TEST(test_other)
{
	struct ss_supervisor *supervisor = NULL;
	pid_t command = start();
	pid_t other = start();
	int status = 0;

	assert_null(ss_supervisor_new(command, &supervisor));
	ss_supervisor_signal(supervisor, other, SIGKILL);
	ss_supervisor_signal(supervisor, command, SIGKILL);
	assert_int_equal(waitpid(command, NULL, 0), command);
	assert_int_equal(kill(other, 0), 0);
	assert_int_equal(waitpid(other, &status, WNOHANG), 0);
	ss_supervisor_free(supervisor);
	end(other);
}

/* The command has ended; its number belongs to a process of somebody else. */
TEST(test_number_used_again)
{
	struct ss_supervisor *supervisor = NULL;
	struct ss_supervised *processes = NULL;
	size_t count = 0;

	assert_null(ss_supervisor_new(getppid(), &supervisor));
	assert_null(ss_supervisor_list(supervisor, &processes, &count));
	for (size_t i = 0; i < count; i++)
		assert_int_not_equal(processes[i].pid, getppid());
	free(processes);
	ss_supervisor_free(supervisor);
}
