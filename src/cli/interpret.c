#include "cli/interpret.h"

#include <stdlib.h>

#include "cli/reading.h"
#include "cli/failure.h"
#include "cli/need.h"
#include "cli/relay.h"

/* An attempt has half of the time that is left, and this at least. */
enum { SHARE_MIN_MS = 500 };

/* What is not of the interpreter's making: copies of stacks, images of modules that have
   no file. And what it may need: the debug information of a browser is 2 GiB. */
#define MEMORY_IMAGES ((uint64_t)256 << 20)
#define MEMORY_STACKS ((uint64_t)256 << 20)
#define MEMORY_MOST ((uint64_t)2 << 30)

/* JSON of 5,000 threads, 300 frames each. */
#define OUTPUT_MOST ((uint64_t)1 << 30)

static uint64_t memory_limit(const struct ss_options *options)
{
	uint64_t stacks = options->max_total ? options->max_total : MEMORY_STACKS;
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_size = sysconf(_SC_PAGESIZE);
	uint64_t most = MEMORY_MOST;

	if (pages > 0 && page_size > 0)
		most = SS_MIN(most, (uint64_t)pages * (uint64_t)page_size / 4);
	return stacks + MEMORY_IMAGES + most;
}

/* Files of --debug-dir and --sysroot may be there for the caller only. */
static bool may_change_ids(const struct ss_interpretation *job)
{
	return job->owner_known && !job->options->debug_dir && !job->options->sysroot;
}

static struct ss_error *run_sandbox(const struct ss_reading *reading, unsigned share_ms,
				    struct ss_sandbox_outcome *ret)
{
	const struct ss_interpretation *job = reading->job;
	const struct ss_sandbox sandbox = {
		.work = ss_reading_work,
		.data = (void *)reading,
		.board = reading->board,
		.steps = ss_reading_steps,
		.step_count = SS_READING_STEPS,
		.timeout_ms = share_ms,
		.confinement = {
			.change_ids = may_change_ids(job),
			.uid = job->uid,
			.gid = job->gid,
			.memory = memory_limit(job->options),
			.output = OUTPUT_MOST,
			.cpu_s = share_ms / 1000 + 1,
			.resolves_root = job->options->sysroot != NULL,
		},
	};

	return ss_sandbox_run(&sandbox, ret);
}

static struct ss_error *hand_on_output(const struct ss_interpretation *job, int fd)
{
	FILE *out = ss_output_file(job->output);

	return job->options->renderer->single ? ss_relay_copy(fd, out) :
						ss_relay_write(fd, job->color, out);
}

static struct ss_error *hand_on(const struct ss_interpretation *job,
				struct ss_sandbox_outcome *outcome, bool *ret_missing)
{
	struct ss_error *error = take_ptr(outcome->error);

	if (!error)
		error = hand_on_output(job, outcome->output);
	if (!error)
		error = ss_output_flush(job->output);
	if (!error)
		error = ss_relay_write(outcome->messages, false, stderr);
	if (!error && job->options->verbose && outcome->board.refused)
		ss_failure_warn("the kernel refused a part of the sandbox for what "
				"interprets the copy");
	*ret_missing = outcome->board.result[SS_READING_MISSING] != 0;
	return error;
}

static bool is_skipped(const struct ss_reading *reading, int32_t module)
{
	for (size_t i = 0; i < reading->skip_count; i++) {
		if (reading->skips[i] == module)
			return true;
	}
	return false;
}

/* Decides what is tried after a death: without the module that was being read, if it
   is known and that was not tried before; without what threads wait for, if it was that;
   else less of everything. */
static void try_less(struct ss_reading *reading, struct ss_sandbox_outcome *outcome)
{
	struct ss_death *death = &reading->deaths[reading->death_count++];
	int32_t module = outcome->board.module;

	*death = (struct ss_death){ .how = take_ptr(outcome->death), .module = -1 };
	if (module >= 0 && reading->skip_count < SS_SKIPS_MAX &&
	    !is_skipped(reading, module)) {
		reading->skips[reading->skip_count++] = death->module = module;
	} else if (outcome->board.step == SS_READING_DIAGNOSE &&
		   !reading->without_waits) {
		reading->without_waits = true;
	} else {
		reading->level++;
	}
}

/* A new session, without the modules to be left out. It is opened here, where a sysroot
   can be: /proc/PID/root is closed to whom has no rights. */
static struct ss_error *open_session(struct ss_reading *reading)
{
	const struct ss_options *options = reading->job->options;
	const struct ss_session_options session_options = {
		.size = sizeof(session_options),
		.debug_dir = options->debug_dir,
		.sysroot = options->sysroot,
		.module_at = &reading->board->module,
		.skip_modules = reading->skips,
		.skip_count = reading->skip_count,
	};

	ss_session_free(take_ptr(reading->session));
	return ss_session_new(&session_options, &reading->session);
}

/* One reading. *ret_done: it went well, or nothing more can be done. */
static struct ss_error *try(struct ss_reading *reading, unsigned share_ms,
			    bool *ret_missing, bool *ret_done)
{
	_cleanup_(ss_sandbox_outcome_deinit) struct ss_sandbox_outcome outcome =
		SS_SANDBOX_NO_OUTCOME;
	_cleanup_error_ struct ss_error *error = run_sandbox(reading, share_ms, &outcome);

	if (error && reading->job->options->verbose)
		ss_failure_warn("without a sandbox: %s", ss_error_message(error));
	/* Not here what was fatal there. */
	if (error && reading->death_count)
		reading->level = SS_LEVEL_PLACES;
	bool asks = reading->may_ask && outcome.board.result[SS_READING_NEEDS];
	*ret_done = error || (!outcome.death && !asks);
	if (error)
		return ss_reading_work_here(reading, ret_missing);
	if (!outcome.death && asks) {
		reading->may_ask = false;
		ss_need_complete(reading->job, outcome.output);
		return NULL;
	}
	if (!outcome.death)
		return hand_on(reading->job, &outcome, ret_missing);
	try_less(reading, &outcome);
	return NULL;
}

struct ss_error *ss_interpret(const struct ss_interpretation *job, bool *ret_missing)
{
	_cleanup_(ss_reading_deinit) struct ss_reading reading = {
		.job = job,
		.board = ss_sandbox_board_new(),
		.level = job->options->raw ? SS_LEVEL_RAW : SS_LEVEL_NAMES,
		.may_ask = job->complete != NULL,
	};
	unsigned left_ms = job->options->interpret_ms;
	bool done = false;

	if (!reading.board)
		return ss_error_no_memory();
	for (;;) {
		unsigned share_ms = SS_MAX(left_ms / 2, (unsigned)SHARE_MIN_MS);
		struct ss_error *error = open_session(&reading);
		if (!error && reading.level == SS_LEVEL_PLACES)
			return ss_reading_work_here(&reading, ret_missing);
		if (!error)
			error = try(&reading, share_ms, ret_missing, &done);
		if (error || done)
			return error;
		left_ms -= SS_MIN(left_ms, share_ms);
	}
}
