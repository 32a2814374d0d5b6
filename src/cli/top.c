/*
 * stacksnap top [OPTIONS] PID: functions, threads and waits of a running process, live.
 *
 * A recorder, in a process of its own, samples into two files in memory, which hold the last
 * seconds. Each half second a sandboxed child makes a screen of them. What threads wait for is
 * read by another process, without a stop, as often as it may cost. The main process has the
 * terminal and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/failure.h"
#include "cli/targets.h"
#include "cli/top_jobs.h"
#include "cli/process.h"

enum {
	RATE_MAX = 1000,
	SAMPLES_MAX =
		10000, /* a second, of all threads together: 1 % of a CPU if they sleep */
	WINDOW_S = 4,
	KEEP_S = 16, /* a quarter of it is in each file, twice the window in both */
	FIRST_MS = 300,
	REFRESH_MS = 500,
	SCREEN_COST = 50, /* a screen costs at most a 50th of the time, */
	WAITS_COST = 100, /* reading waits a 100th */
	COST_MS = 3000,	  /* what the recorder costs is measured that often, */
	WARM_MS = 1000,	  /* after it has read each thread once */
	CHECK_MS = 50,
	ONCE_MS = 2000,
	ONCE_END_MS = 20000,
	MESSAGE_S = 6,
	WATCH_MS = 3000, /* the watchdog adds what a snapshot may take */
	DEFAULT_ROWS = 20,
	ROWS_MAX = 100000,
	FILTER_SIZE = 64,
	WAITS_MAX = 4 << 20,
	MESSAGES_MAX = 64 << 10,
};

struct top {
	struct ss_target_options process;
	struct ss_common_options common; /* color */
	pid_t pid;
	uint64_t rate;		 /* given; 0: chosen */
	struct ss_top_rate cost; /* limits a chosen one */
	uint64_t cost_wall_ns;	 /* of the last measurement, or of the start, */
	uint64_t cost_cpu_ns;	 /* and the recorder's CPU time by then */
	bool warm;		 /* what follows is the cost of samples */
	bool once;
	char filter[FILTER_SIZE];
	struct ss_terminal terminal;
	sigset_t mask; /* before signals were blocked */
	int signals;   /* a signalfd */
	struct ss_top_guard guard;
	struct ss_top_job guarding; /* while the screen is shown */
	struct ss_top_recording recording;
	struct ss_top_job recorder;
	struct ss_top_waits find_waits;
	struct ss_top_job waits;
	struct ss_top_snapshot snapshot;
	struct ss_top_job snapper;
	struct ss_top_analysis analysis;
	char *path;		 /* of the snapshot */
	char *screen;		 /* NULL: none yet */
	struct ss_buffer waited; /* what find_waits has written, ends with a NUL */
	uint64_t waited_ns;	 /* when */
	uint64_t next_screen_ns;
	uint64_t next_waits_ns;
	uint64_t message_ns; /* when it was made */
	char message[160];
	bool typing; /* a filter */
	bool changed;
	bool done;
};

/* Without memory for a guard there is none; nor can the recorder start then. */
static void enter_screen(struct top *top)
{
	sigset_t all;

	(void)sigfillset(&all); /* cannot fail */
	if (top->guard.fd < 0)
		top->guard.fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	top->guard.parent = getpid();
	top->guard.terminal = top->terminal;
	ss_error_free(ss_top_job_start(&top->guarding, &all, ss_top_guard_terminal,
				       &top->guard));
	ss_terminal_enter(&top->terminal);
}

/* Does nothing if it was not entered. */
static void leave_screen(struct top *top)
{
	ss_terminal_leave(&top->terminal);
	ss_top_job_end(&top->guarding);
}

static void top_deinit(struct top *top)
{
	leave_screen(top);
	ss_top_job_end(&top->snapper);
	ss_top_job_end(&top->waits);
	ss_top_job_end(&top->recorder);
	ss_top_analysis_deinit(&top->analysis);
	for (size_t i = 0; i < SS_TOP_FILES; i++) {
		close_cleanup(&top->recording.files[i]);
		close_cleanup(&top->analysis.files[i]);
	}
	close_cleanup(&top->signals);
	close_cleanup(&top->guard.fd);
	ss_buffer_deinit(&top->waited);
	ss_target_options_deinit(&top->process);
	free(top->screen);
	free(top->path);
}

static void take_sort(void *sort, const char *name)
{
	size_t i = 0;

	while (ss_top_sort_name(i) && strcmp(ss_top_sort_name(i), name) != 0)
		i++;
	if (!ss_top_sort_name(i))
		ss_usage_fail("--sort: '%s' is not own, total, state or name", name);
	*(enum ss_top_sort *)sort = (enum ss_top_sort)i;
}

static void take_filter(void *input, const char *arg)
{
	struct top *top = input;

	if (strlen(arg) >= sizeof(top->filter))
		ss_usage_fail("--filter: at most %d bytes", FILTER_SIZE - 1);
	(void)snprintf(top->filter, sizeof(top->filter), "%s", arg);
}

static void take_color(void *color, const char *arg)
{
	*(enum ss_color *)color = ss_options_parse_color(arg);
}

static const struct ss_option table[] = {
	{ "once", 0, NULL, "Observe for two seconds, print one screen as text, and exit",
	  0, SS_SETS_FLAG(struct top, once) },
	{ "sort", 0, "KEY",
	  "Sort by own, total, state or name (default: own); keys 1 to 4", 0,
	  .take = take_sort, .offset = offsetof(struct top, analysis.view.sort) },
	{ "idle", 'i', NULL, "Also show sleeping threads, and count their samples; key i",
	  0, SS_SETS_FLAG(struct top, analysis.view.idle) },
	{ "filter", 0, "TEXT",
	  "Show only functions, threads and waits that contain TEXT, ignoring case; key "
	  "/",
	  0, .take = take_filter },
	{ "rate", 'r', "HZ",
	  "Samples per second (default: 99, less for more than 100 threads)", 0,
	  SS_SETS_NUMBER(struct top, rate, 1, RATE_MAX) },
	{ "rows", 0, "N", "With --once: rows of each table (default: 20)", 0,
	  SS_SETS_NUMBER(struct top, analysis.view.rows, 1, ROWS_MAX) },
	{ "color", 0, "WHEN", "auto, always or never (default: auto)", 0,
	  .take = take_color, .offset = offsetof(struct top, common.color) },
	{},
};

static void check(void *input)
{
	const struct top *top = input;

	ss_target_options_require(&top->process);
}

static const struct ss_option_child children[] = {
	{ &ss_target_group, offsetof(struct top, process) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "PID|NAME",
	.doc = "Show the functions, threads and waits of a running process, twice a "
	       "second.\vKeys: 1 to 4 sort (own, total, state, name), f functions, t "
	       "threads, w waits, a all, i idle threads, / filter, arrows scroll, space "
	       "writes a full snapshot to a file, ? explains keys, q quits.\n\nExit "
	       "status: 0 ended by "
	       "the user or by the end of the process, 2 nothing could be shown, 64 "
	       "wrong usage.",
	.end = check,
};

/* Starting ----------------------------------------------------------------- */

/* Signals are read between two steps, so that the terminal is restored after each. */
static void block_signals(struct top *top)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
	size_t count = SS_ARRAY_SIZE(numbers) - top->once; /* no screen to restore */
	sigset_t set;

	ss_signals_block(numbers, count, &set, &top->mask);
	(void)sigaddset(&set, SIGWINCH); /* cannot fail: a valid signal */
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	top->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static struct ss_error *open_files(struct top *top)
{
	for (size_t i = 0; i < SS_TOP_FILES; i++) {
		int fd = ss_io_create_unnamed();
		int errnum = errno;
		if (fd < 0)
			return ss_error_new_errno(errnum, "creating a file in memory");
		top->recording.files[i] = fd;
		top->analysis.files[i] = ss_io_reopen(fd);
		errnum = errno;
		if (top->analysis.files[i] < 0)
			return ss_error_new_errno(errnum, "opening a file in memory");
	}
	return NULL;
}

/* With many threads each sample costs more. */
static uint64_t choose_rate(const struct top *top)
{
	uint64_t threads = SS_MAX(top->analysis.threads, UINT64_C(1));
	uint64_t rate = SS_MAX(SAMPLES_MAX / threads, (uint64_t)SS_TOP_RATE_MIN);

	if (top->rate)
		return top->rate;
	if (top->cost.limit)
		rate = SS_MIN(rate, top->cost.limit);
	return SS_MIN(rate, (uint64_t)SS_TOP_RATE);
}

static struct ss_error *start_recorder(struct top *top, uint64_t rate)
{
	for (size_t i = 0; i < SS_TOP_FILES; i++) {
		/* These cannot fail: in memory. The other descriptors are not in use. */
		(void)!ftruncate(top->recording.files[i], 0);
		(void)lseek(top->recording.files[i], 0, SEEK_SET);
	}
	top->cost_wall_ns = ss_now_ns();
	top->cost_cpu_ns = 0;
	top->warm = false;
	top->recording.pid = top->pid;
	top->recording.period_ns = SS_NS_PER_SECOND / rate;
	top->recording.keep_ns = (uint64_t)KEEP_S * SS_NS_PER_SECOND;
	return ss_top_job_start(&top->recorder, &top->mask, ss_top_record,
				&top->recording);
}

/* A ss_thread_filter: one thread must be captured. */
static bool count_thread(void *data, pid_t tid, const char *name, char state)
{
	uint64_t *count = data;

	(void)tid;
	(void)name;
	(void)state;
	return ++*count == 1;
}

/* Whether the process may be observed at all, before the screen changes; and how many threads
   it has. */
static struct ss_error *check_target(struct top *top)
{
	const struct ss_capture_options options = {
		.size = sizeof(options),
		.mode = SS_MODE_NO_STOP,
		.no_waits = true,
		.filter = count_thread,
		.filter_data = &top->analysis.threads,
	};
	struct ss_target *target = NULL;
	struct ss_capture *capture = NULL;
	struct ss_error *error = ss_target_open(top->pid, &target);

	if (!error) {
		ss_top_analysis_init(&top->analysis, target);
		ss_watchdog_begin(top->pid, 0);
		error = ss_capture_take(target, &options, &capture);
		ss_watchdog_end();
	}
	ss_capture_free(capture);
	ss_target_close(target);
	if (ss_error_is_refusal(error))
		(void)ss_top_find_waits(
			&(struct ss_top_waits){ top->pid, .idle = true, .list = true },
			-1);
	return error;
}

static struct ss_error *start(struct top *top)
{
	struct ss_error *error = check_target(top);

	if (!error && !top->once)
		error = ss_terminal_init(&top->terminal);
	if (!error)
		error = open_files(top);
	block_signals(top);
	if (!error)
		error = start_recorder(top, choose_rate(top));
	top->next_screen_ns = ss_now_ns() + FIRST_MS * SS_NS_PER_MS;
	return error;
}

/* Many threads that run cost more than those that sleep, the more so on a machine without idle
   CPUs, where a thread stops late. Returns whether the rate must be lower. */
static bool is_dear(struct top *top)
{
	uint64_t wall_ns = ss_now_ns() - top->cost_wall_ns;
	uint64_t now = SS_NS_PER_SECOND / top->recording.period_ns;
	struct timespec time = {};
	clockid_t clock;

	if (top->rate || !top->recorder.child.pid ||
	    wall_ns < (top->warm ? COST_MS : WARM_MS) * SS_NS_PER_MS ||
	    clock_getcpuclockid(top->recorder.child.pid, &clock) != 0 ||
	    clock_gettime(clock, &time) != 0) /* it has just ended */
		return false;
	uint64_t cpu_ns = ss_timespec_ns(&time);
	uint64_t used_ns = cpu_ns - SS_MIN(top->cost_cpu_ns, cpu_ns);
	bool warm = top->warm;

	top->cost_wall_ns += wall_ns;
	top->cost_cpu_ns = cpu_ns;
	top->warm = true;
	return warm && ss_top_rate_limit(&top->cost, now, used_ns, wall_ns);
}

/* Starts the recorder if it was ended, if the number of threads has changed, or if it costs too
   much. */
static struct ss_error *adapt_rate(struct top *top)
{
	bool dear = is_dear(top);
	uint64_t rate = choose_rate(top);
	uint64_t now = SS_NS_PER_SECOND / top->recording.period_ns;

	if (top->recorder.child.pid && !dear && rate * 2 > now && rate < now * 2)
		return NULL;
	ss_top_job_end(&top->recorder);
	return start_recorder(top, rate);
}

/* One screen --------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void set_message(struct top *top,
							      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(top->message, sizeof(top->message), format, arguments);
	va_end(arguments);
	top->message[strcspn(top->message, "\n")] = '\0';
	top->message_ns = ss_now_ns();
	top->changed = true;
}

/* What a job has written to one of its files, as a string. */
static bool read_job(int fd, size_t max, struct ss_buffer *ret)
{
	ss_buffer_truncate(ret, 0);
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return false;
	int error = ss_io_read_all(fd, max, ret);
	ss_buffer_add_byte(ret, '\0');
	return !error && !ret->failed;
}

static void poll_waits(struct top *top)
{
	uint64_t now = ss_now_ns();

	if (ss_top_job_poll(&top->waits)) {
		if (ss_child_exit_status(&top->waits.child) == SS_STATUS_WHOLE &&
		    read_job(top->waits.out, WAITS_MAX, &top->waited))
			top->waited_ns = top->waits.begin_ns;
		top->next_waits_ns = now + SS_MAX(REFRESH_MS * SS_NS_PER_MS,
						  top->waits.child.cpu_ns * WAITS_COST);
	}
	if (top->waits.child.pid || now < top->next_waits_ns)
		return;
	top->find_waits =
		(struct ss_top_waits){ .pid = top->pid, .idle = top->analysis.view.idle };
	top->next_waits_ns = now + REFRESH_MS * SS_NS_PER_MS;
	/* Without memory it is tried again. */
	ss_error_free(ss_top_job_start(&top->waits, &top->mask, ss_top_find_waits,
				       &top->find_waits));
}

static struct ss_error *make_screen(struct top *top)
{
	struct ss_top_view *view = &top->analysis.view;
	uint64_t before_ns = ss_cpu_time_ns();
	char *screen = NULL;

	view->lines = top->once ? 0 : SS_MAX(top->terminal.lines, 2U) - 1;
	view->columns = top->once ? 0 : top->terminal.columns;
	view->filter = top->filter;
	view->waits = top->waited_ns ? (const char *)top->waited.bytes : NULL;
	view->waits_age_ns = top->waited_ns ? ss_now_ns() - top->waited_ns : 0;
	/* It opens files of modules, and their file system may not respond. If this process
	   is ended, the guard restores the terminal. */
	ss_watchdog_begin(top->pid, WATCH_MS);
	struct ss_error *error = ss_top_analysis_run(&top->analysis, &screen);
	ss_watchdog_end();
	if (screen) {
		free(top->screen);
		top->screen = screen;
	}
	top->next_screen_ns =
		ss_now_ns() + SS_MAX(REFRESH_MS * SS_NS_PER_MS,
				     (ss_cpu_time_ns() - before_ns) * SCREEN_COST);
	return error;
}

static void draw(struct top *top)
{
	char status[256];

	if (top->message_ns &&
	    ss_now_ns() - top->message_ns > MESSAGE_S * SS_NS_PER_SECOND)
		top->message_ns = 0;
	if (top->typing)
		(void)snprintf(status, sizeof(status), "filter: %s_", top->filter);
	else if (top->message_ns)
		(void)snprintf(status, sizeof(status), "%s", top->message);
	else
		(void)snprintf(
			status, sizeof(status),
			"q quit  1-4 sort: %s  f t w a  i idle%s  / filter%s%.40s  space "
			"snapshot",
			ss_top_sort_name(top->analysis.view.sort),
			top->analysis.view.idle ? ": on" : "", *top->filter ? ": " : "",
			top->filter);
	ss_terminal_draw(&top->terminal, top->screen ? top->screen : "sampling...",
			 status, top->analysis.view.color);
}

/* Keys and signals --------------------------------------------------------- */

static void take_snapshot(struct top *top)
{
	if (top->snapper.child.pid) {
		set_message(top, "a snapshot is being taken");
		return;
	}
	/* A thread can have one tracer only. Samples begin anew after the snapshot. */
	ss_top_job_end(&top->recorder);
	free(top->path);
	top->path = ss_output_expand("stacksnap-%p-%t.txt", top->pid);
	if (!top->path) {
		set_message(top, "out of memory");
		return;
	}
	top->snapshot = (struct ss_top_snapshot){ .pid = top->pid, .path = top->path };
	_cleanup_error_ struct ss_error *error = ss_top_job_start(
		&top->snapper, &top->mask, ss_top_take_snapshot, &top->snapshot);
	set_message(top, "%s", error ? ss_error_message(error) : "taking a snapshot...");
}

static void poll_snapshot(struct top *top)
{
	_cleanup_buffer_ struct ss_buffer messages = {};

	if (!ss_top_job_poll(&top->snapper))
		return;
	const int status = ss_child_exit_status(&top->snapper.child);
	if (status == SS_STATUS_WHOLE || status == SS_STATUS_PARTIAL)
		set_message(top, "snapshot written to %s", top->path);
	else if (read_job(top->snapper.messages, MESSAGES_MAX, &messages))
		set_message(top, "%s", (const char *)messages.bytes);
}

static void type(struct top *top, int key)
{
	size_t size = strlen(top->filter);

	if (key == '\r' || key == '\n' || key == '\033')
		top->typing = false;
	if (key == '\033')
		top->filter[0] = '\0';
	else if ((key == 0x7f || key == '\b') && size > 0)
		top->filter[size - 1] = '\0';
	else if (key >= ' ' && key < 0x7f && size + 1 < sizeof(top->filter)) {
		top->filter[size] = (char)key;
		top->filter[size + 1] = '\0';
	}
	top->analysis.view.skip = 0;
}

static void scroll(struct ss_top_view *view, int key)
{
	size_t page = SS_MAX(view->lines / 2, 1U);
	size_t step = key == SS_KEY_UP || key == SS_KEY_DOWN ? 1 : page;

	if (key == SS_KEY_DOWN || key == SS_KEY_PAGE_DOWN)
		view->skip = SS_MIN(view->skip + step, (size_t)ROWS_MAX);
	else
		view->skip = key == SS_KEY_HOME ? 0 :
						  view->skip - SS_MIN(step, view->skip);
}

static void press(struct top *top, int key)
{
	struct ss_top_view *view = &top->analysis.view;
	static const char parts[] = "aftw"; /* in the order of enum ss_top_part */
	const char *part = key > 0 && key < 0x7f ? strchr(parts, key) : NULL;

	top->changed = true;
	if (key == SS_KEY_END_OF_INPUT) {
		top->done = true;
	} else if (top->typing) {
		type(top, key);
	} else if (key >= '1' && key <= '4') {
		view->sort = (enum ss_top_sort)(key - '1');
	} else if (part) {
		view->part = (enum ss_top_part)(part - parts);
		view->skip = 0;
	} else if (key == 'i') {
		view->idle = !view->idle;
		top->next_waits_ns = 0;
	} else if (key == '/') {
		top->typing = true;
	} else if (key == ' ') {
		take_snapshot(top);
	} else if (key == '?') {
		set_message(top, "f functions, t threads, w waits, a all, i idle "
				 "threads, arrows scroll");
	} else if (key == 'q' || key == 'Q') {
		top->done = true;
	} else if (key >= SS_KEY_UP && key <= SS_KEY_HOME) {
		scroll(view, key);
	}
}

/* Ctrl-Z: the shell gets the terminal as it was. Samples begin anew afterwards. */
static void suspend(struct top *top)
{
	leave_screen(top);
	ss_top_job_end(&top->recorder);
	(void)raise(SIGSTOP); /* cannot fail */
	enter_screen(top);
}

static void handle_signals(struct top *top)
{
	struct signalfd_siginfo info;

	while (read(top->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		top->changed = true;
		if (info.ssi_signo == SIGWINCH)
			ss_terminal_measure(&top->terminal);
		else if (info.ssi_signo == SIGTSTP && !top->once)
			suspend(top);
		else
			top->done = true;
	}
}

/* Waits for keys and signals until the next screen is due. */
static void wait_for_input(struct top *top)
{
	struct pollfd fds[] = { { .fd = top->signals, .events = POLLIN },
				{ .fd = STDIN_FILENO, .events = POLLIN } };
	uint64_t now = ss_now_ns();
	uint64_t left_ms = top->next_screen_ns > now ?
				   (top->next_screen_ns - now) / SS_NS_PER_MS + 1 :
				   0;
	bool job = top->snapper.child.pid != 0;

	if (job)
		left_ms = SS_MIN(left_ms, (uint64_t)CHECK_MS);
	if (poll(fds, top->once ? 1 : 2, (int)SS_MIN(left_ms, (uint64_t)REFRESH_MS)) <= 0)
		return;
	handle_signals(top);
	for (int key = 0; !top->once && !top->done; press(top, key)) {
		key = ss_terminal_key();
		if (key == SS_KEY_NONE)
			break;
	}
}

/* Running ------------------------------------------------------------------- */

static bool is_target_ended(const struct top *top)
{
	return ss_child_exit_status(&top->recorder.child) == SS_TOP_TARGET_ENDED;
}

/* The recorder ended by itself: the process did, or it cannot be observed. */
static int finish(struct top *top)
{
	leave_screen(top);
	if (is_target_ended(top)) {
		ss_failure_warn("process %d has ended", top->pid);
		return SS_STATUS_WHOLE;
	}
	/* Ctrl-C came to it first */
	if (ss_child_exit_status(&top->recorder.child) == SS_STATUS_WHOLE)
		return SS_STATUS_WHOLE;
	if (lseek(top->recorder.messages, 0, SEEK_SET) == 0)
		ss_error_free(ss_escaped_copy(top->recorder.messages, false, stderr));
	return SS_STATUS_NOTHING;
}

static struct ss_error *follow(struct top *top, int *ret)
{
	struct ss_error *error = NULL;

	enter_screen(top);
	while (!error && !top->done) {
		poll_waits(top);
		poll_snapshot(top);
		if (ss_now_ns() >= top->next_screen_ns || top->changed) {
			top->changed = false;
			error = make_screen(top);
			if (!error)
				draw(top);
		}
		if (ss_top_job_poll(&top->recorder)) {
			*ret = finish(top);
			return error;
		}
		if (!error && !top->snapper.child.pid)
			error = adapt_rate(top);
		if (!error)
			wait_for_input(top);
	}
	leave_screen(top);
	return error;
}

/* One screen, of the first seconds. */
static struct ss_error *print_once(struct top *top, int *ret)
{
	uint64_t begin_ns = ss_now_ns();
	uint64_t due_ns = begin_ns + ONCE_MS * SS_NS_PER_MS;
	bool ended = false;
	struct ss_error *error = NULL;

	while (!error && !top->screen && !ended && !top->done) {
		uint64_t now = ss_now_ns();
		poll_waits(top);
		ended = ss_top_job_poll(&top->recorder);
		if ((now >= due_ns &&
		     (top->waited_ns || now > due_ns + ONCE_MS * SS_NS_PER_MS)) ||
		    ended)
			error = make_screen(top);
		top->next_screen_ns = now + CHECK_MS * SS_NS_PER_MS;
		if (now > begin_ns + ONCE_END_MS * SS_NS_PER_MS)
			break;
		wait_for_input(top);
	}
	if (!error && top->screen)
		(void)fputs(top->screen, stdout);
	ended = ended || ss_top_job_poll(&top->recorder); /* while the screen was made */
	if (!error && ended && (!top->screen || is_target_ended(top)))
		*ret = finish(top);
	else if (!error && !top->screen && !top->done) {
		ss_failure_warn("process %d: there were no samples in %d s", top->pid,
				ONCE_END_MS / 1000);
		*ret = SS_STATUS_NOTHING;
	}
	return error;
}

static int run(int argc, char **argv)
{
	_cleanup_(top_deinit) struct top top = {
		.process.single = true,
		.process.no_threads = true,
		.signals = -1,
		.guard.fd = -1,
		.guarding = SS_TOP_NO_JOB,
		.recorder = SS_TOP_NO_JOB,
		.waits = SS_TOP_NO_JOB,
		.snapper = SS_TOP_NO_JOB,
		.recording = { .files = { -1, -1 } },
		.analysis = { .files = { -1, -1 },
			      .window_ns = WINDOW_S * SS_NS_PER_SECOND,
			      .view.rows = DEFAULT_ROWS },
	};
	int status = SS_STATUS_WHOLE;

	if (!ss_usage_parse(&ss_command_top, argc, argv, 0, &top) ||
	    !ss_target_options_resolve(&top.process))
		return SS_STATUS_NOTHING;
	top.pid = ss_target_options_pid(&top.process);
	top.analysis.view.color = ss_options_want_color(&top.common);
	struct ss_error *error = start(&top);
	if (!error)
		error = top.once ? print_once(&top, &status) : follow(&top, &status);
	leave_screen(&top);
	if (error) {
		ss_failure_print(error);
		ss_error_free(error);
		return SS_STATUS_NOTHING;
	}
	return status;
}

const struct ss_command ss_command_top = {
	.name = "top",
	.summary = "show functions, threads and waits of a process, live",
	.options = &group,
	.run = run,
};
