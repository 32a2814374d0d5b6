/*
 * stacksnap record [OPTIONS] PID | -- COMMAND ARG...: samples into a recording until
 * Ctrl-C, the duration, or the end of the process.
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/command.h"
#include "cli/duration.h"
#include "cli/failure.h"
#include "cli/number.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/record_report.h"
#include "cli/selection.h"
#include "cli/watchdog.h"

enum { HZ_MAX = 10000, KIB = 1 << 10 };

enum key {
	KEY_RATE = 'r',
	KEY_DURATION = 'd',
	KEY_OUTPUT = 'o',
	KEY_THREAD = 't',
	KEY_MAX_FRAMES = 'n',
	KEY_ON_CPU = 0x200,
	KEY_CHILDREN,
	KEY_LAST,
	KEY_STATE,
	KEY_MAX_STACK,
};

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "How long and how often:", 1 },
	{ "rate", KEY_RATE, "HZ", 0, "Samples a second; 99 unless told", 0 },
	{ "duration", KEY_DURATION, "TIME", 0,
	  "End after so long (30, 90s, 5m, 2h); unless told, when stopped", 0 },
	{ "last", KEY_LAST, "TIME", 0, "Keep only the last part of so long (60s)", 0 },
	{ "output", KEY_OUTPUT, "FILE", 0,
	  "Write to a new FILE; stacksnap-%p-%t.rec unless told (%p pid, %t time)", 0 },
	{ NULL, 0, NULL, 0, "What is recorded:", 2 },
	{ "on-cpu", KEY_ON_CPU, NULL, 0, "Only threads that run", 0 },
	{ "thread", KEY_THREAD, "TID|REGEX", 0,
	  "Only these threads: an id, or a pattern over the name; may repeat", 0 },
	{ "state", KEY_STATE, "LETTERS", 0, "Only threads in these states (R, S, D...)",
	  0 },
	{ "children", KEY_CHILDREN, NULL, 0, "Also the processes that it starts", 0 },
	{ "max-frames", KEY_MAX_FRAMES, "N", 0, "Frames of a stack; 1024 unless told",
	  0 },
	{ "max-stack", KEY_MAX_STACK, "KIB", 0,
	  "Copied of each stack at most; 256 unless told", 0 },
	{},
};

struct record {
	struct ss_recorder_options options;
	struct ss_selection selection;
	const char *output;
	pid_t pid;
	char **command; /* or NULL; of argv */
	struct ss_target *target;
	struct ss_output *file;
	struct ss_recorder *recorder;
	struct ss_record_said said;
};

static void record_deinit(struct record *record)
{
	ss_recorder_free(record->recorder);
	ss_target_close(record->target);
	ss_output_close(record->file);
	ss_selection_deinit(&record->selection);
}

static uint64_t parse_number(const struct argp_state *state, const char *name,
			     const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = min;

	if (ss_number_parse(text, min, max, &value) != SS_NUMBER_OK)
		argp_error(state, "--%s: '%s' is not a number from %ju to %ju", name,
			   text, (uintmax_t)min, (uintmax_t)max);
	return value;
}

static uint64_t parse_duration(const struct argp_state *state, const char *name,
			       const char *text)
{
	uint64_t ns = 0;

	if (!ss_duration_parse(text, &ns))
		argp_error(state,
			   "--%s: '%s' is no time: a number of seconds, or with s, m, h "
			   "or ms behind it",
			   name, text);
	return ns;
}

static void parse_target(struct record *record, const struct argp_state *state,
			 const char *text)
{
	if (record->pid)
		argp_error(state, "one process at a time: '%s' is too many", text);
	ss_options_check(state, ss_target_argument_parse_id(text, "pid", &record->pid));
}

static void check(struct record *record, const struct argp_state *state)
{
	if (!record->pid && !record->command)
		argp_error(state, "neither a pid nor -- COMMAND is given");
	if (record->pid && record->command)
		argp_error(state, "a pid and a command are given: one of them");
	if (record->options.keep_ns && strcmp(record->output, "-") == 0)
		argp_error(state, "--last wants a file: standard output cannot be "
				  "written anew");
}

static error_t parse_value(int key, char *arg, struct argp_state *state)
{
	struct record *record = state->input;

	switch (key) {
	case KEY_RATE:
		record->options.period_ns =
			1000000000 / parse_number(state, "rate", arg, 1, HZ_MAX);
		return 0;
	case KEY_DURATION:
		record->options.duration_ns = parse_duration(state, "duration", arg);
		return 0;
	case KEY_LAST:
		record->options.keep_ns = parse_duration(state, "last", arg);
		return 0;
	case KEY_OUTPUT:
		ss_options_check(state, ss_output_check(arg));
		record->output = arg;
		return 0;
	case KEY_MAX_FRAMES:
		record->options.max_frames =
			(unsigned)parse_number(state, "max-frames", arg, 1, 1 << 20);
		return 0;
	case KEY_MAX_STACK:
		record->options.max_stack =
			parse_number(state, "max-stack", arg, 1, 1 << 20) * KIB;
		return 0;
	case KEY_THREAD:
		ss_options_check(state, ss_selection_add(&record->selection, arg));
		return 0;
	case KEY_STATE:
		ss_options_check(state, ss_selection_set_states(&record->selection, arg));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record *record = state->input;

	switch (key) {
	case KEY_ON_CPU:
		record->selection.states = "R";
		return 0;
	case KEY_CHILDREN:
		record->options.children = true;
		return 0;
	case ARGP_KEY_ARG:
		/* What follows "--" is a command, whatever it looks like. */
		if (state->quoted && state->next - 1 >= state->quoted) {
			record->command = &state->argv[state->next - 1];
			state->next = state->argc;
		} else {
			parse_target(record, state, arg);
		}
		return 0;
	case ARGP_KEY_END:
		check(record, state);
		return 0;
	default:
		return parse_value(key, arg, state);
	}
}

static const struct argp argp = {
	.options = table,
	.parser = parse,
	.args_doc = "PID\n-- COMMAND ARG...",
	.doc = "Sample the stacks of a process into a file, until Ctrl-C or its end.\v"
	       "The file is read by stacksnap report, on this machine or another one.",
};

/* Each thread's times are read from a file that is kept open. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* or slower, not wrong */
}

/* What a signal handler can reach. */
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
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	interrupted = recorder;
	(void)sigemptyset(&action.sa_mask); /* neither fails with valid signals */
	for (size_t i = 0; i < SS_ARRAY_SIZE(signals); i++) {
		struct sigaction before;
		if (sigaction(signals[i], NULL, &before) == 0 &&
		    before.sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &action, NULL);
	}
}

static struct ss_error *open_recorder(struct record *record)
{
	struct ss_recorder_options options = record->options;
	pid_t pid = ss_target_pid(record->target);
	int fd = -1;
	struct ss_error *error = ss_output_open(record->output, pid, &record->file);

	if (!error)
		error = ss_output_duplicate(record->file, &fd);
	if (error)
		return error;
	options.directory = ss_output_directory(record->file);
	options.name = ss_output_name(record->file);
	error = ss_recorder_new(record->target, fd, &options, &record->recorder);
	if (!error)
		ss_output_keep(record->file);
	return error;
}

static struct ss_error *begin(struct record *record)
{
	struct ss_error *error =
		record->command ? ss_target_spawn(record->command, &record->target) :
				  ss_target_open(record->pid, &record->target);

	return error ? error : open_recorder(record);
}

static int run_recorder(struct record *record)
{
	_cleanup_error_ struct ss_error *error = begin(record);

	if (error) {
		ss_failure_print(error);
		return SS_STATUS_NOTHING;
	}
	catch_signals(record->recorder);
	ss_watchdog_follow(ss_target_pid(record->target), record->recorder);
	error = ss_recorder_run(record->recorder);
	ss_watchdog_end();
	const struct ss_recorder_summary *summary = ss_recorder_summary(record->recorder);
	interrupted = NULL;
	if (error)
		ss_failure_print(error);
	ss_record_report_end(summary, ss_output_path(record->file), &record->said);
	if (record->command && summary->end != SS_RECORDING_TARGET_END)
		ss_failure_warn("process %d goes on", ss_target_pid(record->target));
	if (summary->samples == 0) {
		if (!error)
			ss_failure_warn("nothing was recorded: at no tick was there a "
					"thread as asked for");
		return SS_STATUS_NOTHING;
	}
	return error ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

static int run(int argc, char **argv)
{
	_cleanup_(record_deinit) struct record record = {
		.options = { .size = sizeof(record.options) },
		.output = "stacksnap-%p-%t.rec",
	};
	struct ss_selection_run filter = { .selection = &record.selection };
	static const struct ss_target_argument none = {};

	error_t errnum = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &record);
	if (errnum) {
		ss_failure_warn("%s", strerror(errnum));
		return SS_STATUS_NOTHING;
	}
	filter.argument = &none;
	if (ss_selection_run_is_active(&filter)) {
		record.options.filter = ss_selection_run_filter;
		record.options.filter_data = &filter;
	}
	record.options.progress = ss_record_report_progress;
	record.options.progress_data = &record.said;
	raise_file_limit();
	return run_recorder(&record);
}

const struct ss_command ss_command_record = {
	.name = "record",
	.summary = "sample a process into a file, for stacksnap report",
	.argp = &argp,
	.run = run,
};
