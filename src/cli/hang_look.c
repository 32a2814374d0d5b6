#include "cli/hang_look.h"

#include <time.h>

#include "cli/watchdog.h"

enum { STEPS = SS_HANG_CAPTURES - 2, NS_PER_S = 1000000000 };

SS_DEFINE_CLEANUP(struct ss_target, target, ss_target_close)

void ss_hang_sleep(uint64_t time_ns)
{
	const struct timespec ts = { .tv_sec = (time_t)(time_ns / NS_PER_S),
				     .tv_nsec = (long)(time_ns % NS_PER_S) };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* or less */
}

void ss_hang_look_deinit(struct ss_hang_look *look)
{
	ss_activity_free(look->before);
	ss_activity_free(look->after);
	for (size_t i = 0; i < look->count; i++)
		ss_capture_free(look->captures[i]);
	*look = (struct ss_hang_look){};
}

static bool runs(void *data, pid_t tid, const char *name, char state)
{
	(void)data;
	(void)tid;
	(void)name;
	return state == 'R';
}

static struct ss_error *capture(struct ss_target *target,
				const struct ss_options *options,
				ss_thread_filter *filter, struct ss_hang_look *look)
{
	const struct ss_capture_options capture_options = {
		.size = sizeof(capture_options),
		.mode = options->mode,
		.timeout_ms = options->timeout_ms,
		.max_stack = options->max_stack,
		.max_total = options->max_total,
		.max_frames = options->max_frames,
		.filter = filter,
	};
	ss_watchdog_begin(ss_target_pid(target), options->timeout_ms);
	struct ss_error *error =
		ss_capture_take(target, &capture_options, &look->captures[look->count]);

	ss_watchdog_end();
	if (!error)
		look->count++;
	return error;
}

/* Where the threads are that run: if there is none that is no error. */
static void take_steps(struct ss_target *target, uint64_t time_ns,
		       const struct ss_options *options, struct ss_hang_look *look)
{
	for (int i = 0; i < STEPS; i++) {
		ss_hang_sleep(time_ns / (STEPS + 1));
		ss_error_free(capture(target, options, runs, look));
	}
	ss_hang_sleep(time_ns / (STEPS + 1));
}

static struct ss_error *look_at(struct ss_target *target, uint64_t time_ns,
				const struct ss_options *options,
				struct ss_hang_look *look)
{
	struct ss_error *error = ss_activity_take(target, &look->before);

	if (!error)
		error = capture(target, options, NULL, look);
	if (error)
		return error;
	take_steps(target, time_ns, options, look);
	error = capture(target, options, NULL, look);
	if (!error)
		error = ss_activity_take(target, &look->after);
	if (!error)
		ss_capture_follow(look->captures[look->count - 1], target);
	return error;
}

struct ss_error *ss_hang_look_take(pid_t pid, uint64_t time_ns,
				   const struct ss_options *options,
				   struct ss_hang_look *ret)
{
	_cleanup_(target_cleanup) struct ss_target *target = NULL;
	_cleanup_(ss_hang_look_deinit) struct ss_hang_look look = {};
	struct ss_error *error = ss_target_open(pid, &target);

	if (error)
		return error;
	_cleanup_error_ struct ss_error *unknown =
		ss_target_owner(target, &look.uid, &look.gid);
	look.owner_known = !unknown;
	error = look_at(target, time_ns, options, &look);
	if (error)
		return error;
	*ret = look;
	look = (struct ss_hang_look){};
	return NULL;
}
