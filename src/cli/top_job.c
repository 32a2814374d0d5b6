#include "cli/top_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

enum { STATUS_SIGNAL = 128, NS_PER_US = 1000, END_MS = 2000, CHECK_MS = 5 };

static void close_files(struct ss_top_job *job)
{
	close_cleanup(&job->out);
	close_cleanup(&job->messages);
	job->out = job->messages = -1;
}

__attribute__((noreturn)) static void run_child(const struct ss_top_job *job,
						const sigset_t *mask, ss_top_work *work,
						void *data, pid_t parent)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* cannot fail: a valid signal */
	if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(job->out, STDOUT_FILENO) < 0 || dup2(job->messages, STDERR_FILENO) < 0)
		_exit(EXIT_FAILURE);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	int status = work(data);
	(void)fflush(NULL); /* in memory */
	_exit(status);
}

struct ss_error *ss_top_job_start(struct ss_top_job *job, const sigset_t *mask,
				  ss_top_work *work, void *data)
{
	pid_t parent = getpid();

	close_files(job);
	job->out = ss_io_create_unnamed();
	job->messages = ss_io_create_unnamed();
	if (job->out < 0 || job->messages < 0)
		return ss_error_new_errno(errno, "creating a file in memory");
	(void)fflush(NULL); /* nothing is written twice */
	job->begin_ns = ss_now_ns();
	pid_t pid = fork();
	int errnum = errno;
	if (pid == 0)
		run_child(job, mask, work, data, parent);
	if (pid < 0)
		return ss_error_new_errno(errnum, "creating a process");
	job->pid = pid;
	return NULL;
}

static uint64_t time_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * SS_NS_PER_SECOND +
	       (uint64_t)time->tv_usec * NS_PER_US;
}

bool ss_top_job_poll(struct ss_top_job *job)
{
	struct rusage usage;
	int status = 0;

	if (!job->pid || wait4(job->pid, &status, WNOHANG, &usage) != job->pid)
		return false;
	job->pid = 0;
	job->cpu_ns = time_of(&usage.ru_utime) + time_of(&usage.ru_stime);
	job->status = WIFEXITED(status) ? WEXITSTATUS(status) :
					  STATUS_SIGNAL + WTERMSIG(status);
	return true;
}

void ss_top_job_end(struct ss_top_job *job)
{
	if (job->pid) {
		(void)kill(job->pid, SIGTERM); /* or it has just ended */
		(void)kill(job->pid, SIGCONT); /* Ctrl-Z may have stopped it */
	}
	for (int ms = 0; job->pid && ms < END_MS; ms += CHECK_MS) {
		if (!ss_top_job_poll(job))
			ss_sleep_ns((uint64_t)CHECK_MS * SS_NS_PER_MS);
	}
	if (job->pid) {
		(void)kill(job->pid, SIGKILL);
		(void)waitpid(job->pid, NULL, 0);
		job->pid = 0;
	}
	close_files(job);
}
