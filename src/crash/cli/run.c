/*
 * stacksnap run [OPTIONS] -- COMMAND ARG...: the stacks of a command and of the processes that
 * it starts, when a signal ends one of them and when a time limit is over.
 *
 * This program stays the parent of the command, in the same process group, and acts like a
 * shell that runs it in the foreground: signals of the terminal reach the command directly,
 * those that were sent to this program alone are forwarded; when job control stops the command,
 * this program stops, too; and it ends as the command does.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/search.h"
#include "base/vector.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/process.h"
#include "cli/interpret.h"
#include "cli/output.h"
#include "crash/supervisor.h"
#include "interpret/interpret.h"
#include "process/spawn.h"

enum {
	STATUS_TIMEOUT = 124,
	STATUS_FAILED = 125, /* of stacksnap itself; as env(1) and timeout(1) have it */
	STATUS_SIGNAL = 128,
};

/* The command may handle signals late, so what stops it is followed when nothing has happened
   for a while; likewise a signal is forwarded if it has not reached the command by then. */
static const uint64_t quiet_ns = 20 * (uint64_t)SS_NS_PER_MS;
/* How long reports at the time limit may delay the end. */
static const uint64_t reports_ns = 120 * (uint64_t)SS_NS_PER_SECOND;
static const uint64_t kill_after_ns = 10 * (uint64_t)SS_NS_PER_SECOND;
static const uint64_t forever = UINT64_MAX;

/*
 * Reports. A process is captured at once, and held until its report is written: what is missing can
 * be read from its memory. Interpretation and output are done in a child process, one report after
 * the other, so that other processes of the command go on.
 */

struct report {
	pid_t pid;
	bool traced;
	pid_t writer; /* 0: it is not being written yet */
	struct ss_target *target;
	struct ss_process_source *source;
};

static void report_deinit(struct report *report)
{
	ss_process_source_free(report->source);
	ss_target_close(report->target);
}

struct reports {
	const struct ss_options *options;
	struct ss_selection_run selection;
	struct ss_output *output;	/* of all reports, if there is one; or NULL */
	bool separate;			/* something was written to it */
	SS_VECTOR(struct report) queue; /* one is written after the other */
};

static const struct ss_target_argument any_thread;

static void reports_deinit(struct reports *reports)
{
	for (size_t i = 0; i < reports->queue.count; i++)
		report_deinit(&reports->queue.items[i]);
	ss_vector_free(&reports->queue);
	ss_output_close(reports->output);
}

/* Capture -------------------------------------------------------------------- */

static struct ss_error *capture(struct reports *reports, struct ss_supervisor *supervisor,
				struct report *report)
{
	struct ss_reading reading = { .options = reports->options };
	struct ss_capture_options options;
	struct ss_process_source_options source =
		ss_reading_source(&reading, &reports->selection, &options);
	struct ss_error *error =
		report->traced ?
			ss_supervisor_hold(supervisor, report->pid, &report->target) :
			ss_target_open(report->pid, &report->target);

	if (error)
		return error;
	source.target = report->target;
	source.held = report->traced;
	source.no_list = true;
	source.watch = NULL;
	source.warn = NULL;
	source.captured = NULL;
	return ss_process_source_new(report->pid, &source, &report->source);
}

/* Captures a process; traced: it is held. After an error it goes on. */
static struct ss_error *add_report(struct reports *reports,
				   struct ss_supervisor *supervisor, pid_t pid,
				   bool traced)
{
	struct report *report = ss_vector_push(&reports->queue);
	struct ss_error *error = NULL;

	if (report) {
		*report = (struct report){ .pid = pid, .traced = traced };
		error = capture(reports, supervisor, report);
		if (!error)
			return NULL;
		report_deinit(report);
		reports->queue.count--;
	}
	ss_supervisor_release(supervisor, pid);
	return error ? error : ss_error_no_memory();
}

static bool has_report(const struct reports *reports, pid_t pid)
{
	return ss_any(reports->queue.count, i, reports->queue.items[i].pid == pid);
}

/* Writing, in a child -------------------------------------------------------- */

static bool write_report(struct reports *reports, struct report *report)
{
	const struct ss_options *options = reports->options;
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = options,
		.run = &reports->selection,
		.output = reports->output,
		.separate = reports->separate,
		.color = !options->common.output && isatty(STDERR_FILENO) == 1 &&
			 ss_options_want_color(&options->common),
	};
	struct ss_interpret_options interpret;
	bool missing = false;

	ss_reading_configure(&reading, &interpret);
	ss_interpret_as_owner(report->target, &interpret);
	interpret.cache = NULL;
	interpret.stops = 0;
	ss_row_source_init(&reading.rows, &options->common.rows);
	_cleanup_error_ struct ss_error *error = ss_reading_show(
		&reading, ss_process_source_last(report->source), &interpret, &missing);

	ss_failure_print(error);
	return error == NULL;
}

/* The output of the first report, or of each one. */
static struct ss_error *open_output(struct reports *reports, pid_t pid)
{
	const char *pattern = reports->options->common.output;

	if (ss_output_is_per_target(pattern)) {
		ss_output_close(take_ptr(reports->output));
		reports->separate = false;
	}
	if (reports->output)
		return NULL;
	return pattern ? ss_output_open(pattern, pid, &reports->output) :
			 ss_output_open_stderr(&reports->output);
}

/* In the child. */
static int write_first(void *data, int channel)
{
	struct reports *reports = data;

	(void)channel; /* none */
	return write_report(reports, &reports->queue.items[0]) ? EXIT_SUCCESS :
								 EXIT_FAILURE;
}

/* The supervisor sees the end of the child. The signals of the command are blocked here. */
static void start_writer(struct reports *reports)
{
	const struct ss_child_options options = { .death_signal = SIGKILL };
	struct report *report = &reports->queue.items[0];
	struct ss_child child = SS_NO_CHILD;
	_cleanup_error_ struct ss_error *error = open_output(reports, report->pid);

	if (!error)
		error = ss_child_start(&options, write_first, reports, &child);
	ss_failure_print(error);
	reports->separate |= !error;
	report->writer = error ? -1 : child.pid;
}

static void remove_first(struct reports *reports, struct ss_supervisor *supervisor)
{
	struct report first = reports->queue.items[0];

	reports->queue.count--;
	memmove(reports->queue.items, reports->queue.items + 1,
		reports->queue.count * sizeof(first));
	if (first.traced)
		ss_supervisor_release(supervisor, first.pid);
	report_deinit(&first);
}

/* Starts to write the next report unless another one is being written. */
static void start_report(struct reports *reports, struct ss_supervisor *supervisor)
{
	while (reports->queue.count > 0 && reports->queue.items[0].writer == 0) {
		start_writer(reports);
		if (reports->queue.items[0].writer > 0)
			return;
		remove_first(reports, supervisor);
	}
}

/* A child process has ended. */
static void end_report(struct reports *reports, struct ss_supervisor *supervisor,
		       pid_t child)
{
	if (reports->queue.count > 0 && reports->queue.items[0].writer == child)
		remove_first(reports, supervisor);
}

/* Gives up what is not written yet, and lets its processes go on. */
static void drop_reports(struct reports *reports, struct ss_supervisor *supervisor)
{
	/* The one that is being written is abandoned: its end is not waited for. */
	while (reports->queue.count > 0)
		remove_first(reports, supervisor);
}

/* The command's processes ----------------------------------------------------- */

/* What happens after the time limit, in this order. */
enum phase { PHASE_RUNS, PHASE_REPORTS, PHASE_TERMINATED, PHASE_KILLED };

struct forward {
	int signal; /* 0: none */
	pid_t sender;
	uint64_t time_ns;
};

struct run {
	struct ss_options options;
	uint64_t timeout_ns; /* 0: none */
	uint64_t kill_after_ns;
	bool no_crashes;
	char **command; /* in argv */

	struct reports reports;
	struct ss_supervisor *supervisor;
	sigset_t signals; /* the mask of the command */
	bool ignores_sigchld;
	struct ss_child child; /* its channel says why it could not be executed */
	bool ended;	       /* the supervisor has waited for it */
	int status;
	enum phase phase;
	uint64_t limit_ns; /* when the next phase begins; or forever */
	int stop;	   /* a signal that has stopped the command; 0: none */
	uint64_t stop_ns;  /* when to follow it */
	struct forward forward;
};

static void run_deinit(struct run *run)
{
	close_cleanup(&run->child.channel);
	reports_deinit(&run->reports);
	ss_supervisor_free(run->supervisor);
	ss_options_deinit(&run->options);
}

/* Options ------------------------------------------------------------------- */

static bool take_command(void *input, char **argv, bool quoted)
{
	struct run *run = input;

	(void)quoted;
	run->command = argv;
	return true;
}

static void refuse_none(void *input)
{
	(void)input;
	ss_usage_fail("expected a command");
}

static const struct ss_option table[] = {
	{ "timeout", 0, "TIME",
	  "Print the stacks of all processes after TIME (30, 90s, 5m, 2h), and end them: "
	  "exit status 124 (default: no limit)",
	  0, SS_SETS_DURATION(struct run, timeout_ns) },
	{ "kill-after", 0, "TIME",
	  "Send SIGKILL to processes that still run TIME after SIGTERM (default: 10s)", 0,
	  SS_SETS_DURATION(struct run, kill_after_ns) },
	{ "no-crashes", 0, NULL,
	  "Do not trace the processes: only the time limit applies. For programs that "
	  "are traced by others, or in which ptrace(2) fails with EPERM",
	  0, SS_SETS_FLAG(struct run, no_crashes) },
	{ "no-cache", 0, NULL, "Do not use or update the cache of names", 3,
	  SS_SETS_FLAG(struct run, options.no_cache) },
	{},
};

static const struct ss_option_child children[] = {
	{ &ss_interpret_group, offsetof(struct run, options) },
	{ &ss_minidump_group, offsetof(struct run, options) },
	{ &ss_row_group, offsetof(struct run, options.common.rows) },
	{ &ss_selection_group, offsetof(struct run, options.selection) },
	{ &ss_waits_group, offsetof(struct run, options) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "-- COMMAND ARG...",
	.doc = "Run a command; print the stacks of all threads when a signal kills it or "
	       "a process that it started, or when it takes too long.\vReports go to "
	       "standard error (default of --output). Exit status: that of the command, "
	       "128+N after signal N; 124 after the time limit, 125 if stacksnap failed, "
	       "126 and 127 if the command could not be started.",
	.argument = take_command,
	.none = refuse_none,
};

/* The command --------------------------------------------------------------- */

/* Blocks all signals: they are received by sigtimedwait(2). Ended children of a program that
   ignores SIGCHLD are not reported. */
static void take_signals(struct run *run)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	struct sigaction before = {};
	sigset_t all;

	/* None of these can fail. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &run->signals);
	(void)sigaction(SIGCHLD, &action, &before);
	run->ignores_sigchld = before.sa_handler == SIG_IGN;
}

static void restore_signals(const struct run *run)
{
	const struct sigaction action = { .sa_handler = SIG_IGN };

	if (run->ignores_sigchld)
		(void)sigaction(SIGCHLD, &action, NULL); /* cannot fail, also below */
	(void)sigprocmask(SIG_SETMASK, &run->signals, NULL);
}

struct start {
	const struct run *run;
	int ready[2]; /* a pipe that is closed when the child is traced */
};

/* In the child: waits until it is traced. Reports a failure. */
static int execute(void *data, int failed)
{
	const struct start *start = data;
	const struct run *run = start->run;
	char byte;

	ss_file_limit_restore();
	(void)close(start->ready[1]);
	while (read(start->ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	restore_signals(run);
	(void)execvp(run->command[0], run->command);
	int errnum = errno;
	(void)!write(failed, &errnum, sizeof(errnum)); /* or just exit */
	return ss_spawn_status(errnum);
}

static void trace(const struct run *run)
{
	_cleanup_error_ struct ss_error *error =
		run->no_crashes ? NULL : ss_supervisor_trace(run->supervisor);

	if (!error)
		return;
	ss_failure_warn("crashes are not seen: %s", ss_error_message(error));
	ss_failure_hint("is there a seccomp filter, or is kernel.yama.ptrace_scope above "
			"1? --no-crashes hides this message");
}

static struct ss_error *start(struct run *run)
{
	const struct ss_child_options options = { .channel = SS_CHILD_WRITES };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return ss_error_new_errno(errno, "starting the command");
	_cleanup_close_ int reading = ends[0];
	_cleanup_close_ int writing = ends[1];
	struct start start = { run, { reading, writing } };
	struct ss_error *error = ss_child_start(&options, execute, &start, &run->child);
	if (!error)
		error = ss_supervisor_new(run->child.pid, &run->supervisor);
	if (!error)
		trace(run);
	return error; /* the child goes on when the pipe is closed */
}

/* Why the command could not be executed; 0: it was. The stop after execve(2) has to be answered
   meanwhile. */
static int check_started(const struct run *run)
{
	int errnum = 0;

	return read(run->child.channel, &errnum, sizeof(errnum)) == sizeof(errnum) ?
		       errnum :
		       0;
}

/* Events --------------------------------------------------------------------- */

static void warn(struct ss_error *error)
{
	ss_failure_print(error);
	ss_error_free(error);
}

static void on_event(struct run *run, const struct ss_supervisor_event *event)
{
	switch (event->kind) {
	case SS_SUPERVISOR_CRASH:
		/* What is ended on purpose needs no report. */
		if (run->phase > PHASE_REPORTS && event->signal == SIGTERM)
			ss_supervisor_release(run->supervisor, event->pid);
		else
			warn(add_report(&run->reports, run->supervisor, event->pid,
					true));
		break;
	case SS_SUPERVISOR_STOPPED:
		run->stop = event->signal == SIGSTOP ? 0 : event->signal;
		break;
	case SS_SUPERVISOR_CONTINUED:
		run->stop = 0;
		break;
	case SS_SUPERVISOR_ENDED:
		if (event->pid == run->child.pid) {
			run->ended = true;
			run->status = event->status;
		}
		end_report(&run->reports, run->supervisor, event->pid);
		break;
	default:
		break;
	}
	run->stop_ns = ss_now_ns() + quiet_ns;
}

/* Job control stops the command: the shell that waits for this program has to see it stop.
   (SIGSTOP sent to the command alone is nobody's job control.) */
static void follow_stop(struct run *run)
{
	int signal = run->stop;
	sigset_t set;

	run->stop = 0;
	if (getpgid(run->child.pid) != getpgrp())
		return;
	(void)sigemptyset(&set); /* cannot fail with a valid signal, also below */
	(void)sigaddset(&set, signal);
	(void)raise(signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/* A signal of the terminal, or one that was sent to the process group, reaches the command as
   well. */
static void on_signal(struct run *run, const siginfo_t *info)
{
	bool from_kernel = info->si_code > 0;

	switch (info->si_signo) {
	case SIGCHLD:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return;
	default:
		if (!from_kernel && !run->ended)
			run->forward =
				(struct forward){ .signal = info->si_signo,
						  .sender = info->si_pid,
						  .time_ns = ss_now_ns() + quiet_ns };
	}
}

static void forward_signal(struct run *run)
{
	const struct forward *forward = &run->forward;

	if (!run->ended && !ss_supervisor_has_received(run->supervisor, forward->signal,
						       forward->sender))
		ss_supervisor_signal(run->supervisor, run->child.pid, forward->signal);
	run->forward.signal = 0;
}

/* Time limit ----------------------------------------------------------------- */

static size_t signal_all(const struct run *run, int signal)
{
	_cleanup_free_ struct ss_supervised *processes = NULL;
	size_t count = 0;

	warn(ss_supervisor_list(run->supervisor, &processes, &count));
	for (size_t i = 0; i < count; i++) {
		ss_supervisor_signal(run->supervisor, processes[i].pid, signal);
		if (signal != SIGKILL) /* a stopped process handles no other signal */
			ss_supervisor_signal(run->supervisor, processes[i].pid, SIGCONT);
	}
	return count;
}

static void report_all(struct run *run)
{
	_cleanup_free_ struct ss_supervised *processes = NULL;
	size_t count = 0;

	ss_failure_warn("the time limit of %.3g s has expired: printing the stacks of "
			"all processes, then ending them",
			(double)run->timeout_ns / SS_NS_PER_SECOND);
	warn(ss_supervisor_list(run->supervisor, &processes, &count));
	for (size_t i = 0; i < count; i++) {
		if (!has_report(&run->reports, processes[i].pid))
			warn(add_report(&run->reports, run->supervisor, processes[i].pid,
					processes[i].traced));
	}
}

static void next_phase(struct run *run)
{
	switch (run->phase) {
	case PHASE_RUNS:
		run->phase = PHASE_REPORTS;
		run->limit_ns = ss_now_ns() + reports_ns;
		report_all(run);
		return;
	case PHASE_REPORTS:
		run->phase = PHASE_TERMINATED;
		run->limit_ns = ss_now_ns() + run->kill_after_ns;
		drop_reports(&run->reports, run->supervisor);
		(void)signal_all(run, SIGTERM);
		return;
	default:
		run->phase = PHASE_KILLED;
		run->limit_ns = ss_now_ns() + quiet_ns; /* once more: new processes */
		(void)signal_all(run, SIGKILL);
		return;
	}
}

/* Whether all is over. */
static bool is_done(const struct run *run)
{
	_cleanup_free_ struct ss_supervised *processes = NULL;
	size_t count = 0;

	if (!run->ended || run->reports.queue.count)
		return false;
	if (run->phase == PHASE_RUNS)
		return true;
	if (run->phase == PHASE_REPORTS)
		return false;
	warn(ss_supervisor_list(run->supervisor, &processes, &count));
	return count == 0;
}

static bool is_reported(const struct run *run)
{
	return run->phase == PHASE_REPORTS && !run->reports.queue.count;
}

/* The loop -------------------------------------------------------------------- */

static void wait_for_signal(struct run *run)
{
	uint64_t now = ss_now_ns();
	uint64_t until = is_reported(run) ? now : run->limit_ns;
	siginfo_t info;
	sigset_t all;

	if (run->stop)
		until = SS_MIN(until, run->stop_ns);
	if (run->forward.signal)
		until = SS_MIN(until, run->forward.time_ns);
	uint64_t left = until > now ? until - now : 0;
	const struct timespec ts = { .tv_sec = (time_t)(left / SS_NS_PER_SECOND),
				     .tv_nsec = (long)(left % SS_NS_PER_SECOND) };
	(void)sigfillset(&all); /* cannot fail */
	if (sigtimedwait(&all, &info, until == forever ? NULL : &ts) > 0)
		on_signal(run, &info);
	now = ss_now_ns();
	if (run->forward.signal && now >= run->forward.time_ns)
		forward_signal(run);
	if (run->stop && now >= run->stop_ns)
		follow_stop(run);
	if (now >= run->limit_ns || is_reported(run))
		next_phase(run);
}

static void supervise(struct run *run)
{
	struct ss_supervisor_event event;

	run->limit_ns = run->timeout_ns ? ss_now_ns() + run->timeout_ns : forever;
	for (;;) {
		while (ss_supervisor_next(run->supervisor, &event))
			on_event(run, &event);
		start_report(&run->reports, run->supervisor);
		if (is_done(run))
			return;
		wait_for_signal(run);
	}
}

/* Ends as the command did: a shell treats a program that SIGINT has ended differently from
   one that exits with status 130. */
static int end(const struct run *run)
{
	const struct rlimit no_core = {};
	const struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t set;

	if (run->phase != PHASE_RUNS)
		return STATUS_TIMEOUT;
	if (WIFEXITED(run->status))
		return WEXITSTATUS(run->status);
	int signal = WTERMSIG(run->status);
	(void)sigemptyset(&set); /* cannot fail with a valid signal, also below */
	(void)sigaddset(&set, signal);
	if (prctl(PR_SET_DUMPABLE, 0) == 0 && setrlimit(RLIMIT_CORE, &no_core) == 0) {
		(void)sigaction(signal, &action, NULL);
		(void)raise(signal);
		(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	return STATUS_SIGNAL + signal; /* the first process of a container */
}

static int run_command(struct run *run)
{
	take_signals(run);
	_cleanup_error_ struct ss_error *error = start(run);
	if (error) {
		ss_failure_print(error);
		return STATUS_FAILED;
	}
	supervise(run);
	int errnum = check_started(run);
	if (errnum)
		ss_failure_warn("cannot execute '%s': %s", run->command[0],
				strerrordesc_np(errnum));
	return end(run);
}

static int run(int argc, char **argv)
{
	_cleanup_(run_deinit) struct run run = { .child = SS_NO_CHILD,
						 .kill_after_ns = kill_after_ns };

	ss_options_init(&run.options);
	run.reports.options = &run.options;
	run.reports.selection =
		(struct ss_selection_run){ .selection = &run.options.selection,
					   .argument = &any_thread };
	if (!ss_usage_parse(&ss_command_run, argc, argv, ARGP_IN_ORDER, &run))
		return STATUS_FAILED;
	ss_options_open_cache(&run.options);
	ss_row_arguments_begin(&run.options.common.rows, 0);
	return run_command(&run);
}

const struct ss_command ss_command_run = {
	.name = "run",
	.summary = "run a command; stacks when it crashes or takes too long",
	.options = &group,
	.run = run,
};
