#include "cli/each_process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/child.h"
#include "base/io.h"
#include "cli/escaped_copy.h"

/* Each child needs memory and files of its own. */
enum { PARALLEL_MAX = 64 };

static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP };

struct child {
	struct ss_child child;
	int out; /* what it writes to standard output; -1: none */
	bool ended;
};

struct run {
	const struct ss_each_process *each;
	struct child *children;
	size_t started;
	size_t running;
	size_t copied; /* outputs */
	bool wrote;    /* an output that was not empty */
	sigset_t set;
	sigset_t before;
};

static void run_deinit(struct run *run)
{
	for (size_t i = 0; run->children && i < run->each->count; i++) {
		if (run->children[i].out >= 0)
			(void)close(run->children[i].out); /* in memory */
	}
	free(run->children);
	(void)sigprocmask(SIG_SETMASK, &run->before, NULL);
}

/* None of these calls can fail: the signals are valid. */
static void block_signals(struct run *run)
{
	(void)sigemptyset(&run->set);
	(void)sigaddset(&run->set, SIGCHLD);
	for (size_t i = 0; i < SS_ARRAY_SIZE(passed_on); i++) {
		struct sigaction action;
		if (sigaction(passed_on[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			(void)sigaddset(&run->set, passed_on[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &run->set, &run->before);
}

/* In the child. */
static int work(void *data, int channel)
{
	const struct run *run = data;

	(void)channel; /* none */
	return run->each->work(run->each->data, run->started);
}

static struct ss_error *start(struct run *run)
{
	struct child *child = &run->children[run->started];

	if (run->each->out)
		child->out = ss_io_create_unnamed();
	if (run->each->out && child->out < 0)
		return ss_error_new_errno(errno, "creating a file in memory");
	/* If the parent is killed, nobody waits for the result. */
	const struct ss_child_options options = {
		.streams = { 0, child->out >= 0 ? child->out : 0 },
		.death_signal = SIGTERM,
		.mask = &run->before,
		.flush = true,
	};
	struct ss_error *error = ss_child_start(&options, work, run, &child->child);
	if (error)
		return error;
	run->started++;
	run->running++;
	return NULL;
}

static void signal_all(const struct run *run, int signal)
{
	for (size_t i = 0; i < run->started; i++)
		ss_child_signal(&run->children[i].child, signal);
}

static void reap(struct run *run)
{
	for (size_t i = 0; i < run->started; i++) {
		struct child *child = &run->children[i];
		if (!child->ended && ss_child_wait(&child->child, 0)) {
			child->ended = true;
			run->running--;
		}
	}
}

/* Copies the outputs of children that have ended, in their order. They have escaped what is
   not safe to print. */
static struct ss_error *copy(struct run *run)
{
	const struct ss_each_process *each = run->each;
	struct ss_error *error = NULL;

	for (; run->copied < run->started && run->children[run->copied].ended && !error;
	     run->copied++) {
		struct child *child = &run->children[run->copied];
		if (child->out < 0)
			continue;
		off_t size = lseek(child->out, 0, SEEK_END);
		if (size > 0 && run->wrote && each->separator)
			(void)fputs(each->separator, each->out);
		run->wrote |= size > 0;
		error = size > 0 ? ss_plain_copy(child->out, each->out) : NULL;
		(void)close(child->out); /* in memory */
		child->out = -1;
	}
	return error;
}

static struct ss_error *run_all(struct run *run)
{
	struct ss_error *error = NULL;
	bool stopping = false;

	while (run->running > 0 ||
	       (!error && !stopping && run->started < run->each->count)) {
		while (!error && !stopping && run->started < run->each->count &&
		       run->running < PARALLEL_MAX)
			error = start(run);
		if (error)
			signal_all(run, SIGTERM);
		int signal = run->running ? sigwaitinfo(&run->set, NULL) : 0;
		if (signal > 0 && signal != SIGCHLD) {
			stopping = true;
			signal_all(run, signal);
		}
		reap(run);
		if (!error)
			error = copy(run);
	}
	return error;
}

struct ss_error *ss_each_process_run(const struct ss_each_process *each,
				     int *ret_statuses)
{
	__attribute__((cleanup(run_deinit))) struct run run = { .each = each };

	block_signals(&run);
	run.children = calloc(each->count + 1, sizeof(*run.children));
	if (!run.children)
		return ss_error_no_memory();
	for (size_t i = 0; i < each->count; i++)
		run.children[i] =
			(struct child){ .child = { .status = SIGTERM }, .out = -1 };
	struct ss_error *error = run_all(&run);
	for (size_t i = 0; i < each->count; i++)
		ret_statuses[i] = ss_child_exit_status(&run.children[i].child);
	return error;
}
