#include "cli/top_job.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

enum { END_MS = 2000 };

static void close_files(struct ss_top_job *job)
{
	close_cleanup(&job->out);
	close_cleanup(&job->messages);
	job->out = job->messages = -1;
}

struct work {
	ss_top_work *function;
	void *data;
};

/* In the child. */
static int run(void *data, int channel)
{
	const struct work *work = data;
	int status = work->function(work->data);

	(void)channel;	    /* none */
	(void)fflush(NULL); /* in memory */
	return status;
}

struct ss_error *ss_top_job_start(struct ss_top_job *job, const sigset_t *mask,
				  ss_top_work *function, void *data)
{
	struct work work = { function, data };

	close_files(job);
	job->out = ss_io_create_unnamed();
	job->messages = ss_io_create_unnamed();
	if (job->out < 0 || job->messages < 0)
		return ss_error_new_errno(errno, "creating a file in memory");
	const struct ss_child_options options = {
		.streams = { SS_CHILD_NOWHERE, job->out, job->messages },
		.death_signal = SIGTERM,
		.mask = mask,
	};
	(void)fflush(NULL); /* nothing is written twice */
	job->begin_ns = ss_now_ns();
	return ss_child_start(&options, run, &work, &job->child);
}

bool ss_top_job_poll(struct ss_top_job *job)
{
	return job->child.pid && ss_child_wait(&job->child, 0);
}

void ss_top_job_end(struct ss_top_job *job)
{
	ss_child_signal(&job->child, SIGTERM);
	ss_child_signal(&job->child, SIGCONT); /* Ctrl-Z may have stopped it */
	if (!ss_child_wait(&job->child, END_MS))
		(void)ss_child_end(&job->child); /* or it is abandoned */
	close_files(job);
}
