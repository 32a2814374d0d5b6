/*
 * The public tracker: reports modules that a process loads and unloads.
 */

#include "base/clock.h"
#include "base/error.h"
#include "recorder/build_ids.h"
#include "sampling/address_space.h"
#include "sampling/module_set.h"

struct ss_tracker {
	struct ss_address_space space;
	struct ss_module_set modules;
	ss_module_watcher *watcher;
	void *data;
	struct ss_module_event event; /* with the times of the current poll */
};

struct ss_error *ss_tracker_new(struct ss_target *target, ss_module_watcher *watcher,
				void *data, struct ss_tracker **ret)
{
	struct ss_tracker *tracker = calloc(1, sizeof(*tracker));

	if (!tracker)
		return ss_error_no_memory();
	ss_address_space_init(&tracker->space, target);
	tracker->watcher = watcher;
	tracker->data = data;
	*ret = tracker;
	return NULL;
}

void ss_tracker_free(struct ss_tracker *tracker)
{
	if (!tracker)
		return;
	ss_module_set_deinit(&tracker->modules);
	ss_address_space_deinit(&tracker->space);
	free(tracker);
}

static void report(void *data, struct ss_module_entry *module, bool loaded)
{
	struct ss_tracker *tracker = data;

	tracker->event.loaded = loaded;
	tracker->event.module = &module->module->pub;
	tracker->watcher(tracker->data, &tracker->event);
}

struct ss_error *ss_tracker_poll(struct ss_tracker *tracker)
{
	enum ss_address_space_change change;
	struct ss_error *error = ss_address_space_update(&tracker->space, &change);

	if (error)
		return error;
	tracker->event = (struct ss_module_event){
		.time_ns = ss_clock_ns(CLOCK_REALTIME),
		.monotonic_ns = ss_now_ns(),
	};
	const struct ss_capture *capture =
		change == SS_ADDRESS_SPACE_ENDED ? NULL : tracker->space.capture;
	if (capture && change != SS_ADDRESS_SPACE_SAME)
		error = ss_build_ids_find(capture, tracker->space.target);
	if (error)
		return error;
	if (change != SS_ADDRESS_SPACE_SAME &&
	    !ss_module_set_update(&tracker->modules, capture, report, tracker))
		return ss_error_no_memory();
	return change == SS_ADDRESS_SPACE_ENDED ?
		       ss_target_missing(tracker->space.target) :
		       NULL;
}
