/*
 * stacksnap hang [OPTIONS] PID...: what is stuck, on what, and who holds it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/command.h"
#include "cli/process.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/targets.h"
#include "diagnose/progress.h"
#include "interpret/interpret.h"
#include "process/process_list.h"
#include "report/print.h"
#include "report/names.h"
#include "report/text.h"
#include "sandbox/sandbox.h"

enum { STATUS_DEADLOCK = 3, STATUS_STUCK = 4, NOT_RUN = 127 };

/* Exit status of a process that observes one of several: this, and the verdict. */
enum {
	STATUS_VERDICT = 32,
	VERDICTS = SS_VERDICT_DEADLOCK + 1,
	IDLE_SHOWN = 16,
	ADVICE_MAX = 16 << 20
};

struct hang {
	struct ss_options options;
	struct ss_target_options target;
	pid_t pid;
	uint64_t for_ns;
	uint64_t interval_ns;
	bool watch;
	bool incomplete;      /* --strict: a stack is */
	const char *pid_file; /* of --watch, or NULL */
	bool color;
	const char *command;
	struct ss_output *output;
	struct ss_debuginfod *debuginfod; /* or NULL */
	/* Of several processes whose reports are one text: what they miss, for one line at its
	   end; or -1. */
	int advice;
};

static void hang_deinit(struct hang *hang)
{
	ss_output_close(hang->output);
	ss_debuginfod_free(hang->debuginfod);
	ss_target_options_deinit(&hang->target);
	ss_options_deinit(&hang->options);
	close_cleanup(&hang->advice);
}

static struct ss_error *write_report(const struct hang *hang,
				     const struct ss_reading *reading,
				     const struct ss_interpretation *result,
				     const struct ss_progress *progress)
{
	const struct ss_snapshot *last = result->snapshots[result->count - 1];
	struct ss_format_options options = ss_reading_format_options(reading, result);
	FILE *out = NULL;
	struct ss_error *error = ss_reading_open(&out);

	if (error)
		return error;
	if (hang->advice >= 0) {
		/* Idle processes are only listed. */
		if (options.advice && progress->verdict != SS_VERDICT_IDLE)
			(void)ss_io_write_all(hang->advice, options.advice,
					      strlen(options.advice)); /* best effort */
		options.advice = NULL;
	}
	error = reading->options->common.format->write_hang(last, progress, &options,
							    out);
	error = ss_reading_close(reading, out, error);
	if (!error && result->problem)
		ss_failure_warn("%d: %s", ss_snapshot_process(last)->pid,
				result->problem);
	if (!error)
		ss_incomplete_print_modules(last);
	return error;
}

/* With --strict a verdict that rests on a stack with gaps does not count as nothing. */
static void check_stacks(struct hang *hang, const struct ss_snapshot *last)
{
	if (ss_missing_count(last, true) == 0)
		return;
	hang->incomplete = true;
	ss_incomplete_print(last, hang->options.common.max_stack, true);
}

/* *ret_died: an error is due to the confined processes, which may have been killed. */
static struct ss_error *interpret(struct ss_reading *reading, struct hang *hang,
				  struct ss_observation *observation,
				  enum ss_verdict quiet_below, enum ss_verdict *ret,
				  bool *ret_died)
{
	struct ss_source *source = ss_observation_source(observation);
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	_cleanup_(ss_progress_cleanup) struct ss_progress *progress = NULL;
	struct ss_interpret_options options;

	ss_reading_configure(reading, &options);
	ss_interpret_as_owner(ss_observation_target(observation), &options);
	options.more_memory *= source->count;
	options.last_level = SS_SANDBOX_RAW;
	options.last_waits = true;
	options.max_plans = 1;
	struct ss_error *error = ss_reading_interpret(reading, source, &options, &result);
	*ret_died = error && ss_error_code(error) == SS_ERROR_SYSTEM;
	if (!error && result->sandbox->no_waits) /* without waits there is no verdict */
		error = ss_error_new(SS_ERROR_SYSTEM, "%s", result->problem);
	if (!error)
		error = ss_observation_compare(observation, result, &progress);
	if (error)
		return error;
	*ret = progress->verdict;
	if (hang->options.strict)
		check_stacks(hang, result->snapshots[result->count - 1]);
	return *ret < quiet_below ? NULL : write_report(hang, reading, result, progress);
}

static struct ss_error *analyze(struct hang *hang, pid_t pid, enum ss_verdict quiet_below,
				enum ss_verdict *ret, bool *ret_died)
{
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = &hang->options,
		.output = hang->output,
		.color = hang->color,
		.requests.debuginfod = hang->debuginfod,
	};
	struct ss_capture_options capture;
	const struct ss_process_source_options options =
		ss_reading_source(&reading, NULL, &capture);
	_cleanup_(ss_observation_cleanup) struct ss_observation *observation = NULL;
	struct ss_error *error =
		ss_observation_new(pid, hang->for_ns, &options, &observation);

	return error ? ss_reading_list(&reading, pid, error) :
		       interpret(&reading, hang, observation, quiet_below, ret, ret_died);
}

struct command {
	const char *text;
	pid_t pid;
	enum ss_verdict verdict;
};

/* In the child. */
static int execute(void *data, int channel)
{
	const struct command *command = data;
	char number[16];

	(void)channel;						    /* none */
	(void)snprintf(number, sizeof(number), "%d", command->pid); /* it fits */
	if (setenv("STACKSNAP_PID", number, 1) == 0 &&
	    setenv("STACKSNAP_VERDICT", ss_verdict_name(command->verdict), 1) == 0)
		(void)execl("/bin/sh", "sh", "-c", command->text, NULL);
	return NOT_RUN;
}

/* Runs the shell command of --exec, with STACKSNAP_PID and STACKSNAP_VERDICT in its environment, and waits
   for its end. Prints a message if it fails. Errors: SYSTEM. */
static struct ss_error *run_command(const char *command, pid_t pid,
				    enum ss_verdict verdict)
{
	const struct ss_child_options options = {};
	struct command data = { command, pid, verdict };
	struct ss_child child = SS_NO_CHILD;
	struct ss_error *error = ss_child_start(&options, execute, &data, &child);

	if (error)
		return error;
	(void)ss_child_wait(&child, SS_CHILD_FOREVER);
	if (child.status != 0)
		ss_failure_warn("the --exec command failed (%s %d)",
				WIFEXITED(child.status) ? "exit status" : "signal",
				WIFEXITED(child.status) ? WEXITSTATUS(child.status) :
							  WTERMSIG(child.status));
	return NULL;
}

static struct ss_error *find_pid(const struct hang *hang, pid_t *ret)
{
	*ret = hang->pid;
	return hang->pid_file ? ss_target_options_read_pid(hang->pid_file, ret) : NULL;
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
	bool died;
	struct ss_error *error = find_pid(hang, &pid);

	if (!error)
		error = analyze(hang, pid, SS_VERDICT_IDLE, ret, &died);
	if (!error && hang->command && *ret >= SS_VERDICT_BLOCKED)
		error = run_command(hang->command, pid, *ret);
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
	bool died = false;
	struct ss_error *error = find_pid(hang, &pid);

	if (error)
		return error;
	bool known = current->is_set && current->pid == pid;
	/* Report each hang once: no verdict reaches DEADLOCK + 1. */
	error = analyze(hang, pid, known ? SS_VERDICT_DEADLOCK + 1 : SS_VERDICT_BLOCKED,
			&verdict, &died);
	if (error && died) {
		ss_failure_warn("%d: %s; will retry after the interval", pid,
				ss_error_message(error));
		ss_error_free(error);
		return NULL;
	}
	if (error)
		return error;
	*current = (struct current_hang){ .pid = pid,
					  .is_set = verdict >= SS_VERDICT_BLOCKED };
	*ret = SS_MAX(*ret, verdict);
	return current->is_set && !known && hang->command ?
		       run_command(hang->command, pid, verdict) :
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

static int run_one(struct hang *hang, enum ss_verdict *ret)
{
	_cleanup_error_ struct ss_error *error =
		ss_output_open(hang->options.common.output, hang->pid, &hang->output);

	if (!error)
		error = ss_debuginfod_open(&hang->options.symbols, &hang->debuginfod);
	if (!error)
		error = hang->watch ? watch(hang, ret) : analyze_once(hang, ret);
	int status = status_of(*ret);
	return ss_failure_status(error, status == SS_STATUS_WHOLE && hang->incomplete ?
						SS_STATUS_PARTIAL :
						status);
}

/* In a child process. */
static int run_index(void *data, size_t index)
{
	struct hang *hang = data;
	enum ss_verdict verdict = SS_VERDICT_IDLE;

	hang->pid = hang->target.targets.items[index].pid;
	if (!ss_output_is_per_target(hang->options.common.output))
		hang->options.common.output = NULL;
	int status = run_one(hang, &verdict);
	return status == status_of(verdict) ? STATUS_VERDICT + (int)verdict : status;
}

/* The verdict that a child has returned; false: none. */
static bool has_verdict(int status, enum ss_verdict *ret)
{
	*ret = (enum ss_verdict)(status - STATUS_VERDICT);
	return status >= STATUS_VERDICT && status < STATUS_VERDICT + VERDICTS;
}

/* The worst first; those that are idle are only listed. */
static int rank(int status)
{
	enum ss_verdict verdict;

	if (!has_verdict(status, &verdict))
		return VERDICTS;
	return verdict == SS_VERDICT_IDLE ? -1 : SS_VERDICT_DEADLOCK - (int)verdict;
}

/* The worst status: a deadlock, something stuck, something missing. */
static int merge_statuses(const struct hang *hang, const int *statuses)
{
	size_t failed = hang->target.unresolved;
	size_t shown = 0;
	enum ss_verdict worst = SS_VERDICT_IDLE;
	enum ss_verdict verdict;

	for (size_t i = 0; i < hang->target.targets.count; i++) {
		bool known = has_verdict(statuses[i], &verdict);
		if (known)
			worst = SS_MAX(worst, verdict);
		shown += known;
		failed += !known;
	}
	if (worst >= SS_VERDICT_BLOCKED)
		return status_of(worst);
	if (shown == 0)
		return SS_STATUS_NOTHING;
	return failed ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

struct idle_processes {
	const struct hang *hang;
	const int *statuses;
};

static bool is_idle(void *data, const struct ss_listed_process *process)
{
	const struct idle_processes *idle = data;
	enum ss_verdict verdict;

	for (size_t i = 0; i < idle->hang->target.targets.count; i++) {
		if (idle->hang->target.targets.items[i].pid == process->pid &&
		    has_verdict(idle->statuses[i], &verdict) &&
		    verdict == SS_VERDICT_IDLE)
			return true;
	}
	return false;
}

/* "3 processes are idle: 4711 (nginx), 4712 (nginx), 4713 (nginx)" */
static struct ss_error *list_idle(const struct hang *hang, const int *statuses, FILE *out)
{
	struct idle_processes idle = { hang, statuses };
	struct ss_process_list *list = NULL;
	struct ss_error *error = ss_process_list_new(is_idle, &idle, &list);
	size_t count = error ? 0 : ss_process_list_count(list);
	enum ss_verdict verdict;
	bool others = false;

	for (size_t i = 0; i < hang->target.targets.count; i++)
		others |= has_verdict(statuses[i], &verdict) &&
			  verdict != SS_VERDICT_IDLE;
	if (count && others)
		(void)fputc('\n', out);
	if (count)
		(void)fprintf(out, "%zu process%s idle:", count,
			      count == 1 ? " is" : "es are");
	for (size_t i = 0; i < SS_MIN(count, (size_t)IDLE_SHOWN); i++) {
		const struct ss_listed_process *process = ss_process_list_at(list, i);
		(void)fprintf(out, "%s %d (", i ? "," : "", process->pid);
		ss_escape_write(process->name, NULL, out);
		(void)fputc(')', out);
	}
	if (count > IDLE_SHOWN)
		(void)fprintf(out, " and %zu more", count - IDLE_SHOWN);
	if (count)
		(void)fputc('\n', out);
	ss_process_list_free(list);
	return error;
}

/* What any of the processes misses, in one line. */
static void print_advice(const struct hang *hang, FILE *out)
{
	_cleanup_buffer_ struct ss_buffer items = {};

	if (lseek(hang->advice, 0, SEEK_SET) != 0 ||
	    ss_io_read_all(hang->advice, ADVICE_MAX, &items) < 0 || items.size == 0)
		return;
	ss_text_write_advice(&(const struct ss_format_options){ .advice = items.bytes,
								.color = hang->color },
			     out);
}

/* Observes all processes at the same time. */
static int run_several(struct hang *hang)
{
	const struct ss_common_options *common = &hang->options.common;
	size_t count = hang->target.targets.count;
	_cleanup_(ss_output_cleanup) struct ss_output *output = NULL;
	_cleanup_free_ int *statuses = calloc(count, sizeof(*statuses));
	struct ss_each_process each = { .count = count,
					.work = run_index,
					.data = hang,
					.separator = common->format->separator };
	_cleanup_error_ struct ss_error *error = statuses ? NULL : ss_error_no_memory();

	if (!error && !ss_output_is_per_target(common->output)) {
		error = ss_output_open(common->output, 0, &output);
		each.out = error ? NULL : ss_output_file(output);
		each.rank = common->format == &ss_format_text ? rank : NULL;
	}
	if (each.rank)
		hang->advice = ss_io_create_unnamed(); /* without it each has its line */
	if (!error)
		error = ss_each_process_run(&each, statuses);
	if (!error && each.rank)
		error = list_idle(hang, statuses, each.out);
	if (!error && hang->advice >= 0)
		print_advice(hang, each.out);
	if (!error && output)
		error = ss_output_flush(output);
	if (error)
		return ss_failure_status(error, 0);
	return merge_statuses(hang, statuses);
}

static int hang_run(struct hang *hang)
{
	struct ss_target_options *target = &hang->target;
	enum ss_verdict verdict = SS_VERDICT_IDLE;

	/* With --watch the process may start later, and again. */
	if (hang->watch && target->pid_files.count &&
	    ss_target_options_count(target) == 1)
		hang->pid_file = target->pid_files.items[0];
	else if (!ss_target_options_resolve(target))
		return SS_STATUS_NOTHING;
	if (hang->watch && target->targets.count > 1) {
		ss_failure_warn("--watch observes one process, but %zu are selected",
				target->targets.count);
		return SS_STATUS_NOTHING;
	}
	hang->color = ss_options_want_color(&hang->options.common) &&
		      hang->options.common.format == &ss_format_text;
	hang->pid = ss_target_options_pid(target);
	ss_target_options_wait(target);
	ss_row_arguments_begin(&hang->options.common.rows, target->at_ns);
	return target->targets.count > 1 ? run_several(hang) : run_one(hang, &verdict);
}

static void check(void *input)
{
	const struct hang *hang = input;

	if (ss_target_options_count(&hang->target) == 0)
		ss_usage_fail("expected a pid, the name of a process, or --pid-file");
	if (hang->watch && ss_target_options_count(&hang->target) > 1)
		ss_usage_fail("--watch observes one process");
}

static const struct ss_option table[] = {
	{ .doc = "Observation:", .group = -2 },
	{ "for", 0, "TIME", "Observe for TIME: 5s, 500ms (default: 2s)", 0,
	  SS_SETS_DURATION(struct hang, for_ns) },
	{ "watch", 0, NULL, "Repeat until the process ends, and report hangs only", 0,
	  SS_SETS_FLAG(struct hang, watch) },
	{ "interval", 0, "TIME", "Polling interval for --watch (default: 10s)", 0,
	  SS_SETS_DURATION(struct hang, interval_ns) },
	{ "exec", 0, "COMMAND",
	  "Run a shell command when the process is blocked, stuck or deadlocked, once "
	  "per hang",
	  0, SS_SETS_TEXT(struct hang, command) },
	{},
};

static const struct ss_option_child children[] = {
	{ &ss_options_group, offsetof(struct hang, options) },
	{ &ss_target_group, offsetof(struct hang, target) },
	{ &ss_targets_group, offsetof(struct hang, target) },
	{ &ss_row_group, offsetof(struct hang, options.common.rows) },
	{ &ss_row_env_group, offsetof(struct hang, options.common.rows) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "PID|NAME...",
	.doc = "Observe processes for a while, and report which are stuck, what they "
	       "wait for, and who holds it.\vExit status: 0 nothing is stuck (idle, "
	       "moving or busy), 3 a deadlock, 4 stuck or blocked without a proven "
	       "deadlock, 2 no verdict, 64 wrong usage. For several processes, the "
	       "worst one counts; 1 if some could not be observed.",
	.end = check,
};

static int run(int argc, char **argv)
{
	_cleanup_(hang_deinit) struct hang hang = {
		.target.no_threads = true,
		.for_ns = 2 * SS_NS_PER_SECOND,
		.interval_ns = 10 * SS_NS_PER_SECOND,
		.advice = -1,
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
	.input = SS_FORMAT_HANG,
	.summary = "report what is stuck, on what, and who holds it",
	.options = &group,
	.run = run,
};
