#include "cli/top_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/wait_functions.h"
#include "cli/watchdog.h"
#include "interpret/interpret.h"
#include "stacksnap/record.h"

enum { WRITE_MS = 200, NAME_SIZE = 16, END_MS = 2000 };

SS_DEFINE_CLEANUP(struct ss_target, target, ss_target_close)
SS_DEFINE_CLEANUP(struct ss_recorder, recorder, ss_recorder_free)

/* Jobs -------------------------------------------------------------------- */

static void close_files(struct ss_top_job *job)
{
	close_cleanup(&job->out);
	close_cleanup(&job->messages);
	job->out = job->messages = -1;
}

struct ss_error *ss_top_job_start(struct ss_top_job *job, const sigset_t *mask,
				  ss_child_function *work, void *data)
{
	close_files(job);
	job->out = ss_io_create_unnamed();
	job->messages = ss_io_create_unnamed();
	if (job->out < 0 || job->messages < 0)
		return ss_error_new_errno(errno, "creating a file in memory");
	const struct ss_child_options options = {
		.streams = { SS_CHILD_NOWHERE, job->out, job->messages },
		.death_signal = SIGTERM,
		.mask = mask,
		.flush = true, /* into memory */
	};
	job->begin_ns = ss_now_ns();
	return ss_child_start(&options, work, data, &job->child);
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

/* Recorder ---------------------------------------------------------------- */

/* For the signal handler. */
static struct ss_recorder *volatile interrupted;

static void on_signal(int signal)
{
	int saved = errno;

	(void)signal;
	if (interrupted)
		ss_recorder_stop(interrupted);
	errno = saved;
}

static void catch_signals(struct ss_recorder *recorder)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	interrupted = recorder;
	(void)sigemptyset(&action.sa_mask); /* cannot fail: valid signals */
	for (size_t i = 0; i < SS_ARRAY_SIZE(signals); i++)
		(void)sigaction(signals[i], &action, NULL);
}

/* The recorder owns the files; those of the job stay open. */
static struct ss_error *open_recorder(const struct ss_top_recording *recording,
				      struct ss_target *target, struct ss_recorder **ret)
{
	struct ss_recorder_options options = {
		.size = sizeof(options),
		.period_ns = recording->period_ns,
		.keep_ns = recording->keep_ns,
		.write_ns = WRITE_MS * SS_NS_PER_MS,
	};
	_cleanup_close_ int fd = fcntl(recording->files[0], F_DUPFD_CLOEXEC, 3);
	int other = fcntl(recording->files[1], F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || other < 0)
		return ss_error_new(SS_ERROR_SYSTEM, "too many open files");
	options.other_fd = other;
	return ss_recorder_new(target, take_fd(fd), &options, ret);
}

int ss_top_record(void *data, int channel)
{
	const struct ss_top_recording *recording = data;
	_cleanup_(target_cleanup) struct ss_target *target = NULL;
	_cleanup_(recorder_cleanup) struct ss_recorder *recorder = NULL;
	_cleanup_error_ struct ss_error *error = ss_target_open(recording->pid, &target);

	(void)channel; /* none */
	if (!error)
		error = open_recorder(recording, target, &recorder);
	if (!error) {
		catch_signals(recorder);
		ss_watchdog_begin_recording(recording->pid, recorder);
		error = ss_recorder_run(recorder);
		ss_watchdog_end();
		interrupted = NULL;
	}
	if (error) {
		ss_failure_print(error);
		return SS_STATUS_NOTHING;
	}
	const struct ss_recorder_summary *summary = ss_recorder_summary(recorder);
	return summary->end == SS_RECORDING_TARGET_END ? SS_TOP_TARGET_ENDED :
							 SS_STATUS_WHOLE;
}

/* Terminal ---------------------------------------------------------------- */

int ss_top_guard_terminal(void *data, int channel)
{
	struct ss_top_guard *guard = data;
	const struct timespec each = { .tv_sec = 1 };
	sigset_t set;
	siginfo_t info;

	(void)channel; /* none */
	/* These cannot fail: valid signals. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGUSR1);
	(void)prctl(PR_SET_PDEATHSIG, SIGUSR1); /* or when its main thread ends */
	while (getppid() == guard->parent) {
		int number = sigtimedwait(&set, &info, &each);
		if (number == SIGTERM && info.si_pid == guard->parent &&
		    getppid() == guard->parent)
			return SS_STATUS_WHOLE;
	}
	if (dup2(guard->fd, STDIN_FILENO) < 0 || dup2(guard->fd, STDOUT_FILENO) < 0)
		return SS_STATUS_NOTHING;
	guard->terminal.entered = true;
	ss_terminal_leave(&guard->terminal);
	return SS_STATUS_WHOLE;
}

/* Waits ------------------------------------------------------------------- */

static struct ss_error *find_waits(const struct ss_options *options,
				   struct ss_selection_run *run, struct ss_output *output)
{
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = options,
		.run = run,
		.output = output,
	};
	_cleanup_(ss_process_source_cleanup) struct ss_process_source *source = NULL;
	struct ss_interpret_options interpret;
	bool missing = false;

	ss_reading_configure(&reading, NULL, &interpret);
	struct ss_error *error = ss_reading_capture(&reading, run, true, &source);
	if (error)
		return error;
	ss_interpret_as_owner(ss_process_source_target(source), &interpret);
	return ss_reading_show(&reading, ss_process_source_last(source), &interpret,
			       &missing);
}

int ss_top_find_waits(void *data, int channel)
{
	const struct ss_top_waits *waits = data;
	__attribute__((cleanup(ss_options_deinit))) struct ss_options options = {};
	const struct ss_target_argument argument = { .pid = waits->pid };
	_cleanup_(ss_output_cleanup) struct ss_output *output = NULL;
	struct ss_selection_run run = { .argument = &argument };

	(void)channel; /* none */
	ss_options_init(&options);
	options.common.format = &ss_format_top_waits;
	options.mode = SS_MODE_NO_STOP;
	options.all = waits->idle;
	options.goroutines = 0;
	options.symbols.flags = SS_NO_SOURCE | SS_NO_INLINES;
	run.selection = &options.selection;
	ss_options_open_cache(&options);
	_cleanup_error_ struct ss_error *error = ss_wait_functions_load(&options.waits);
	if (!error)
		error = ss_output_open(NULL, waits->pid, &output);
	if (!error)
		error = find_waits(&options, &run, output);
	if (error)
		ss_failure_print(error);
	return error ? SS_STATUS_NOTHING : SS_STATUS_WHOLE;
}

/* Snapshot ---------------------------------------------------------------- */

int ss_top_take_snapshot(void *data, int channel)
{
	const struct ss_top_snapshot *snapshot = data;
	char pid[NAME_SIZE];
	char program[] = "stacksnap";
	char all[] = "-a";
	char option[] = "-o";
	_cleanup_free_ char *path = strdup(snapshot->path);
	char *arguments[] = { program, all, option, path, pid, NULL };

	(void)channel; /* none */
	if (!path)
		return SS_STATUS_NOTHING;
	(void)snprintf(pid, sizeof(pid), "%d", snapshot->pid);
	return ss_command_snap.run((int)SS_ARRAY_SIZE(arguments) - 1, arguments);
}
