/*
 * A process that is observed for a while at little cost to it, as a source: scheduler counters
 * and captures of all threads at the beginning and at the end, and a few captures of running
 * threads between.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "data/capture.h"
#include "data/pipeline.h"
#include "capture/activity.h"
#include "capture/late_reader.h"
#include "data/gather_plan.h"
#include "diagnose/progress.h"
#include "interpret/interpret.h"
#include "process/spawn.h"

enum {
	CAPTURES = 8,
	STEPS = CAPTURES - 2,
	/* Between captures that are taken once more: a few time slices of the scheduler, and
	   of Python's lock */
	REPEAT_NS = 20 * 1000 * 1000,
};

/* A goroutine that waits for a lock for longer than this is blocked. */
#define BLOCKED_NS SS_NS_PER_SECOND

struct ss_observation {
	struct ss_process_source_options options;
	struct ss_capture_options capture_options;
	struct ss_target *target;
	struct ss_activity *before;
	struct ss_activity *after;
	struct ss_capture *captures[CAPTURES]; /* the last one has all threads */
	struct ss_source source;
	struct ss_late_reader *first; /* of the first capture; or NULL */
	struct ss_late_reader *last;
	bool repeated;
};

SS_DEFINE_CLEANUP(struct ss_observation, ss_observation, ss_observation_free)

static void free_captures(struct ss_observation *observation)
{
	ss_late_reader_free(take_ptr(observation->first));
	ss_late_reader_free(take_ptr(observation->last));
	for (size_t i = 0; i < observation->source.count; i++)
		ss_capture_free(observation->captures[i]);
	observation->source.count = 0;
}

void ss_observation_free(struct ss_observation *observation)
{
	if (!observation)
		return;
	free_captures(observation);
	ss_activity_free(observation->before);
	ss_activity_free(observation->after);
	ss_target_close(observation->target);
	free(observation);
}

static void watch(const struct ss_observation *observation, bool begin)
{
	if (observation->options.watch)
		observation->options.watch(observation->options.data,
					   ss_target_pid(observation->target), begin);
}

static bool warn(const struct ss_observation *observation, struct ss_error *error)
{
	_cleanup_error_ struct ss_error *owned = error;

	if (error && observation->options.warn)
		observation->options.warn(observation->options.data, error);
	return error != NULL;
}

/* Taking --------------------------------------------------------------------- */

static bool is_running(void *data, pid_t tid, const char *name, char state)
{
	(void)data;
	(void)tid;
	(void)name;
	return state == 'R';
}

static struct ss_error *capture(struct ss_observation *observation,
				ss_thread_filter *filter,
				const struct ss_gather_plan *plan)
{
	struct ss_capture_options options = observation->capture_options;
	size_t *count = &observation->source.count;

	options.filter = filter;
	options.plan = plan;
	watch(observation, true);
	struct ss_error *error = ss_capture_take(observation->target, &options,
						 &observation->captures[*count]);
	watch(observation, false);
	*count += !error;
	return error;
}

/* The captures, and the counters at the end. Of those between, errors are ignored: perhaps no
   thread runs. */
static struct ss_error *capture_all(struct ss_observation *observation, uint64_t pause_ns,
				    const struct ss_gather_plan *plan)
{
	struct ss_error *error = capture(observation, NULL, plan);

	if (error)
		return error;
	for (int i = 0; i < STEPS; i++) {
		ss_sleep_ns(pause_ns);
		ss_error_free(capture(observation, is_running, plan));
	}
	ss_sleep_ns(pause_ns);
	error = capture(observation, NULL, plan);
	if (!error)
		error = ss_activity_take(observation->target, &observation->after);
	if (!error && !observation->options.no_related)
		ss_capture_add_related(
			observation->captures[observation->source.count - 1],
			observation->target);
	return error;
}

/* Completing ---------------------------------------------------------------- */

/* Takes all captures once more, in a shorter time, with a plan: what is needed of threads that
   run is copied with their stacks. After a failure the observation stays as it was. */
static bool repeat(struct ss_observation *observation, const struct ss_gather_plan *plan)
{
	struct ss_observation repeated = *observation;

	/* Otherwise the stops of the first captures would count as activity. */
	if (observation->repeated || observation->capture_options.mode != SS_MODE_AUTO)
		return false;
	observation->repeated = true;
	repeated.source.count = 0;
	repeated.after = NULL;
	repeated.first = repeated.last = NULL;
	if (warn(observation, capture_all(&repeated, REPEAT_NS, plan))) {
		free_captures(&repeated);
		ss_activity_free(repeated.after);
		return false;
	}
	free_captures(observation);
	ss_activity_free(observation->after);
	observation->after = repeated.after;
	memcpy(observation->captures, repeated.captures, sizeof(repeated.captures));
	observation->source.count = repeated.source.count;
	return true;
}

static bool gather(const struct ss_observation *observation, size_t index,
		   const struct ss_gather_plan *plan)
{
	return !warn(observation, ss_capture_gather(observation->captures[index],
						    observation->target, plan));
}

/* Copies what describes goroutines twice, to tell which of them move. */
static bool gather_goroutines(const struct ss_observation *observation,
			      const struct ss_gather_plan *plan)
{
	(void)gather(observation, 0, plan);
	ss_sleep_ns(BLOCKED_NS);
	return gather(observation, observation->source.count - 1, plan);
}

static bool read_registers(const struct ss_observation *observation,
			   const struct ss_completion *completion)
{
	_cleanup_free_ pid_t *tids = calloc(completion->count + 1, sizeof(*tids));
	size_t count = 0;

	for (size_t i = 0; tids && i < completion->count; i++) {
		if (completion->stacks[i].address == 0)
			tids[count++] = completion->stacks[i].tid;
	}
	if (count == 0)
		return false;
	watch(observation, true);
	(void)warn(
		observation,
		ss_capture_complete(observation->captures[observation->source.count - 1],
				    observation->target, &observation->capture_options,
				    tids, count));
	watch(observation, false);
	return true;
}

static bool complete(void *data, const struct ss_completion *completion, bool may_stop)
{
	struct ss_observation *observation = data;
	size_t last = observation->source.count - 1;
	size_t grown = 0;

	if (completion->goroutines)
		return gather_goroutines(observation, &completion->plan);
	if (completion->runtimes || completion->jit == SS_JIT_CAPTURE)
		return repeat(observation, &completion->plan);
	if (completion->jit == SS_JIT_LOOK)
		return gather(observation, last, &completion->plan);
	bool stopped = may_stop && read_registers(observation, completion);
	(void)warn(observation,
		   ss_capture_extend(observation->captures[last], observation->target,
				     &observation->capture_options, completion->stacks,
				     completion->count, &grown));
	return stopped || grown > 0;
}

static struct ss_late_reader *get_reader(const struct ss_observation *observation,
					 size_t index, struct ss_late_reader **reader)
{
	if (!*reader)
		ss_error_free(ss_late_reader_new(observation->captures[index],
						 observation->target, reader));
	return *reader;
}

/* A thread that has not run since the first capture has the same frames in all of them. */
static size_t read_memory(void *data, size_t index, uint64_t address, void *bytes,
			  size_t size)
{
	struct ss_observation *observation = data;
	struct ss_late_reader *reader = get_reader(observation, 0, &observation->first);

	(void)index;
	return reader ? ss_late_reader_read(reader, address, bytes, size) : 0;
}

static bool check_thread(void *data, size_t index, pid_t tid)
{
	struct ss_observation *observation = data;
	size_t last = observation->source.count - 1;
	struct ss_late_reader *reader =
		index == last ? get_reader(observation, last, &observation->last) :
				get_reader(observation, 0, &observation->first);

	return reader && ss_late_reader_check(reader, tid);
}

struct ss_error *ss_observation_new(pid_t pid, uint64_t time_ns,
				    const struct ss_process_source_options *options,
				    struct ss_observation **ret)
{
	_cleanup_(ss_observation_cleanup) struct ss_observation *observation =
		calloc(1, sizeof(*observation));

	if (!observation)
		return ss_error_no_memory();
	memcpy(&observation->options, options,
	       SS_MIN(options->size, sizeof(observation->options)));
	observation->capture_options = *options->capture;
	observation->source = (struct ss_source){
		.data = observation,
		.captures = observation->captures,
		.complete = complete,
		.read = read_memory,
		.check = check_thread,
	};
	struct ss_error *error = ss_target_open(pid, &observation->target);
	if (!error)
		error = ss_activity_take(observation->target, &observation->before);
	if (!error)
		error = capture_all(observation, time_ns / (STEPS + 1), NULL);
	if (error)
		return error;
	*ret = take_ptr(observation);
	return NULL;
}

struct ss_source *ss_observation_source(struct ss_observation *observation)
{
	return &observation->source;
}

struct ss_target *ss_observation_target(struct ss_observation *observation)
{
	return observation->target;
}

struct ss_error *ss_observation_compare(const struct ss_observation *observation,
					const struct ss_interpretation *result,
					struct ss_progress **ret)
{
	return ss_progress_new(observation->before, observation->after,
			       (const struct ss_snapshot *const *)result->snapshots,
			       result->count, ret);
}
