#include "cli/process.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/output.h"
#include "cli/failure.h"
#include "sample/recorder.h"
#include "stacksnap/record.h"

/* Signals and time --------------------------------------------------------------- */

void ss_signals_block(const int *numbers, size_t count, sigset_t *ret, sigset_t *before)
{
	/* None of these calls can fail: the signals are valid. */
	(void)sigemptyset(ret);
	for (size_t i = 0; i < count; i++) {
		struct sigaction action;
		if (sigaction(numbers[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			(void)sigaddset(ret, numbers[i]);
	}
	(void)sigprocmask(SIG_BLOCK, ret, before);
}

int ss_signals_watch(void)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail: valid signals */
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

bool ss_signals_are_pending(const sigset_t *signals)
{
	sigset_t pending;

	/* These cannot fail. */
	(void)sigpending(&pending);
	(void)sigandset(&pending, &pending, signals);
	return sigisemptyset(&pending) == 0;
}

uint64_t ss_cpu_time_ns(void)
{
	uint64_t sum = 0;

	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
		struct rusage usage = {};
		(void)getrusage(who, &usage); /* cannot fail */
		sum += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) *
			       SS_NS_PER_SECOND +
		       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	}
	return sum;
}

/* The limit of open files ---------------------------------------------------------- */

static struct rlimit original;
static bool raised;

void ss_file_limit_raise(void)
{
	if (getrlimit(RLIMIT_NOFILE, &original) != 0)
		return;
	const struct rlimit limit = { .rlim_cur = original.rlim_max,
				      .rlim_max = original.rlim_max };
	/* If it fails, files are missing, or reopened. */
	raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

void ss_file_limit_restore(void)
{
	if (raised)
		(void)setrlimit(RLIMIT_NOFILE, &original); /* lowers it: cannot fail */
}

/* The watchdog ------------------------------------------------------------------------ */

enum {
	TIMEOUT_MS = 1000, /* default of --timeout */
	/* A whole capture on a busy machine; the freeze is a small part of it. */
	FACTOR = 6,
	EXTRA_MS = 5000,
	LIMIT_MS = TIMEOUT_MS * FACTOR + EXTRA_MS,
	/* Without a CPU, too: something may wait for this program. */
	LAST_FACTOR = 4,
	CHECK_MS = 1000,
	NS_PER_MS = 1000000,
};

static atomic_int watched;    /* pid, or 0 */
static atomic_ullong last_ns; /* when the last limit of the watched capture ends */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct ss_recorder *watched_recorder; /* or NULL; guarded by lock */
static unsigned slow_checks; /* consecutive checks during one slow read */
static timer_t timer;
static bool armed;

/* What the threads of this program, but the one that asks, have got of the CPUs by a time. */
struct cpu_wait {
	uint64_t now_ns;
	uint64_t run_ns;
	uint64_t wait_ns; /* for a CPU. The kernel adds a wait when it ends, */
	bool runnable;	  /* so also: whether one waits or runs now */
};

static struct cpu_wait measured; /* last; 0: not yet; guarded by lock */

static FILE *open_of_thread(const char *tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/%s", tid, name);
	return fopen(path, "re");
}

/* Adds nothing for a thread that has ended. */
static void add_thread(const char *tid, struct cpu_wait *to)
{
	uint64_t run_ns = 0;
	uint64_t wait_ns = 0;
	char state = '?';
	FILE *times = open_of_thread(tid, "schedstat");
	FILE *status = open_of_thread(tid, "stat");

	if (times && fscanf(times, "%" SCNu64 " %" SCNu64, &run_ns, &wait_ns) == 2) {
		to->run_ns += run_ns;
		to->wait_ns += wait_ns;
	}
	/* The names of our threads have no parenthesis. */
	if (status && fscanf(status, "%*d (%*[^)]) %c", &state) == 1)
		to->runnable |= state == 'R';
	if (times)
		(void)fclose(times);
	if (status)
		(void)fclose(status);
}

static struct cpu_wait measure_cpu_wait(void)
{
	struct cpu_wait ret = { .now_ns = ss_now_ns() };
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	pid_t self = gettid();

	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != self)
			add_thread(entry->d_name, &ret);
	}
	if (tasks)
		(void)closedir(tasks);
	return ret;
}

/* Whether this program is slow because it seldom gets a CPU, rather than blocked: for at least half
   of the time since the call before. Of the first call it is not known, and true. */
static bool lacks_cpu(void)
{
	struct cpu_wait before = measured;

	measured = measure_cpu_wait();
	uint64_t half_ns = (measured.now_ns - before.now_ns) / 2;
	if (before.now_ns == 0)
		return true;
	return measured.wait_ns >= before.wait_ns + half_ns ||
	       (measured.runnable && measured.run_ns < before.run_ns + half_ns);
}

static struct ss_error *error_of_no_cpu(pid_t pid)
{
	return ss_error_with_remedy(
		ss_error_new(
			SS_ERROR_SYSTEM,
			"cannot read process %d in time: stacksnap has waited for a CPU "
			"nearly all the time; giving up, the process continues",
			pid),
		"raise the priority or the CPU quota of stacksnap");
}

static struct ss_error *error_of_blocked(pid_t pid)
{
	return ss_error_with_remedy(
		ss_error_new(
			SS_ERROR_SYSTEM,
			"cannot read process %d: access to its memory or memory map "
			"blocks on "
			"something that does not answer (a file system, a userfaultfd); "
			"giving up, the process continues",
			pid),
		"see /proc/%d/task/*/{stat,wchan,stack}: these do not access its memory",
		pid);
}

/* Ends this program, which has exceeded a limit; one that only lacks a CPU, if the limit is the
   last. lock must be held. */
static void give_up(pid_t pid, bool is_last, int status)
{
	bool waits_for_cpu = lacks_cpu();

	if (waits_for_cpu && !is_last)
		return;
	_cleanup_error_ struct ss_error *error = waits_for_cpu ? error_of_no_cpu(pid) :
								 error_of_blocked(pid);
	ss_failure_print(error);
	_exit(status);
}

/* expire() and check() run in a thread of the C library, which may still start while
   ss_watchdog_end() runs. */
static void expire(union sigval pid)
{
	(void)pthread_mutex_lock(&lock);
	if (pid.sival_int == atomic_load(&watched))
		give_up(pid.sival_int, ss_now_ns() >= atomic_load(&last_ns),
			SS_STATUS_NOTHING);
	(void)pthread_mutex_unlock(&lock);
}

static void check(union sigval pid)
{
	/* None of these calls can fail. */
	(void)pthread_mutex_lock(&lock);
	uint64_t ms =
		watched_recorder ? ss_recorder_read_ns(watched_recorder) / NS_PER_MS : 0;
	/* The count excludes time in which stacksnap itself was stopped (SIGSTOP, freezer). */
	slow_checks = ms >= CHECK_MS ? slow_checks + 1 : 0;
	if (slow_checks == 0)
		measured = (struct cpu_wait){};
	if (ms >= LIMIT_MS && slow_checks >= LIMIT_MS / CHECK_MS)
		give_up(pid.sival_int, slow_checks >= LAST_FACTOR * (LIMIT_MS / CHECK_MS),
			SS_STATUS_PARTIAL);
	(void)pthread_mutex_unlock(&lock);
}

static void arm(pid_t pid, void (*function)(union sigval), const struct itimerspec *limit)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = function,
				  .sigev_value.sival_int = pid };
	struct ss_cpu_pin pin;

	ss_cpu_pin_begin(&pin);
	int created = timer_create(CLOCK_MONOTONIC, &event, &timer);
	ss_cpu_pin_end(&pin);
	if (created < 0)
		return; /* without a watchdog */
	armed = timer_settime(timer, 0, limit, NULL) == 0;
	if (!armed)
		(void)timer_delete(timer); /* it exists */
}

void ss_watchdog_begin(pid_t pid, unsigned timeout_ms)
{
	unsigned long limit_ms =
		(timeout_ms ? timeout_ms : TIMEOUT_MS) * (unsigned long)FACTOR + EXTRA_MS;
	const struct itimerspec limit = {
		.it_value = { .tv_sec = (time_t)(limit_ms / 1000),
			      .tv_nsec = (long)(limit_ms % 1000) * 1000000 },
		.it_interval = { .tv_sec = CHECK_MS / 1000 },
	};

	(void)pthread_mutex_lock(&lock);
	measured = (struct cpu_wait){};
	(void)pthread_mutex_unlock(&lock);
	atomic_store(&last_ns,
		     ss_now_ns() + LAST_FACTOR * (uint64_t)limit_ms * NS_PER_MS);
	atomic_store(&watched, pid);
	arm(pid, expire, &limit);
}

static void set_recorder(const struct ss_recorder *recorder)
{
	(void)pthread_mutex_lock(&lock);
	watched_recorder = recorder;
	slow_checks = 0;
	(void)pthread_mutex_unlock(&lock);
}

/* Starts watching a recording: the limit is for each read of the process. If it is exceeded,
   the file stays without a summary. */
static void begin_recording(pid_t pid, const struct ss_recorder *recorder)
{
	const struct timespec ts = { .tv_sec = CHECK_MS / 1000 };
	const struct itimerspec each = { .it_value = ts, .it_interval = ts };

	set_recorder(recorder);
	arm(pid, check, &each);
}

void ss_watchdog_end(void)
{
	atomic_store(&watched, 0);
	set_recorder(NULL);
	if (armed)
		(void)timer_delete(timer); /* it exists */
	armed = false;
}

/* Children, one for each process ------------------------------------------------------- */

/* Each child needs memory and files of its own. */
enum { PARALLEL_MAX = 64 };

/* Of these, those are passed on that are not ignored. */
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

static struct ss_error *copy_one(struct run *run, struct child *child)
{
	const struct ss_each_process *each = run->each;
	struct ss_error *error = NULL;

	if (child->out < 0)
		return NULL;
	off_t size = lseek(child->out, 0, SEEK_END);
	if (size > 0 && run->wrote && each->separator)
		(void)fputs(each->separator, each->out);
	run->wrote |= size > 0;
	if (size > 0)
		error = ss_plain_copy(child->out, each->out);
	(void)close(child->out); /* in memory */
	child->out = -1;
	return error;
}

/* Copies the outputs of children that have ended, in their order. They have escaped what is
   not safe to print. */
static struct ss_error *copy(struct run *run)
{
	const struct ss_each_process *each = run->each;
	struct ss_error *error = NULL;

	for (; !each->rank && run->copied < run->started &&
	       run->children[run->copied].ended && !error;
	     run->copied++)
		error = copy_one(run, &run->children[run->copied]);
	return error;
}

/* By rank. */
static struct ss_error *copy_ranked(struct run *run)
{
	struct ss_error *error = NULL;
	int next = 0;

	for (int rank = 0; next < INT_MAX && !error; rank = next) {
		next = INT_MAX;
		for (size_t i = 0; i < run->started && !error; i++) {
			struct child *child = &run->children[i];
			int own = run->each->rank(ss_child_exit_status(&child->child));
			if (own == rank)
				error = copy_one(run, child);
			else if (own > rank)
				next = SS_MIN(next, own);
		}
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

	ss_signals_block(passed_on, SS_ARRAY_SIZE(passed_on), &run.set, &run.before);
	(void)sigaddset(&run.set, SIGCHLD); /* cannot fail: a valid signal */
	(void)sigprocmask(SIG_BLOCK, &run.set, NULL);
	run.children = calloc(each->count + 1, sizeof(*run.children));
	if (!run.children)
		return ss_error_no_memory();
	for (size_t i = 0; i < each->count; i++)
		run.children[i] =
			(struct child){ .child = { .status = SIGTERM }, .out = -1 };
	struct ss_error *error = run_all(&run);
	if (!error && each->rank)
		error = copy_ranked(&run);
	for (size_t i = 0; i < each->count; i++)
		ret_statuses[i] = ss_child_exit_status(&run.children[i].child);
	return error;
}

/* Recorders -------------------------------------------------------------------------- */

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

struct ss_error *ss_recorder_run_watched(struct ss_recorder *recorder, pid_t pid,
					 const int *signals, size_t count, bool all)
{
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_RESTART };

	interrupted = recorder;
	for (size_t i = 0; i < count; i++) {
		struct sigaction before;
		if (sigaction(signals[i], NULL, &before) == 0 &&
		    (all || before.sa_handler != SIG_IGN))
			(void)sigaction(signals[i], &action, NULL);
	}
	begin_recording(pid, recorder);
	struct ss_error *error = ss_recorder_run(recorder);
	ss_watchdog_end();
	interrupted = NULL;
	return error;
}
