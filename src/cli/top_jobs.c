#include "cli/top_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text_stream.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/options.h"
#include "cli/process.h"
#include "data/recording.h"
#include "interpret/interpret.h"
#include "report/profile_load.h"
#include "sandbox/sandbox.h"
#include "stacksnap/record.h"

/* ECMA-48 and xterm's private modes; tmux, screen and the Linux console know them, too. */
#define ALTERNATE "\033[?1049h"
#define NO_ALTERNATE "\033[?1049l"
#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define NO_WRAP "\033[?7l" /* a line that is too wide is cut */
#define WRAP "\033[?7h"
#define PLAIN "\033[0m"
#define REVERSE "\033[7m"
#define HOME "\033[H"
#define CLEAR "\033[2J"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

enum { DEFAULT_LINES = 24, DEFAULT_COLUMNS = 80, SIZE_MAX_SHOWN = 1000, ESCAPE_MS = 30 };

struct ss_error *ss_terminal_init(struct ss_terminal *terminal)
{
	const char *type = getenv("TERM");

	*terminal = (struct ss_terminal){};
	if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 ||
	    tcgetattr(STDIN_FILENO, &terminal->saved) != 0)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "standard input and output are not a terminal"),
			"--once prints one screen as text");
	if (type && strcmp(type, "dumb") == 0)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "this terminal (TERM=dumb) cannot show a screen"),
			"--once prints one screen as text");
	ss_terminal_measure(terminal);
	return NULL;
}

static void put(const char *text)
{
	/* Nothing can be done for a terminal that has gone. */
	(void)ss_io_write_all(STDOUT_FILENO, text, strlen(text));
}

void ss_terminal_enter(struct ss_terminal *terminal)
{
	struct termios raw = terminal->saved;

	/* Ctrl-C and Ctrl-Z remain signals. */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw); /* or keys need Enter */
	terminal->entered = true;
	put(ALTERNATE HIDE_CURSOR NO_WRAP CLEAR);
	ss_terminal_measure(terminal);
}

void ss_terminal_leave(struct ss_terminal *terminal)
{
	if (!terminal->entered)
		return;
	terminal->entered = false;
	put(PLAIN WRAP SHOW_CURSOR NO_ALTERNATE);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved); /* it was valid */
}

void ss_terminal_measure(struct ss_terminal *terminal)
{
	struct winsize size = {};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		size = (struct winsize){};
	terminal->lines = size.ws_row ? SS_MIN(size.ws_row, (unsigned)SIZE_MAX_SHOWN) :
					DEFAULT_LINES;
	terminal->columns = size.ws_col ? SS_MIN(size.ws_col, (unsigned)SIZE_MAX_SHOWN) :
					  DEFAULT_COLUMNS;
}

/* The next byte within a time; -1: none, -2: there will be none. */
static int read_byte(int timeout_ms)
{
	struct pollfd pollfd = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char byte;

	if (poll(&pollfd, 1, timeout_ms) <= 0)
		return -1;
	ssize_t n = read(STDIN_FILENO, &byte, 1);
	if (n == 1)
		return byte;
	return n < 0 && (errno == EINTR || errno == EAGAIN) ? -1 : -2;
}

/* The rest of a key that sends several bytes, such as ESC [ 5 ~ */
static int read_sequence(void)
{
	static const struct {
		const char *bytes;
		enum ss_key key;
	} keys[] = {
		{ "[A", SS_KEY_UP },	   { "OA", SS_KEY_UP },
		{ "[B", SS_KEY_DOWN },	   { "OB", SS_KEY_DOWN },
		{ "[5~", SS_KEY_PAGE_UP }, { "[6~", SS_KEY_PAGE_DOWN },
		{ "[H", SS_KEY_HOME },	   { "OH", SS_KEY_HOME },
		{ "[1~", SS_KEY_HOME },
	};
	char bytes[16] = "";
	size_t size = 0;

	while (size < sizeof(bytes) - 1) {
		int byte = read_byte(ESCAPE_MS);
		if (byte < 0)
			break;
		bytes[size++] = (char)byte;
		if (size > 1 && byte >= '@' && byte <= '~')
			break;
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].bytes, bytes) == 0)
			return (int)keys[i].key;
	}
	return size ? SS_KEY_UNKNOWN : '\033';
}

int ss_terminal_key(void)
{
	int byte = read_byte(0);

	if (byte == -2)
		return SS_KEY_END_OF_INPUT;
	if (byte < 0 || byte == 0)
		return SS_KEY_NONE;
	return byte == '\033' ? read_sequence() : byte;
}

static void add(struct ss_buffer *screen, const char *text)
{
	ss_buffer_add(screen, text, strlen(text));
}

void ss_terminal_draw(const struct ss_terminal *terminal, const char *text,
		      const char *status, bool color)
{
	_cleanup_buffer_ struct ss_buffer screen = {};
	unsigned line = 1;
	char last[32];

	add(&screen, HOME);
	for (; *text && line < terminal->lines; line++) {
		size_t size = strcspn(text, "\n");
		ss_buffer_add(&screen, text, size);
		add(&screen, CLEAR_LINE "\r\n");
		text += size + (text[size] == '\n');
	}
	add(&screen, CLEAR_BELOW);
	(void)snprintf(last, sizeof(last), "\033[%u;1H", terminal->lines);
	add(&screen, last);
	add(&screen, color ? REVERSE : "");
	ss_buffer_add(&screen, status, strnlen(status, terminal->columns));
	add(&screen, color ? PLAIN CLEAR_LINE : CLEAR_LINE);
	if (!screen.failed)
		(void)ss_io_write_all(STDOUT_FILENO, screen.bytes, screen.size);
}

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

/* Rate -------------------------------------------------------------------- */

enum {
	COST = 50, /* the recorder costs at most a 50th of the time, except at the minimum */
	CHEAP = 4,	/* a quarter of this allows for twice the rate, */
	CHEAP_TIMES = 5 /* if measured so often */
};

bool ss_top_rate_limit(struct ss_top_rate *rate, uint64_t now, uint64_t cpu_ns,
		       uint64_t wall_ns)
{
	uint64_t cost_ns = cpu_ns * COST;

	if (cost_ns > wall_ns) {
		rate->cheap = 0;
		if (now <= SS_TOP_RATE_MIN)
			return false;
		/* Each change loses the samples so far: small steps are not worth it. */
		rate->limit = SS_MAX(SS_MIN(now * wall_ns / cost_ns, now * 3 / 4),
				     (uint64_t)SS_TOP_RATE_MIN);
		return true;
	}
	rate->cheap = rate->limit && cost_ns <= wall_ns / CHEAP ? rate->cheap + 1 : 0;
	if (rate->cheap < CHEAP_TIMES)
		return false;
	rate->cheap = 0;
	rate->limit = now * 2 < SS_TOP_RATE ? now * 2 : 0;
	return false;
}

/* Recorder ---------------------------------------------------------------- */

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
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct ss_top_recording *recording = data;
	_cleanup_(target_cleanup) struct ss_target *target = NULL;
	_cleanup_(recorder_cleanup) struct ss_recorder *recorder = NULL;
	_cleanup_error_ struct ss_error *error = ss_target_open(recording->pid, &target);

	(void)channel; /* none */
	if (!error)
		error = open_recorder(recording, target, &recorder);
	if (!error)
		error = ss_recorder_run_watched(recorder, recording->pid, signals,
						SS_ARRAY_SIZE(signals), true);
	if (error)
		return ss_failure_status(error, 0);
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

int ss_top_find_waits(void *data, int channel)
{
	const struct ss_top_waits *waits = data;
	__attribute__((cleanup(ss_options_deinit))) struct ss_options options = {};
	const struct ss_target_argument argument = { .pid = waits->pid };
	_cleanup_(ss_output_cleanup) struct ss_output *output = NULL;
	struct ss_selection_run run = { .argument = &argument };
	bool missing = false;

	(void)channel; /* none */
	ss_options_init(&options);
	options.common.format = waits->list ? &ss_format_text : &ss_format_top_waits;
	options.mode = SS_MODE_NO_STOP;
	options.all = waits->idle;
	options.goroutines = 0;
	options.symbols.flags = SS_NO_SOURCE | SS_NO_INLINES;
	run.selection = &options.selection;
	ss_options_open_cache(&options);
	_cleanup_error_ struct ss_error *error = ss_wait_functions_load(&options.waits);
	if (!error)
		error = ss_output_open(NULL, waits->pid, &output);
	if (!error) {
		__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
			.options = &options,
			.run = &run,
			.output = output,
			.refused = waits->list, /* it was printed */
		};
		error = ss_reading_snapshot(&reading, &run, &missing);
	}
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

/* Screens ----------------------------------------------------------------- */

enum {
	FIRST_FD = STDERR_FILENO + 1,
	TIMEOUT_MS = 10000,
	OUTPUT_MAX = 4 << 20,
	FILES_MAX = 512
};

/* Enough for a thousand threads; a recording of some seconds is small. */
#define MORE_MEMORY ((uint64_t)256 << 20)

struct screen {
	struct ss_top_analysis *analysis;
	const struct ss_sandbox_attempt *attempt;
	struct ss_recording *recordings[SS_TOP_FILES];
	size_t count;
	struct ss_profile *profile;
};

static void screen_deinit(struct screen *screen)
{
	for (size_t i = 0; i < screen->count; i++)
		ss_recording_close(screen->recordings[i]);
	ss_profile_free(screen->profile);
}

/* One that is empty, or has just been emptied, is left out. The older one comes first. */
static void open_recordings(struct screen *screen)
{
	for (size_t i = 0; i < SS_TOP_FILES; i++) {
		int fd = fcntl(screen->analysis->files[i], F_DUPFD_CLOEXEC, FIRST_FD);
		struct ss_recording *recording = NULL;
		if (fd >= 0)
			ss_error_free(ss_recording_open_fd(fd, &recording));
		if (!recording)
			continue;
		if (!ss_recording_info(recording)->samples)
			ss_recording_close(recording);
		else
			screen->recordings[screen->count++] = recording;
	}
	if (screen->count == SS_TOP_FILES &&
	    ss_recording_info(screen->recordings[0])->begin_ns >
		    ss_recording_info(screen->recordings[1])->begin_ns) {
		struct ss_recording *newer = screen->recordings[0];
		screen->recordings[0] = screen->recordings[1];
		screen->recordings[1] = newer;
	}
}

static struct ss_error *symbolize(struct screen *screen)
{
	struct ss_error *error = NULL;

	ss_sandbox_enter(screen->attempt, SS_SANDBOX_SYMBOLIZE);
	for (size_t i = 0; i < screen->count && !error; i++)
		error = ss_recording_symbolize(screen->recordings[i],
					       screen->attempt->session,
					       SS_NO_SOURCE | SS_NO_INLINES);
	return error;
}

static struct ss_error *load(struct screen *screen, bool raw)
{
	uint64_t begin_ns = ss_recording_info(screen->recordings[0])->begin_ns;
	uint64_t end_ns =
		ss_recording_info(screen->recordings[screen->count - 1])->end_ns;
	struct ss_load_options options = { .size = sizeof(options), .raw = raw };
	struct ss_error *error = NULL;

	screen->profile = ss_profile_new();
	if (!screen->profile)
		return ss_error_no_memory();
	options.from_ns = end_ns > screen->analysis->window_ns ?
				  end_ns - screen->analysis->window_ns :
				  0;
	screen->profile->start_ns = SS_MAX(begin_ns, options.from_ns);
	for (size_t i = 0; i < screen->count && !error; i++)
		error = ss_load_recording(screen->profile, screen->recordings[i], "",
					  &options);
	return error;
}

static struct ss_error *write_screen(struct screen *screen)
{
	FILE *out = NULL;
	struct ss_error *error = ss_stream_open(screen->attempt->output, &out);

	if (error)
		return error;
	error = ss_top_write(screen->profile, &screen->analysis->view, out);
	return ss_stream_close(out, error);
}

static struct ss_error *make_screen(void *data, const struct ss_sandbox_attempt *attempt)
{
	struct ss_top_analysis *analysis = data;
	__attribute__((cleanup(screen_deinit))) struct screen screen = {
		.analysis = analysis,
		.attempt = attempt,
	};
	bool raw = attempt->level != SS_SANDBOX_NAMES;
	bool requested = false;
	struct ss_error *error = NULL;

	open_recordings(&screen);
	if (screen.count == 0)
		return NULL;
	if (!raw)
		error = symbolize(&screen);
	if (!error)
		error = ss_file_requests_send(&analysis->requests, attempt, &requested);
	if (error || requested)
		return error;
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	ss_sandbox_set_value(
		attempt, ss_recording_thread_count(screen.recordings[screen.count - 1]));
	error = load(&screen, raw);
	return error ? error : write_screen(&screen);
}

static struct ss_error *copy_text(const struct ss_sandbox_result *result, bool color,
				  char **ret)
{
	struct ss_text_stream stream;

	if (!ss_text_stream_open(&stream))
		return ss_error_no_memory();
	struct ss_error *error = ss_escaped_copy(result->output, color, stream.out);
	_cleanup_free_ char *text = ss_text_stream_close(&stream);
	if (error || !text)
		return error ? error : ss_error_no_memory();
	*ret = *text ? take_ptr(text) : NULL;
	return NULL;
}

void ss_top_analysis_init(struct ss_top_analysis *analysis,
			  const struct ss_target *target)
{
	struct ss_interpret_options *options = &analysis->options;

	*options = ss_work_options(NULL, &analysis->requests, analysis);
	options->timeout_ms = TIMEOUT_MS;
	options->more_memory = MORE_MEMORY;
	options->max_output = OUTPUT_MAX;
	options->keep_modules = true; /* their indexes are those of one recording */
	ss_interpret_as_owner(target, options);
}

struct ss_error *ss_top_analysis_run(struct ss_top_analysis *analysis, char **ret)
{
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	/* Modules come and go; their files must not use up the descriptors. */
	if (analysis->requests.answered.count > FILES_MAX)
		ss_file_requests_deinit(&analysis->requests);
	struct ss_error *error = ss_work_run(&analysis->options, make_screen, &result);
	if (error)
		return error;
	if (result->value) /* or there are no samples yet */
		analysis->threads = result->value;
	return copy_text(result, analysis->view.color, ret);
}

void ss_top_analysis_deinit(struct ss_top_analysis *analysis)
{
	ss_file_requests_deinit(&analysis->requests);
}
