/*
 * The sampling loop: a thread that takes a tick of all processes and writes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/procfs.h"
#include "capture/freeze.h"
#include "capture/tasks.h"
#include "process/own_thread.h"
#include "process/spawn.h"
#include "sample/pace.h"
#include "sample/recorder.h"
#include "sample/recorder_process.h"
#include "stacksnap/record.h"

/*
 * A process that watches over a recorder. SIGSTOP cannot be blocked: if it stops the
 * recorder in the middle of a tick, the threads that are held at that moment would stand
 * still with it. The guard lets the recorder end its tick, and then stops it again.
 *
 * It looks every STOP_GUARD_MS milliseconds, which bounds how long threads are held.
 */

enum { STOP_GUARD_MS = 50 };

struct stop_guard {
	atomic_uint *in_tick; /* shared with the guard; NULL: there is no guard */
	struct ss_child child;
};

enum {
	STEP_MS = 1,
	STEPS_MAX = 5000, /* a tick ends in less than that many steps */
};

static void sleep_ms(unsigned ms)
{
	ss_sleep_ns((uint64_t)ms * SS_NS_PER_MS);
}

/* The guard ------------------------------------------------------------- */

static bool is_stopped(int stat_fd)
{
	char text[1024];
	struct ss_stat stat;
	ssize_t n = pread(stat_fd, text, sizeof(text), 0);

	return n > 0 && ss_stat_parse(text, (size_t)n, &stat) && stat.state == 'T';
}

/* Continues the recorder until its tick is over, and stops it again. The next tick may
   begin before that. */
static void finish_ticks(pid_t recorder, int stat_fd, const atomic_uint *in_tick)
{
	for (int step = 0; step < STEPS_MAX && *in_tick && is_stopped(stat_fd);) {
		(void)kill(recorder, SIGCONT); /* it has ended: so does the guard */
		for (; step < STEPS_MAX && *in_tick; step++)
			sleep_ms(STEP_MS);
		(void)kill(recorder, SIGSTOP);
		sleep_ms(STEP_MS);
	}
}

struct watched {
	pid_t recorder;
	int stat_fd; /* without it the guard never sees a stop */
	const atomic_uint *in_tick;
};

/* Calls only what is async-signal-safe: other threads may have held locks at the fork. */
static int watch(void *data, int channel)
{
	const struct watched *watched = data;

	(void)channel; /* none */
	/* Signals of the terminal, and those for all of this name, are not for the guard.
	   These calls cannot fail. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_NAME, "ss-stop-guard");
	while (getppid() == watched->recorder) {
		sleep_ms(STOP_GUARD_MS);
		finish_ticks(watched->recorder, watched->stat_fd, watched->in_tick);
	}
	return EXIT_SUCCESS;
}

/* The recorder ---------------------------------------------------------- */

static int open_own_stat(void)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", getpid()); /* always fits */
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Starts the guard, which ends with the calling thread at the latest. Without a guard
   (no memory, no process) everything else works. */
static void stop_guard_start(struct stop_guard *guard)
{
	const struct ss_child_options options = { .death_signal = SIGKILL,
						  .on_this_cpu = true };
	_cleanup_close_ int stat_fd = open_own_stat();

	*guard = (struct stop_guard){};
	void *shared = mmap(NULL, sizeof(*guard->in_tick), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return;
	struct watched watched = { getpid(), stat_fd, shared };
	_cleanup_error_ struct ss_error *error =
		ss_child_start(&options, watch, &watched, &guard->child);
	if (error) {
		(void)munmap(shared, sizeof(*guard->in_tick)); /* it is mapped */
		return;
	}
	/* It is not for the sandboxed children that follow. */
	(void)madvise(shared, sizeof(*guard->in_tick), MADV_DONTFORK);
	guard->in_tick = shared;
}

static void stop_guard_end(struct stop_guard *guard)
{
	if (!guard->in_tick)
		return;
	(void)ss_child_end(&guard->child);
	(void)munmap(guard->in_tick, sizeof(*guard->in_tick)); /* it is mapped */
	*guard = (struct stop_guard){};
}

/* Whether threads may be held from now on. */
static void stop_guard_set(struct stop_guard *guard, bool in_tick)
{
	if (guard->in_tick)
		*guard->in_tick = in_tick;
}

enum { THREAD_STACK = 1 << 20, HZ = 99, DEFAULT_FRAMES = 1024, NICE_MIN = -20 };
/* How long to wait for a thread that does not stop: a share of the period, within these
   limits. */
enum { TIMEOUT_PERCENT = 60, TIMEOUT_MIN_MS = 1, TIMEOUT_MAX_MS = 20 };
enum { NS_PER_MS = 1000000, CHECK_MS = 10 };
enum { STACK_MAX = 256 << 10, DEEP_MAX = 2 << 20, TOTAL_MAX = 64 << 20 };
/* The samples are read at a random time after the tick, at most this long. If it were always
   the same, the recorder would take its CPU time only from what the CPUs do between samples. */
enum { LAG_MAX_NS = 2 * 1000 * 1000 };
/* Where functions of runtimes are copied with samples, threads that slept at the tick and run when they are
   read must be stopped: there should be few. */
enum { LAG_SHORT_NS = 50 * 1000 };
enum { JITTER_PART = 4 }; /* of the period, without samples of the CPUs */
/* Ticks that are taken late, all at once. Where threads that sleep are read as well, what they do
   now says less and less about then. */
enum { LATE_TICKS_MAX = 64, LATE_LOOKS_MAX = 8 };
enum { OTHER_FILES = 300, TABLE_MAX = 60000 };
/* Files that a tick opens for a short time, with some to spare: a thread whose files cannot be opened
   would be taken for one that has ended. */
enum { SPARE_FILES = 12 };

/*
 *	BEFORE   -> TICKING  the first tick has ended
 *	TICKING  -> RESTART  the recording thread must end, so that the kernel releases what it traces,
 *			     or for another unwinder, or before a new program runs
 *	RESTART  -> TICKING  another thread has begun
 *	any      -> DONE     the recording has been stopped, or is over
 */
enum state { BEFORE, TICKING, RESTART, DONE };

struct ss_recorder {
	struct ss_writer *writer;
	struct ss_processes processes;
	struct ss_recorder_options options;
	struct ss_recorder_summary summary;
	struct ss_samples samples;
	int stop_fd;	    /* an eventfd: readable after ss_recorder_stop() */
	sigset_t wait_mask; /* signals blocked between ticks: all that do not stop us */
	enum state state;
	uint64_t
		begin_ns; /* of the first tick's end: the duration is measured from here */
	struct ss_cpu_clock clock;	/* closed: threads are stopped instead */
	struct ss_sample_reader reader; /* of the clock, once a process needs it */
	struct ss_on_cpu on_cpu;
	struct ss_load_feed feed; /* open with the clock; with on_cpu if possible */
	struct ss_pace pace;	  /* of the ticks */
	uint64_t lost;		  /* clock: samples, as of the last tick */
	uint64_t written_ns;	  /* clock: time of the last tick */
	uint64_t progress_ns;	  /* progress */
	struct ss_tick_record unwritten; /* of lost ticks; added to the next one */
	uint64_t checked_stops; /* summary.thread_stops at the last look for tracees */
	struct ss_error *error;
	struct stop_guard guard;
	sigset_t signals; /* the mask of the caller of ss_recorder_run() */
	bool first;	  /* one tick only: the target has not been resumed yet */
};

/* Where the CPUs cannot be sampled, threads are stopped. */
static void open_clock(struct ss_recorder *recorder)
{
	const struct ss_recorder_options *o = &recorder->options;

	recorder->summary.perf_errno = ss_cpu_clock_open(
		&recorder->clock, o->period_ns, o->max_stack ? o->max_stack : STACK_MAX);
	if (recorder->summary.perf_errno == 0) {
		int errnum = ss_load_feed_open(&recorder->feed);
		recorder->summary.perf_errno = o->on_cpu ? 0 : errnum;
	}
	if (recorder->summary.perf_errno)
		ss_cpu_clock_close(&recorder->clock);
	recorder->summary.sampled_cpus = ss_cpu_clock_is_open(&recorder->clock);
	recorder->reader.clock = &recorder->clock;
}

static struct ss_error *open_writer(struct ss_recorder *recorder, int fd)
{
	const struct ss_recorder_options *o = &recorder->options;
	struct utsname system = {};

	(void)uname(&system); /* or unknown */
	recorder->begin_ns = ss_now_ns();
	const struct ss_writer_options options = {
		.monotonic_ns = recorder->begin_ns,
		.wall_ns = ss_clock_ns(CLOCK_REALTIME),
		.period_ns = o->period_ns,
		.keep_ns = o->keep_ns,
		.scope = !o->on_cpu				? SS_SCOPE_THREADS :
			 ss_cpu_clock_is_open(&recorder->clock) ? SS_SCOPE_CPUS :
								  SS_SCOPE_RUNNING,
		.machine = system.machine,
		.host = system.nodename,
		.about = o->about,
		.directory = o->directory,
		.name = o->name,
		.other = o->other_fd,
		.write_ns = o->write_ns,
	};
	return ss_writer_new(fd, &options, &recorder->writer);
}

static void set_defaults(struct ss_recorder_options *o)
{
	if (o->period_ns == 0)
		o->period_ns = SS_NS_PER_SECOND / HZ;
	if (o->max_frames == 0)
		o->max_frames = DEFAULT_FRAMES;
}

static struct ss_error *init_processes(struct ss_recorder *recorder,
				       struct ss_target *target)
{
	const struct ss_recorder_options *o = &recorder->options;
	uint64_t period_ms = o->period_ns / NS_PER_MS * TIMEOUT_PERCENT / 100;
	const struct ss_capture_options capture_options = {
		.size = sizeof(capture_options),
		.timeout_ms =
			(unsigned)SS_MAX(SS_MIN(period_ms, (uint64_t)TIMEOUT_MAX_MS),
					 (uint64_t)TIMEOUT_MIN_MS),
		.max_stack = o->max_stack ? o->max_stack : STACK_MAX,
		.max_deep = o->max_stack ? o->max_stack : DEEP_MAX,
		.max_total = TOTAL_MAX,
		.filter = o->filter,
		.filter_data = o->filter_data,
		.no_waits = true,
	};

	return ss_processes_init(
		&recorder->processes, target, recorder->writer, o, &capture_options,
		ss_load_feed_is_open(&recorder->feed) ? &recorder->feed : NULL,
		ss_cpu_clock_is_open(&recorder->clock) ? &recorder->reader : NULL);
}

/* The kernel enlarges the table of descriptors step by step, and waits for all CPUs each time if
   the process has several threads: that would be in the first tick, which opens a file for each
   thread. */
static void enlarge_file_table(const struct ss_target *target)
{
	size_t count = ss_tasks_count_now(target) + OTHER_FILES;
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC,
		       (int)SS_MIN(count, (size_t)TABLE_MAX));

	close_cleanup(&fd);
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
	enlarge_file_table(target);
	recorder->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int errnum = errno;
	struct ss_error *error =
		recorder->stop_fd < 0 ? ss_error_new_errno(errnum, "eventfd") : NULL;
	if (error) {
		close_cleanup(&fd);
	} else {
		open_clock(recorder);
		error = open_writer(recorder, fd);
	}
	if (!error)
		error = init_processes(recorder, target);
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
	ss_processes_deinit(&recorder->processes);
	ss_writer_free(recorder->writer);
	ss_vector_free(&recorder->samples.items);
	ss_sample_reader_close(&recorder->reader);
	ss_on_cpu_deinit(&recorder->on_cpu);
	ss_cpu_clock_close(&recorder->clock);
	ss_load_feed_close(&recorder->feed);
	close_cleanup(&recorder->stop_fd);
	ss_error_free(recorder->error);
	free(recorder);
}

void ss_recorder_stop(struct ss_recorder *recorder)
{
	const uint64_t one = 1;

	/* Async-signal-safe. Fails only if the counter is at its limit. */
	(void)!write(recorder->stop_fd, &one, sizeof(one));
}

uint64_t ss_recorder_read_ns(const struct ss_recorder *recorder)
{
	uint64_t since = recorder->processes.busy_since;
	uint64_t now = ss_now_ns();

	return since && now > since ? now - since : 0;
}

const struct ss_recorder_summary *ss_recorder_summary(const struct ss_recorder *recorder)
{
	return &recorder->summary;
}

/*
 * False: ss_recorder_stop() was called. Only here, where no thread of the target is held,
 * can a signal of the terminal (Ctrl-Z) stop this process: it would stop all its threads,
 * whatever they block, and what the recording thread holds would stand still until fg.
 */
static bool wait_until(struct ss_recorder *recorder, uint64_t time_ns)
{
	struct pollfd pollfd = { .fd = recorder->stop_fd, .events = POLLIN };

	for (;;) {
		uint64_t now = ss_now_ns();
		uint64_t left = time_ns > now ? time_ns - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(left / SS_NS_PER_SECOND),
				       .tv_nsec = (long)(left % SS_NS_PER_SECOND) };
		stop_guard_set(&recorder->guard, false);
		int n = ppoll(&pollfd, 1, &ts, &recorder->wait_mask);
		stop_guard_set(&recorder->guard, true);
		if (n > 0)
			return false;
		if (left == 0)
			return true;
	}
}

static void sum_up_losses(struct ss_recorder *recorder)
{
	const struct ss_unwinder_losses *losses = &recorder->processes.unwinder.losses;

	recorder->summary.lost = losses->ticks;
	recorder->summary.loss = losses->text.bytes;
	recorder->summary.partial |=
		ss_worker_refused(recorder->processes.unwinder.worker) != 0;
}

static void sum_up(struct ss_recorder *recorder, const struct ss_tick_record *tick)
{
	struct ss_recorder_summary *s = &recorder->summary;

	s->samples = ss_writer_samples(recorder->writer);
	s->ticks++;
	s->missed += tick->missed;
	ss_processes_count_stops(&recorder->processes, &s->thread_stops, &s->not_stopped);
	s->copy_errno = recorder->reader.errnum;
	s->stopped_ns += tick->stopped_ns;
	s->stopped_max_ns = SS_MAX(s->stopped_max_ns, tick->stopped_max_ns);
	s->duration_ns =
		tick->monotonic_ns - SS_MIN(tick->monotonic_ns, recorder->begin_ns);
	s->size = recorder->writer->ring.size;
	s->undropped = recorder->writer->ring.undropped;
	s->memory = SS_MAX(s->memory, (uint64_t)ss_writer_memory(recorder->writer));
	s->threads = recorder->writer->definer.defined_threads;
	s->stacks = recorder->writer->definer.defined_stacks;
}

static void report_progress(struct ss_recorder *recorder, uint64_t now)
{
	if (!recorder->options.progress || now < recorder->progress_ns + SS_NS_PER_SECOND)
		return;
	recorder->progress_ns = now;
	recorder->options.progress(recorder->options.progress_data, &recorder->summary);
}

/* Samples of the CPUs ---------------------------------------------------- */

/* Of the ticks since the last call, the last ones whose samples were lost: there was no room. */
static uint64_t count_lost(struct ss_recorder *recorder, uint64_t count)
{
	uint64_t cpus = recorder->clock.rings.count;
	uint64_t lost = (recorder->clock.lost - recorder->lost + cpus - 1) / cpus;

	recorder->lost = recorder->clock.lost;
	return SS_MIN(lost, count);
}

/* Likewise, the first ones that are too long ago. */
static uint64_t count_late(const struct ss_recorder *recorder, uint64_t count,
			   uint64_t lost)
{
	return recorder->options.on_cpu ?
		       count - lost - SS_MIN(count - lost, (uint64_t)LATE_TICKS_MAX) :
		       SS_MIN(count - SS_MIN(count, (uint64_t)LATE_LOOKS_MAX),
			      count - lost);
}

/* Takes a tick of all processes, with the samples of the CPUs from begin on, and writes it. */
static struct ss_error *write_tick(struct ss_recorder *recorder,
				   struct ss_tick_record *tick, size_t begin, size_t end)
{
	const struct ss_on_cpu_sample *samples = recorder->on_cpu.samples.items;
	uint64_t time_ns = end > begin ? samples[begin].clock.time_ns :
					 tick->monotonic_ns;

	time_ns = SS_MAX(time_ns, recorder->written_ns);
	tick->wall_ns += time_ns - tick->monotonic_ns;
	tick->monotonic_ns = recorder->written_ns = time_ns;
	recorder->samples.items.count = 0;
	tick->stopped_ns = recorder->unwritten.stopped_ns;
	tick->stopped_max_ns = recorder->unwritten.stopped_max_ns;
	tick->missed += recorder->unwritten.missed;
	recorder->unwritten = (struct ss_tick_record){};
	struct ss_error *error = ss_processes_tick(&recorder->processes,
						   tick->monotonic_ns,
						   end > begin ? &samples[begin] : NULL,
						   end - begin, &recorder->samples, tick);
	if (!error && recorder->processes.lost && recorder->samples.items.count == 0) {
		recorder->unwritten = *tick;
		recorder->unwritten.missed++;
		return NULL;
	}
	if (!error)
		error = ss_writer_tick(recorder->writer, tick,
				       recorder->samples.items.items,
				       recorder->samples.items.count);
	if (!error)
		sum_up(recorder, tick);
	return error;
}

/* A tick without samples of the CPUs. */
static struct ss_error *take_tick(struct ss_recorder *recorder)
{
	struct ss_tick_record tick = { .monotonic_ns = ss_now_ns(),
				       .wall_ns = ss_clock_ns(CLOCK_REALTIME) };
	struct ss_error *error = NULL;
	uint64_t at_ns;

	const uint64_t count =
		ss_pace_advance(&recorder->pace, tick.monotonic_ns, &at_ns);
	tick.missed = count > 0 ? count - 1 : 0;
	if (ss_writer_wants_roll(recorder->writer, tick.monotonic_ns))
		error = ss_processes_roll(&recorder->processes, tick.monotonic_ns,
					  tick.wall_ns);
	return error ? error : write_tick(recorder, &tick, 0, 0);
}

/* Writes the samples before a time: a tick, also if there are none. With on_cpu, all of them,
   perhaps in several ticks. */
static struct ss_error *write_until(struct ss_recorder *recorder, size_t *next,
				    uint64_t until_ns, struct ss_tick_record *tick)
{
	struct ss_error *error = NULL;
	bool more = true;

	if (!recorder->options.on_cpu) {
		size_t first = *next;
		*next = ss_on_cpu_find(&recorder->on_cpu, until_ns);
		return write_tick(recorder, tick,
				  ss_on_cpu_tick_begin(&recorder->on_cpu, first, *next),
				  *next);
	}
	while (more && !error) {
		size_t begin = *next;
		*next = ss_on_cpu_tick_end(&recorder->on_cpu, begin, until_ns);
		error = write_tick(recorder, tick, begin, *next);
		tick->missed = 0;
		more = *next > begin && *next < recorder->on_cpu.samples.count &&
		       recorder->on_cpu.samples.items[*next].clock.time_ns < until_ns;
	}
	return error;
}

/* Writes what the CPUs ran since the last call: one tick, or several if this one is late. */
static struct ss_error *take_clock_tick(struct ss_recorder *recorder)
{
	const uint64_t now_ns = ss_now_ns();
	const uint64_t wall_ns = ss_clock_ns(CLOCK_REALTIME);
	struct ss_error *error = NULL;
	uint64_t at_ns = 0;
	size_t next = 0;

	if (!ss_on_cpu_collect(&recorder->on_cpu, &recorder->clock, &recorder->reader,
			       &recorder->processes.arena, ss_processes_have,
			       &recorder->processes))
		return ss_error_no_memory();
	uint64_t count = ss_pace_advance(&recorder->pace, now_ns, &at_ns);
	uint64_t interval_ns = recorder->pace.interval_ns;
	if (ss_pace_renew(&recorder->pace, now_ns)) {
		ss_cpu_clock_set(&recorder->clock, recorder->pace.interval_ns);
		ss_pace_set(&recorder->pace, ss_now_ns());
	}
	uint64_t lost = count_lost(recorder, count);
	uint64_t late = count_late(recorder, count, lost);
	if (ss_writer_wants_roll(recorder->writer, now_ns))
		error = ss_processes_roll(&recorder->processes, now_ns, wall_ns);
	recorder->unwritten.missed += late;
	at_ns += late * interval_ns;
	if (late &&
	    !recorder->options.on_cpu) /* no samples of the ticks that are missed */
		next = ss_on_cpu_find(&recorder->on_cpu, at_ns - interval_ns / 2);
	for (uint64_t i = late; i < count - lost && !error; i++, at_ns += interval_ns) {
		struct ss_tick_record tick = { .monotonic_ns = SS_MIN(at_ns, now_ns) };
		if (i > late && recorder->processes.late) {
			/* this thread must end first */
			recorder->unwritten.missed += count - lost - i;
			break;
		}
		tick.wall_ns = wall_ns - (now_ns - tick.monotonic_ns);
		error = write_until(recorder, &next,
				    i + 1 < count - lost ? at_ns + interval_ns / 2 :
							   UINT64_MAX,
				    &tick);
	}
	recorder->unwritten.missed += lost;
	return error;
}

/* The first tick reads the memory map and all threads, which takes longer than others, and has no
   samples: they would be later than their threads' CPU time is first read. The others begin after
   it. */
static struct ss_error *take_first_tick(struct ss_recorder *recorder)
{
	const uint64_t period_ns = recorder->options.period_ns;
	struct ss_tick_record tick = { .monotonic_ns = ss_now_ns(),
				       .wall_ns = ss_clock_ns(CLOCK_REALTIME) };

	struct ss_error *error = write_tick(recorder, &tick, 0, 0);

	if (ss_cpu_clock_is_open(&recorder->clock))
		ss_cpu_clock_start(&recorder->clock);
	recorder->state = TICKING;
	recorder->begin_ns = ss_now_ns();
	ss_pace_init(&recorder->pace, period_ns, recorder->begin_ns);
	return error;
}

static void finish(struct ss_recorder *recorder, enum ss_recording_end end)
{
	recorder->summary.end = end;
	recorder->state = DONE;
}

static bool is_over(struct ss_recorder *recorder)
{
	uint64_t duration = recorder->options.duration_ns;

	if (recorder->processes.items.count == 0)
		finish(recorder, SS_RECORDING_TARGET_END);
	else if (duration && recorder->state != BEFORE &&
		 ss_now_ns() >= recorder->begin_ns + duration)
		finish(recorder, SS_RECORDING_DURATION);
	return recorder->state == DONE;
}

/*
 * Waits for a tick. False: ss_recorder_stop() was called. RESTART follows if this thread
 * traces a thread by now: one that was created while its creator was attached. Such a thread is
 * not kept until a tick that is far off.
 */
static bool wait_for_tick(struct ss_recorder *recorder, uint64_t time_ns)
{
	uint64_t check_ns = ss_now_ns() + (uint64_t)CHECK_MS * NS_PER_MS;
	bool stopped = recorder->summary.thread_stops != recorder->checked_stops;

	recorder->checked_stops = recorder->summary.thread_stops;
	if (stopped && check_ns < time_ns - (uint64_t)CHECK_MS * NS_PER_MS) {
		if (!wait_until(recorder, check_ns))
			return false;
		if (ss_stop_has_tracee())
			recorder->state = RESTART;
	}
	if (recorder->state != RESTART && !wait_until(recorder, time_ns))
		return false;
	if (stopped && ss_stop_has_tracee())
		recorder->state = RESTART;
	return true;
}

/* When the next tick is taken, or its samples are read: not always at the same time after it is due,
   so that ticks do not synchronize with periodic work of the target. */
static uint64_t next_tick(struct ss_recorder *recorder, bool sampled)
{
	const uint64_t lag_ns = !sampled ? recorder->options.period_ns / JITTER_PART :
				recorder->reader.is_open ? (uint64_t)LAG_SHORT_NS :
							   (uint64_t)LAG_MAX_NS;

	return recorder->state == BEFORE ? 0 :
					   ss_pace_reading_ns(&recorder->pace, lag_ns);
}

/* Takes ticks until the recording ends or this thread must end: so that the kernel
   releases threads that did not stop in time or were attached by their creation, or so
   that the caller's thread starts another unwinder. */
static void *record_thread(void *data)
{
	struct ss_recorder *recorder = data;

	if (recorder->state == RESTART)
		recorder->state = TICKING;
	while (recorder->state <= TICKING && !recorder->error) {
		const bool sampled = ss_cpu_clock_is_open(&recorder->clock);
		uint64_t at = next_tick(recorder, sampled);
		if (recorder->options.duration_ns && recorder->state != BEFORE)
			at = SS_MIN(at,
				    recorder->begin_ns + recorder->options.duration_ns);
		if (!wait_for_tick(recorder, at)) {
			finish(recorder, SS_RECORDING_STOPPED);
			break;
		}
		if (is_over(recorder) || recorder->state == RESTART)
			break;
		recorder->error = recorder->state == BEFORE ? take_first_tick(recorder) :
				  sampled		    ? take_clock_tick(recorder) :
							      take_tick(recorder);
		if (recorder->first || recorder->processes.late ||
		    ss_unwinder_is_down(&recorder->processes.unwinder))
			recorder->state = RESTART;
		if (!recorder->error && !is_over(recorder))
			report_progress(recorder, ss_now_ns());
	}
	return NULL;
}

/* The caller's thread receives signals, but not the new one. */
static void restore_signals(void *data)
{
	const struct ss_recorder *recorder = data;

	(void)pthread_sigmask(SIG_SETMASK, &recorder->signals, NULL);
}

static struct ss_error *run_thread(struct ss_recorder *recorder)
{
	const struct ss_own_thread thread = { .routine = record_thread,
					      .data = recorder,
					      .stack_size = THREAD_STACK,
					      .started = restore_signals };
	sigset_t all;

	/* These cannot fail. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &recorder->signals);
	int errnum = ss_own_thread_run(&thread);
	/* The end of the thread has released every thread of the target. */
	stop_guard_set(&recorder->guard, false);
	return errnum ? ss_error_new_errno(errnum, "starting the recording thread") :
			take_ptr(recorder->error);
}

/* Samples a spawned program once before it is resumed. */
static struct ss_error *run_first(struct ss_recorder *recorder)
{
	struct ss_target *target = recorder->processes.items.items[0]->target;

	if (!target->stopped_at_exec)
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
		.duration_ns = ss_now_ns() - recorder->begin_ns,
		.reason = recorder->summary.end,
	};
	struct ss_error *error = ss_processes_finish(&recorder->processes);

	sum_up_losses(recorder);
	recorder->summary.left_out = recorder->processes.left_out;
	summary.lost = recorder->summary.lost;
	summary.loss = recorder->summary.loss;
	if (!error)
		error = ss_writer_finish(recorder->writer, &summary);

	recorder->summary.duration_ns = summary.duration_ns;
	recorder->summary.size = recorder->writer->ring.size;
	return error;
}

/*
 * The thread waits for SIGCHLD, which reports stops. Signals that stop this process are
 * held back until the thread waits for the next tick; the unwinder, which inherits the
 * mask, is in the same process group and never stops.
 */
static void block_signals(struct ss_recorder *recorder, sigset_t *before)
{
	static const int stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };
	sigset_t set;

	/* None of these calls can fail. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < SS_ARRAY_SIZE(stops); i++)
		(void)sigaddset(&set, stops[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, before);
	(void)sigfillset(&recorder->wait_mask);
	for (size_t i = 0; i < SS_ARRAY_SIZE(stops); i++) {
		if (!sigismember(before, stops[i]))
			(void)sigdelset(&recorder->wait_mask, stops[i]);
	}
}

/* Raises the priority of this thread. It needs little CPU time but must not wait: with
   more runnable threads than CPUs it would miss many ticks. Refused without
   CAP_SYS_NICE. */
static void set_nice(int nice)
{
	(void)setpriority(PRIO_PROCESS, 0, nice);
}

/* Whether there are descriptors left for the ticks. */
static struct ss_error *check_files(const struct ss_recorder *recorder)
{
	int files[SPARE_FILES];
	int count = 0;
	int errnum = 0;

	while (count < SPARE_FILES && errnum == 0) {
		files[count] = fcntl(recorder->stop_fd, F_DUPFD_CLOEXEC, 0);
		if (files[count] < 0)
			errnum = errno;
		else
			count++;
	}
	for (int i = 0; i < count; i++)
		close_cleanup(&files[i]);
	if (errnum == 0)
		return NULL;
	return ss_error_new(
		SS_ERROR_SYSTEM,
		"the limit of open files is too low for a recording, by %d (%s); "
		"raise it, for instance with ulimit -n 1024",
		SPARE_FILES - count, strerror(errnum));
}

struct ss_error *ss_recorder_run(struct ss_recorder *recorder)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	struct ss_error *error = NULL;
	sigset_t before;

	block_signals(recorder, &before);
	set_nice(NICE_MIN); /* inherited by the threads and the unwinder */
	stop_guard_start(&recorder->guard);
	error = ss_unwinder_start(&recorder->processes.unwinder);
	if (!error)
		error = check_files(recorder);
	if (!error)
		error = run_first(recorder);
	while (!error && recorder->state != DONE) {
		/* A failure to start counts as a failure of the unwinder. */
		ss_error_free(ss_unwinder_start(&recorder->processes.unwinder));
		error = run_thread(recorder);
	}
	stop_guard_end(&recorder->guard);
	ss_cpu_clock_close(&recorder->clock);
	set_nice(nice);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		recorder->summary.end = SS_RECORDING_LOST;
	/* Writes what was recorded in any case; the first error counts. */
	_cleanup_error_ struct ss_error *last = write_end(recorder);
	return error ? error : take_ptr(last);
}
