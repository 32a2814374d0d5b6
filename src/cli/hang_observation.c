#include "cli/hang_observation.h"

#include <string.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/watchdog.h"

enum {
	STEPS = SS_HANG_CAPTURES - 2,
	/* Between captures that are taken once more: a few time slices of the scheduler, and
	   of Python's lock */
	REPEAT_NS = 20 * 1000 * 1000,
};

void ss_hang_observation_deinit(struct ss_hang_observation *observation)
{
	ss_activity_free(observation->before);
	ss_activity_free(observation->after);
	ss_target_close(observation->target);
	for (size_t i = 0; i < observation->count; i++)
		ss_capture_free(observation->captures[i]);
	*observation = (struct ss_hang_observation){};
}

static bool is_running(void *data, pid_t tid, const char *name, char state)
{
	(void)data;
	(void)tid;
	(void)name;
	return state == 'R';
}

static struct ss_error *capture(struct ss_target *target,
				const struct ss_options *options,
				ss_thread_filter *filter,
				const struct ss_gather_plan *plan,
				struct ss_hang_observation *observation)
{
	struct ss_capture_options capture_options = ss_options_capture(options);

	capture_options.filter = filter;
	capture_options.plan = plan;
	ss_watchdog_begin(ss_target_pid(target), options->timeout_ms);
	struct ss_error *error = ss_capture_take(
		target, &capture_options, &observation->captures[observation->count]);

	ss_watchdog_end();
	if (!error)
		observation->count++;
	return error;
}

/* Ignores errors: perhaps no thread runs. */
static void capture_running(struct ss_target *target, uint64_t pause_ns,
			    const struct ss_options *options,
			    const struct ss_gather_plan *plan,
			    struct ss_hang_observation *observation)
{
	for (int i = 0; i < STEPS; i++) {
		ss_sleep_ns(pause_ns);
		ss_error_free(capture(target, options, is_running, plan, observation));
	}
	ss_sleep_ns(pause_ns);
}

/* The captures, and the counters at the end. */
static struct ss_error *capture_all(struct ss_target *target, uint64_t pause_ns,
				    const struct ss_options *options,
				    const struct ss_gather_plan *plan,
				    struct ss_hang_observation *observation)
{
	struct ss_error *error = capture(target, options, NULL, plan, observation);

	if (error)
		return error;
	capture_running(target, pause_ns, options, plan, observation);
	error = capture(target, options, NULL, plan, observation);
	if (!error)
		error = ss_activity_take(target, &observation->after);
	if (!error)
		ss_capture_add_related(observation->captures[observation->count - 1],
				       target);
	return error;
}

static struct ss_error *observe(struct ss_target *target, uint64_t time_ns,
				const struct ss_options *options,
				struct ss_hang_observation *observation)
{
	struct ss_error *error = ss_activity_take(target, &observation->before);

	return error ? error :
		       capture_all(target, time_ns / (STEPS + 1), options, NULL,
				   observation);
}

struct ss_error *ss_hang_observe(pid_t pid, uint64_t time_ns,
				 const struct ss_options *options,
				 struct ss_hang_observation *ret)
{
	_cleanup_(ss_hang_observation_deinit) struct ss_hang_observation observation = {};
	struct ss_error *error = ss_target_open(pid, &observation.target);

	if (error)
		return error;
	observation.owner = ss_analysis_owner_of(observation.target);
	error = observe(observation.target, time_ns, options, &observation);
	if (error)
		return error;
	*ret = observation;
	observation = (struct ss_hang_observation){};
	return NULL;
}

/* After a failure, for instance because threads have ended, their stacks stay incomplete. */
void ss_hang_observation_complete(struct ss_hang_observation *observation,
				  const struct ss_options *options, const pid_t *tids,
				  size_t count)
{
	struct ss_capture_options capture_options = ss_options_capture(options);

	ss_watchdog_begin(ss_target_pid(observation->target), options->timeout_ms);
	_cleanup_error_ struct ss_error *error =
		ss_capture_complete(observation->captures[observation->count - 1],
				    observation->target, &capture_options, tids, count);
	ss_watchdog_end();
	if (error && options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
}

void ss_hang_observation_repeat(struct ss_hang_observation *observation,
				const struct ss_options *options,
				const struct ss_gather_plan *plan)
{
	_cleanup_(ss_hang_observation_deinit) struct ss_hang_observation repeated = {};
	_cleanup_error_ struct ss_error *error =
		capture_all(observation->target, REPEAT_NS, options, plan, &repeated);

	if (error && options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
	if (error)
		return;
	for (size_t i = 0; i < observation->count; i++)
		ss_capture_free(observation->captures[i]);
	memcpy(observation->captures, repeated.captures, sizeof(repeated.captures));
	observation->count = repeated.count;
	repeated.count = 0;
	ss_activity_free(observation->after);
	observation->after = take_ptr(repeated.after);
}
