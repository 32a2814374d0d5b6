/*
 * The sampling loop: a thread of its own that looks at the target at each tick and
 * writes what it found.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "capture/stop.h"
#include "record/family.h"

enum { THREAD_STACK = 1 << 20, HZ = 99, DEFAULT_FRAMES = 1024, NICE_MIN = -20 };
/* How long is waited for a thread that does not stop, while others run on: a part of the
   period, within these. */
enum { TIMEOUT_PERCENT = 60, TIMEOUT_MIN_MS = 1, TIMEOUT_MAX_MS = 20 };
enum { NS_PER_MS = 1000000 };
enum { STACK_MAX = 256 << 10, TOTAL_MAX = 64 << 20, JITTER_PART = 4 };

static const uint64_t second_ns = 1000000000;

struct ss_recorder {
	struct ss_writer *writer;
	struct ss_session *session;
	struct ss_family family;
	struct ss_recorder_options options;
	struct ss_recorder_summary summary;
	struct ss_samples samples;
	int stop_fd; /* an eventfd: readable when it is to stop */
	uint64_t begin_ns;
	uint64_t due_ns;  /* of the next tick, without jitter */
	uint64_t told_ns; /* progress */
	uint64_t random;
	struct ss_error *error;
	pid_t tid;  /* of the recording thread */
	bool again; /* the thread had to end, and another one goes on */
	bool first; /* only one tick: the target has not begun */
	bool done;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts); /* cannot fail: the clock exists */
	return (uint64_t)ts.tv_sec * second_ns + (uint64_t)ts.tv_nsec;
}

static struct ss_error *open_writer(struct ss_recorder *recorder, int fd)
{
	const struct ss_recorder_options *o = &recorder->options;
	struct utsname system = {};

	(void)uname(&system); /* or unknown */
	recorder->begin_ns = clock_ns(CLOCK_MONOTONIC);
	const struct ss_writer_options options = {
		.monotonic_ns = recorder->begin_ns,
		.wall_ns = clock_ns(CLOCK_REALTIME),
		.period_ns = o->period_ns,
		.keep_ns = o->keep_ns,
		.machine = system.machine,
		.host = system.nodename,
		.directory = o->directory,
		.name = o->name,
	};
	return ss_writer_new(fd, &options, &recorder->writer);
}

static void set_defaults(struct ss_recorder_options *o)
{
	if (o->period_ns == 0)
		o->period_ns = second_ns / HZ;
	if (o->max_frames == 0)
		o->max_frames = DEFAULT_FRAMES;
	if (o->max_stack == 0)
		o->max_stack = STACK_MAX;
}

static struct ss_error *begin_family(struct ss_recorder *recorder,
				     struct ss_target *target)
{
	const struct ss_recorder_options *o = &recorder->options;
	uint64_t period_ms = o->period_ns / NS_PER_MS * TIMEOUT_PERCENT / 100;
	const struct ss_capture_options capture_options = {
		.size = sizeof(capture_options),
		.timeout_ms =
			(unsigned)SS_MAX(SS_MIN(period_ms, (uint64_t)TIMEOUT_MAX_MS),
					 (uint64_t)TIMEOUT_MIN_MS),
		.max_stack = o->max_stack,
		.max_total = TOTAL_MAX,
		.filter = o->filter,
		.filter_data = o->filter_data,
	};

	ss_family_init(&recorder->family, recorder->writer, recorder->session,
		       o->max_frames, o->children, &capture_options);
	return ss_family_add(&recorder->family, target, false) ? NULL :
								 ss_error_no_memory();
}

struct ss_error *ss_recorder_new(struct ss_target *target, int fd,
				 const struct ss_recorder_options *options,
				 struct ss_recorder **ret)
{
	struct ss_recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder) {
		close_cleanup(&fd);
		return ss_error_no_memory();
	}
	if (options)
		memcpy(&recorder->options, options,
		       SS_MIN(options->size, sizeof(recorder->options)));
	set_defaults(&recorder->options);
	recorder->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int errnum = errno;
	struct ss_error *error =
		recorder->stop_fd < 0 ? ss_error_new_errno(errnum, "eventfd") : NULL;
	if (error)
		close_cleanup(&fd);
	else
		error = open_writer(recorder, fd);
	if (!error)
		error = ss_session_new(NULL, &recorder->session);
	if (!error)
		error = begin_family(recorder, target);
	if (error) {
		ss_recorder_free(recorder);
		return error;
	}
	*ret = recorder;
	return NULL;
}

void ss_recorder_free(struct ss_recorder *recorder)
{
	if (!recorder)
		return;
	ss_family_deinit(&recorder->family);
	ss_writer_free(recorder->writer);
	ss_session_free(recorder->session);
	ss_vector_free(&recorder->samples.items);
	close_cleanup(&recorder->stop_fd);
	ss_error_free(recorder->error);
	free(recorder);
}

void ss_recorder_stop(struct ss_recorder *recorder)
{
	const uint64_t one = 1;

	/* Nothing else is safe in a signal handler; it cannot fail but by being full. */
	(void)!write(recorder->stop_fd, &one, sizeof(one));
}

uint64_t ss_recorder_looking_ns(const struct ss_recorder *recorder)
{
	uint64_t since = recorder->family.looking_ns;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return since && now > since ? now - since : 0;
}

const struct ss_recorder_summary *ss_recorder_summary(const struct ss_recorder *recorder)
{
	return &recorder->summary;
}

/* When the next tick is to be: somewhere in the middle of its period, so that it does
   not fall into step with what the target does periodically (xorshift, Marsaglia). */
static uint64_t next_tick_ns(struct ss_recorder *recorder)
{
	uint64_t span = recorder->options.period_ns / JITTER_PART + 1;

	recorder->random ^= recorder->random << 13;
	recorder->random ^= recorder->random >> 7;
	recorder->random ^= recorder->random << 17;
	return recorder->due_ns + recorder->random % span;
}

/* False: it was stopped meanwhile. */
static bool wait_until(struct ss_recorder *recorder, uint64_t time_ns)
{
	struct pollfd pollfd = { .fd = recorder->stop_fd, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		uint64_t left = time_ns > now ? time_ns - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(left / second_ns),
				       .tv_nsec = (long)(left % second_ns) };
		int n = ppoll(&pollfd, 1, &ts, NULL);
		if (n > 0)
			return false;
		if (left == 0)
			return true;
	}
}

/* Moves on to the next period; how many have passed unused. */
static uint64_t count_missed(struct ss_recorder *recorder, uint64_t now)
{
	uint64_t period = recorder->options.period_ns;
	uint64_t missed =
		now > recorder->due_ns + period ? (now - recorder->due_ns) / period : 0;

	recorder->due_ns += (missed + 1) * period;
	return missed;
}

static void sum_up(struct ss_recorder *recorder, const struct ss_written_tick *tick)
{
	struct ss_recorder_summary *s = &recorder->summary;

	s->samples = ss_writer_samples(recorder->writer);
	s->ticks++;
	s->missed += tick->missed;
	s->thread_stops = ss_family_thread_stops(&recorder->family);
	s->stopped_ns += tick->stopped_ns;
	s->stopped_max_ns = SS_MAX(s->stopped_max_ns, tick->stopped_max_ns);
	s->duration_ns = tick->monotonic_ns - recorder->begin_ns;
	s->size = ss_writer_size(recorder->writer);
	s->undropped = ss_writer_undropped(recorder->writer);
	s->memory = SS_MAX(s->memory, (uint64_t)ss_writer_memory(recorder->writer));
	ss_writer_counts(recorder->writer, &s->threads, &s->stacks);
}

static void tell(struct ss_recorder *recorder, uint64_t now)
{
	if (!recorder->options.progress || now < recorder->told_ns + second_ns)
		return;
	recorder->told_ns = now;
	recorder->options.progress(recorder->options.progress_data, &recorder->summary);
}

static struct ss_error *take_tick(struct ss_recorder *recorder)
{
	struct ss_written_tick tick = { .monotonic_ns = clock_ns(CLOCK_MONOTONIC),
					.wall_ns = clock_ns(CLOCK_REALTIME) };
	struct ss_error *error = NULL;

	tick.missed = count_missed(recorder, tick.monotonic_ns);
	if (ss_writer_wants_roll(recorder->writer, tick.monotonic_ns))
		error = ss_family_roll(&recorder->family, tick.monotonic_ns,
				       tick.wall_ns);
	recorder->samples.items.count = 0;
	if (!error)
		error = ss_family_tick(&recorder->family, tick.monotonic_ns,
				       &recorder->samples, &tick);
	if (!error)
		error = ss_writer_tick(recorder->writer, &tick,
				       recorder->samples.items.items,
				       recorder->samples.items.count);
	if (!error)
		sum_up(recorder, &tick);
	return error;
}

static void finish(struct ss_recorder *recorder, enum ss_recording_end end)
{
	recorder->summary.end = end;
	recorder->done = true;
}

static bool is_over(struct ss_recorder *recorder)
{
	uint64_t duration = recorder->options.duration_ns;

	if (ss_family_is_over(&recorder->family))
		finish(recorder, SS_RECORDING_TARGET_END);
	else if (duration && clock_ns(CLOCK_MONOTONIC) >= recorder->begin_ns + duration)
		finish(recorder, SS_RECORDING_DURATION);
	return recorder->done;
}

/* One thread's work: until it is over, or this thread has to end for the kernel to
   release what did not stop in time. */
static void *record_thread(void *data)
{
	struct ss_recorder *recorder = data;

	recorder->tid = gettid();
	recorder->again = false;
	while (!recorder->done && !recorder->error && !recorder->again) {
		uint64_t at = next_tick_ns(recorder);
		if (recorder->options.duration_ns)
			at = SS_MIN(at,
				    recorder->begin_ns + recorder->options.duration_ns);
		if (!wait_until(recorder, at)) {
			finish(recorder, SS_RECORDING_STOPPED);
			break;
		}
		if (is_over(recorder))
			break;
		recorder->error = take_tick(recorder);
		recorder->again = recorder->first || ss_family_is_late(&recorder->family);
		if (!recorder->error && !is_over(recorder))
			tell(recorder, clock_ns(CLOCK_MONOTONIC));
	}
	return NULL;
}

static struct ss_error *run_thread(struct ss_recorder *recorder)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	sigset_t before;
	int errnum = pthread_attr_init(&attr);

	if (errnum)
		return ss_error_new_errno(errnum, "starting the recording thread");
	/* None of these can fail: the size is a multiple of a page, the sets are valid.
	 */
	(void)pthread_attr_setstacksize(&attr, THREAD_STACK);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&thread, &attr, record_thread, recorder);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	if (errnum)
		return ss_error_new_errno(errnum, "starting the recording thread");
	ss_stop_join(thread, &recorder->tid);
	return take_ptr(recorder->error);
}

/* A program that was started for us is seen once before it begins. */
static struct ss_error *run_first(struct ss_recorder *recorder)
{
	struct ss_target *target = recorder->family.members.items[0]->target;

	if (!target->held)
		return NULL;
	recorder->first = true;
	struct ss_error *error = run_thread(recorder);
	recorder->first = false;
	return error ? error : ss_target_resume(target);
}

static struct ss_error *write_end(struct ss_recorder *recorder)
{
	struct ss_summary summary = {
		.thread_stops = recorder->summary.thread_stops,
		.duration_ns = clock_ns(CLOCK_MONOTONIC) - recorder->begin_ns,
		.reason = recorder->summary.end,
	};
	struct ss_error *error = ss_family_finish(&recorder->family);

	if (!error)
		error = ss_writer_finish(recorder->writer, &summary);

	recorder->summary.duration_ns = summary.duration_ns;
	recorder->summary.size = ss_writer_size(recorder->writer);
	return error;
}

/* Of this thread. It needs little time, but at once: where there is more to run than
   CPUs, others would have it wait for many ticks. Refused without CAP_SYS_NICE. */
static void set_nice(int nice)
{
	(void)setpriority(PRIO_PROCESS, 0, nice);
}

struct ss_error *ss_recorder_run(struct ss_recorder *recorder)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	struct ss_error *error = NULL;
	sigset_t child;
	sigset_t before;

	/* The thread waits for SIGCHLD, which tells of stops. None of these can fail. */
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &child, &before);
	set_nice(NICE_MIN); /* the threads that are made here have it from this one */
	recorder->due_ns = clock_ns(CLOCK_MONOTONIC);
	recorder->random = recorder->due_ns | 1; /* not zero; need not be a secret */
	error = run_first(recorder);
	while (!error && !recorder->done)
		error = run_thread(recorder);
	set_nice(nice);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		recorder->summary.end = SS_RECORDING_LOST;
	/* What there is is written in any case; the first error is the one that counts.
	 */
	_cleanup_error_ struct ss_error *last = write_end(recorder);
	return error ? error : take_ptr(last);
}
