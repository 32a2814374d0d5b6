/*
 * stacksnap hang [OPTIONS] PID: what is stuck, on what, and who holds it.
 */
#include <argp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/hang_analysis.h"
#include "cli/hang_watch.h"
#include "cli/target_options.h"
#include "cli/usage.h"

enum { STATUS_DEADLOCK = 3, STATUS_STUCK = 4 };

enum key { KEY_FOR = 0x200, KEY_JSON, KEY_WATCH, KEY_INTERVAL, KEY_PID_FILE, KEY_EXEC };

struct hang {
	struct ss_options options;
	struct ss_target_options target;
	pid_t pid;
	uint64_t for_ns;
	uint64_t interval_ns;
	bool json;
	bool watch;
	const char *pid_file;
	const char *command;
	struct ss_output *output;
	struct ss_debuginfod *debuginfod; /* or NULL */
};

static void hang_deinit(struct hang *hang)
{
	ss_output_close(hang->output);
	ss_debuginfod_free(hang->debuginfod);
	ss_target_options_deinit(&hang->target);
	ss_options_deinit(&hang->options);
}

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Observation:", -2 },
	{ "for", KEY_FOR, "TIME", 0, "Observe for TIME: 5s, 500ms (default: 2s)", 0 },
	{ "json", KEY_JSON, NULL, 0, "Same as --format=json", 0 },
	{ "watch", KEY_WATCH, NULL, 0,
	  "Repeat until the process ends, and report hangs only", 0 },
	{ "interval", KEY_INTERVAL, "TIME", 0,
	  "Polling interval for --watch (default: 10s)", 0 },
	{ "pid-file", KEY_PID_FILE, "FILE", 0,
	  "Observe the process whose pid is in FILE; with --watch also after a restart",
	  0 },
	{ "exec", KEY_EXEC, "COMMAND", 0,
	  "Run a shell command when the process is blocked, stuck or deadlocked, once "
	  "per hang",
	  0 },
	{},
};

static struct ss_error *analyze(struct hang *hang, pid_t pid, enum ss_verdict quiet_below,
				enum ss_verdict *ret)
{
	_cleanup_(ss_hang_observation_deinit) struct ss_hang_observation observation = {};
	struct ss_hang_analysis analysis = {
		.options = &hang->options,
		.observation = &observation,
		.output = hang->output,
		.color = ss_options_want_color(&hang->options.common) &&
			 hang->options.common.format == &ss_format_text,
		.quiet_below = quiet_below,
		.requests.debuginfod = hang->debuginfod,
	};
	struct ss_error *error =
		ss_hang_observe(pid, hang->for_ns, &hang->options, &observation);

	if (!error)
		error = ss_hang_analysis_run(&analysis, ret);
	ss_file_requests_deinit(&analysis.requests);
	return error;
}

static struct ss_error *find_pid(const struct hang *hang, pid_t *ret)
{
	*ret = hang->pid;
	return hang->pid_file ? ss_hang_read_pid(hang->pid_file, ret) : NULL;
}

static int status_of(enum ss_verdict verdict)
{
	if (verdict == SS_VERDICT_DEADLOCK)
		return STATUS_DEADLOCK;
	return verdict >= SS_VERDICT_BLOCKED ? STATUS_STUCK : SS_STATUS_WHOLE;
}

static struct ss_error *analyze_once(struct hang *hang, enum ss_verdict *ret)
{
	pid_t pid;
	struct ss_error *error = find_pid(hang, &pid);

	if (!error)
		error = analyze(hang, pid, SS_VERDICT_IDLE, ret);
	if (!error && hang->command && *ret >= SS_VERDICT_BLOCKED)
		error = ss_hang_run_command(hang->command, pid, *ret);
	return error;
}

/* A hang lasts from the first poll that finds it to the first one that does not, or that
   finds another process. */
struct current_hang {
	pid_t pid;
	bool is_set;
};

static struct ss_error *poll_once(struct hang *hang, struct current_hang *current,
				  enum ss_verdict *ret)
{
	pid_t pid;
	enum ss_verdict verdict = SS_VERDICT_IDLE;
	struct ss_error *error = find_pid(hang, &pid);

	if (error)
		return error;
	bool known = current->is_set && current->pid == pid;
	/* Report each hang once: no verdict reaches DEADLOCK + 1. */
	error = analyze(hang, pid, known ? SS_VERDICT_DEADLOCK + 1 : SS_VERDICT_BLOCKED,
			&verdict);
	if (error)
		return error;
	*current = (struct current_hang){ .pid = pid,
					  .is_set = verdict >= SS_VERDICT_BLOCKED };
	*ret = SS_MAX(*ret, verdict);
	return current->is_set && !known && hang->command ?
		       ss_hang_run_command(hang->command, pid, verdict) :
		       NULL;
}

/* Polls until the process has ended; with a pid file, forever, since it may restart. */
static struct ss_error *watch(struct hang *hang, enum ss_verdict *ret)
{
	struct current_hang current = {};
	bool waiting = false;

	for (bool seen = false;; ss_sleep_ns(hang->interval_ns)) {
		_cleanup_error_ struct ss_error *error = poll_once(hang, &current, ret);
		if (!error) {
			seen = true;
			waiting = false;
			continue;
		}
		bool gone = ss_error_code(error) == SS_ERROR_NO_PROCESS ||
			    ss_error_code(error) == SS_ERROR_ZOMBIE;
		if (!gone || (!seen && !hang->pid_file))
			return take_ptr(error);
		current.is_set = false;
		if (!hang->pid_file)
			return NULL;
		if (!waiting)
			ss_failure_warn("%s; waiting for a process",
					ss_error_message(error));
		waiting = true;
	}
}

static int hang_run(struct hang *hang)
{
	enum ss_verdict verdict = SS_VERDICT_IDLE;
	if (!ss_target_options_resolve(&hang->target))
		return SS_STATUS_NOTHING;
	hang->pid = ss_target_options_pid(&hang->target);
	_cleanup_error_ struct ss_error *error =
		ss_output_open(hang->options.common.output, hang->pid, &hang->output);

	if (!error && hang->options.symbols.debuginfod)
		error = ss_debuginfod_new(&hang->debuginfod);
	if (!error)
		error = hang->watch ? watch(hang, &verdict) :
				      analyze_once(hang, &verdict);
	if (error) {
		ss_failure_print(error);
		return SS_STATUS_NOTHING;
	}
	return status_of(verdict);
}

static void check(struct hang *hang, const struct argp_state *state)
{
	if ((ss_target_options_count(&hang->target) != 0) == (hang->pid_file != NULL))
		ss_usage_fail(state,
			      "expected a pid, the name of a process, or --pid-file");
	if (hang->json)
		hang->options.common.format = &ss_format_json;
	if (hang->options.no_waits)
		ss_usage_fail(state,
			      "--no-waits cannot be used: the verdict depends on waits");
	if (hang->options.selection.tids.count || hang->options.selection.states ||
	    hang->options.selection.patterns.count)
		ss_usage_fail(state, "--thread and --state cannot be used: the verdict "
				     "depends on all threads");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct hang *hang = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &hang->options;
		state->child_inputs[1] = &hang->target;
		return 0;
	case KEY_FOR:
		hang->for_ns = ss_options_parse_duration(state, "for", arg);
		return 0;
	case KEY_INTERVAL:
		hang->interval_ns = ss_options_parse_duration(state, "interval", arg);
		return 0;
	case KEY_JSON:
		hang->json = true;
		return 0;
	case KEY_WATCH:
		hang->watch = true;
		return 0;
	case KEY_PID_FILE:
		hang->pid_file = arg;
		return 0;
	case KEY_EXEC:
		hang->command = arg;
		return 0;
	case ARGP_KEY_ARG:
		ss_target_options_add(state, &hang->target, arg);
		return 0;
	case ARGP_KEY_END:
		check(hang, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &ss_options_argp, 0, NULL, 0 },
	{ &ss_target_argp, 0, NULL, 0 },
	{},
};

static const struct argp argp = {
	.options = table,
	.parser = parse,
	.args_doc = "PID|NAME",
	.doc = "Observe a process for a while and report what is stuck, on what, and who "
	       "holds it.\vExit status: 0 nothing is stuck (idle, moving or busy), 3 a "
	       "deadlock, 4 stuck or blocked without a proven deadlock, 2 no verdict, 64 "
	       "wrong "
	       "usage.",
	.children = children,
};

static int run(int argc, char **argv)
{
	_cleanup_(hang_deinit) struct hang hang = {
		.target.single = true,
		.for_ns = 2 * SS_NS_PER_SECOND,
		.interval_ns = 10 * SS_NS_PER_SECOND,
	};

	ss_options_init(&hang.options);
	hang.options.common.input = SS_FORMAT_HANG;
	if (!ss_usage_parse(&ss_command_hang, argc, argv, 0, &hang))
		return SS_STATUS_NOTHING;
	ss_options_open_cache(&hang.options);
	return hang_run(&hang);
}

const struct ss_command ss_command_hang = {
	.name = "hang",
	.summary = "report what is stuck, on what, and who holds it",
	.argp = &argp,
	.run = run,
};
