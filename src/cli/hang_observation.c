#include "cli/hang_observation.h"

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/watchdog.h"

enum { STEPS = SS_HANG_CAPTURES - 2 };

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
				struct ss_hang_observation *observation)
{
	struct ss_capture_options capture_options = ss_options_capture(options);

	capture_options.filter = filter;
	ss_watchdog_begin(ss_target_pid(target), options->timeout_ms);
	struct ss_error *error = ss_capture_take(
		target, &capture_options, &observation->captures[observation->count]);

	ss_watchdog_end();
	if (!error)
		observation->count++;
	return error;
}

/* Ignores errors: perhaps no thread runs. */
static void capture_running(struct ss_target *target, uint64_t time_ns,
			    const struct ss_options *options,
			    struct ss_hang_observation *observation)
{
	for (int i = 0; i < STEPS; i++) {
		ss_sleep_ns(time_ns / (STEPS + 1));
		ss_error_free(capture(target, options, is_running, observation));
	}
	ss_sleep_ns(time_ns / (STEPS + 1));
}

static struct ss_error *observe(struct ss_target *target, uint64_t time_ns,
				const struct ss_options *options,
				struct ss_hang_observation *observation)
{
	struct ss_error *error = ss_activity_take(target, &observation->before);

	if (!error)
		error = capture(target, options, NULL, observation);
	if (error)
		return error;
	capture_running(target, time_ns, options, observation);
	error = capture(target, options, NULL, observation);
	if (!error)
		error = ss_activity_take(target, &observation->after);
	if (!error)
		ss_capture_add_related(observation->captures[observation->count - 1],
				       target);
	return error;
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
