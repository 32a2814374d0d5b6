/*
 * The public tracker: reports modules that a process loads and unloads.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/search.h"
#include "sample/address_space.h"
#include "sample/modules.h"
#include "sample/recorder.h"
#include "stacksnap/record.h"

/* A module that was loaded since the last poll. */
struct fresh {
	const struct ss_module *module; /* of the address space */
	uint64_t time_ns;		/* the kernel's, or 0 */
};

struct ss_tracker {
	struct ss_address_space space;
	struct ss_module_set modules;
	struct ss_load_feed feed;
	struct ss_module_loads loads;
	SS_VECTOR(struct fresh) fresh;
	size_t reported; /* of these */
	int perf_errno;	 /* why the feed is closed, or 0 */
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
	tracker->perf_errno = ss_load_feed_open(&tracker->feed);
	if (!ss_load_feed_add(&tracker->feed, target->pid, &tracker->loads)) {
		ss_tracker_free(tracker);
		return ss_error_no_memory();
	}
	tracker->watcher = watcher;
	tracker->data = data;
	*ret = tracker;
	return NULL;
}

void ss_tracker_free(struct ss_tracker *tracker)
{
	if (!tracker)
		return;
	ss_load_feed_close(&tracker->feed);
	ss_module_loads_close(&tracker->loads);
	ss_vector_free(&tracker->fresh);
	ss_module_set_deinit(&tracker->modules);
	ss_address_space_deinit(&tracker->space);
	free(tracker);
}

int ss_tracker_perf_errno(const struct ss_tracker *tracker)
{
	return tracker->perf_errno;
}

/* time_ns: the kernel's; 0: that of this poll. */
static void report_at(struct ss_tracker *tracker, const struct ss_module *module,
		      bool loaded, uint64_t time_ns)
{
	struct ss_module_event event = tracker->event;

	event.loaded = loaded;
	event.module = module;
	event.by_kernel = time_ns;
	if (time_ns) {
		event.time_ns -= event.monotonic_ns - time_ns;
		event.monotonic_ns = time_ns;
	}
	tracker->watcher(tracker->data, &event);
}

/* Unloads are reported at once, before loads. False: no memory. */
static bool take_changes(struct ss_tracker *tracker, const struct ss_capture *capture)
{
	if (!ss_module_set_update(&tracker->modules, capture))
		return false;
	for (size_t i = 0; i < tracker->modules.items.count; i++) {
		const struct ss_module_entry *entry = &tracker->modules.items.items[i];
		const struct ss_module *module = &entry->module->pub;
		if (entry->state == SS_MODULE_UNLOADED)
			report_at(tracker, module, false, 0);
		if (entry->state != SS_MODULE_LOADED)
			continue;
		struct fresh *fresh = ss_vector_push(&tracker->fresh);
		if (!fresh)
			return false;
		fresh->module = module;
		fresh->time_ns = ss_module_loads_date(&tracker->loads, module,
						      tracker->space.updated_ns);
	}
	ss_module_set_settle(&tracker->modules);
	return true;
}

static int compare_fresh(const void *a, const void *b)
{
	const struct fresh *x = a;
	const struct fresh *y = b;

	return SS_COMPARE(x->time_ns, y->time_ns) ?: SS_COMPARE(x->module, y->module);
}

/* Reports new modules that were loaded before a time. */
static void report_fresh(struct ss_tracker *tracker, uint64_t before_ns)
{
	for (; tracker->reported < tracker->fresh.count; tracker->reported++) {
		const struct fresh *fresh = &tracker->fresh.items[tracker->reported];
		if (fresh->time_ns >= before_ns)
			break;
		report_at(tracker, fresh->module, true, fresh->time_ns);
	}
}

/* The list of the first poll stays in the order of addresses. */
static void sort_fresh(struct ss_tracker *tracker)
{
	tracker->reported = 0;
	if (tracker->fresh.count && tracker->fresh.count < tracker->modules.items.count)
		qsort(tracker->fresh.items, tracker->fresh.count,
		      sizeof(*tracker->fresh.items), compare_fresh);
}

/* Loads before a time of which the address space shows nothing: a module that is not there any
   more, or one that was there before and is there again. Its end is not dated. capture: NULL
   after the end of the process. */
static bool report_missed(struct ss_tracker *tracker, const struct ss_capture *capture,
			  uint64_t before_ns)
{
	struct ss_mmap_event *event;

	while ((event = ss_module_loads_take(&tracker->loads, before_ns))) {
		const struct ss_module_impl *mapped =
			capture ? ss_module_loads_find(event, capture) : NULL;
		struct ss_module_impl *module = mapped ? NULL :
							 ss_module_loads_make(event);
		uint64_t time_ns = event->time_ns;
		free(event);
		report_fresh(tracker, time_ns);
		if (mapped) {
			report_at(tracker, &mapped->pub, false, 0);
			report_at(tracker, &mapped->pub, true, time_ns);
			continue;
		}
		if (!module)
			return false;
		report_at(tracker, &module->pub, true, time_ns);
		report_at(tracker, &module->pub, false, 0);
		ss_module_unref(module);
	}
	return true;
}

struct ss_error *ss_tracker_poll(struct ss_tracker *tracker)
{
	enum ss_address_space_change change;

	tracker->fresh.count = 0; /* after an error */
	struct ss_error *error = ss_address_space_update(&tracker->space, &change);

	if (error)
		return error;
	tracker->event = (struct ss_module_event){
		.time_ns = ss_clock_ns(CLOCK_REALTIME),
		.monotonic_ns = ss_now_ns(),
	};
	if (!ss_load_feed_read(&tracker->feed))
		return ss_error_no_memory();
	const struct ss_capture *capture =
		change == SS_ADDRESS_SPACE_ENDED ? NULL : tracker->space.capture;
	if (capture && change != SS_ADDRESS_SPACE_SAME)
		error = ss_build_ids_find(capture, tracker->space.target);
	if (error)
		return error;
	if (change != SS_ADDRESS_SPACE_SAME && !take_changes(tracker, capture))
		return ss_error_no_memory();
	sort_fresh(tracker);
	if (!report_missed(tracker, capture,
			   capture ? tracker->space.updated_ns : UINT64_MAX))
		return ss_error_no_memory();
	report_fresh(tracker, UINT64_MAX);
	tracker->fresh.count = 0;
	return change == SS_ADDRESS_SPACE_ENDED ?
		       ss_target_missing(tracker->space.target) :
		       NULL;
}
