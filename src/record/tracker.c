/*
 * The public tracker: tells of the modules of a process, and of their coming and going.
 */
#include <time.h>

#include "base/error.h"
#include "capture/world.h"
#include "record/tracked.h"

struct ss_tracker {
	struct ss_world world;
	struct ss_tracked_list modules;
	ss_module_watcher *watcher;
	void *data;
	struct ss_module_event event; /* the times of the look at hand */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts); /* cannot fail: the clock exists */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct ss_error *ss_tracker_new(struct ss_target *target, ss_module_watcher *watcher,
				void *data, struct ss_tracker **ret)
{
	struct ss_tracker *tracker = calloc(1, sizeof(*tracker));

	if (!tracker)
		return ss_error_no_memory();
	ss_world_init(&tracker->world, target);
	tracker->watcher = watcher;
	tracker->data = data;
	*ret = tracker;
	return NULL;
}

void ss_tracker_free(struct ss_tracker *tracker)
{
	if (!tracker)
		return;
	ss_tracked_deinit(&tracker->modules);
	ss_world_deinit(&tracker->world);
	free(tracker);
}

static void tell(void *data, struct ss_tracked *module, bool loaded)
{
	struct ss_tracker *tracker = data;

	tracker->event.loaded = loaded;
	tracker->event.module = &module->module->pub;
	tracker->watcher(tracker->data, &tracker->event);
}

struct ss_error *ss_tracker_poll(struct ss_tracker *tracker)
{
	enum ss_world_change change;
	struct ss_error *error = ss_world_look(&tracker->world, &change);

	if (error)
		return error;
	tracker->event = (struct ss_module_event){
		.time_ns = clock_ns(CLOCK_REALTIME),
		.monotonic_ns = clock_ns(CLOCK_MONOTONIC),
	};
	const struct ss_capture *capture =
		change == SS_WORLD_ENDED ? NULL : tracker->world.capture;
	if (change != SS_WORLD_SAME &&
	    !ss_tracked_update(&tracker->modules, capture, tell, tracker))
		return ss_error_no_memory();
	return change == SS_WORLD_ENDED ?
		       ss_error_new(SS_ERROR_NO_PROCESS, "process %d has ended",
				    tracker->world.target->pid) :
		       NULL;
}
