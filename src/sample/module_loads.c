#include "sample/module_loads.h"

#include <stdlib.h>
#include <string.h>

#include "data/capture.h"

int ss_module_loads_open(struct ss_module_loads *loads)
{
	return ss_mmap_events_open(&loads->events);
}

void ss_module_loads_close(struct ss_module_loads *loads)
{
	for (size_t i = 0; i < loads->pending.count; i++)
		free(loads->pending.items[i]);
	ss_vector_free(&loads->pending);
	free(loads->recent);
	ss_mmap_events_close(&loads->events);
}

/* A short path needs no room for a long one. */
static struct ss_mmap_event *copy(const struct ss_mmap_event *event)
{
	size_t size = offsetof(struct ss_mmap_event, path) + strlen(event->path) + 1;
	struct ss_mmap_event *ret = malloc(size);

	if (ret)
		memcpy(ret, event, size);
	return ret;
}

/* In the order of time: each CPU has a ring of its own. */
static bool insert(struct ss_module_loads *loads, struct ss_mmap_event *event)
{
	struct ss_mmap_event **slot = event ? ss_vector_push(&loads->pending) : NULL;
	size_t at = loads->pending.count - 1;

	if (!slot) {
		free(event);
		return false;
	}
	for (; at > 0 && loads->pending.items[at - 1]->time_ns > event->time_ns; at--)
		loads->pending.items[at] = loads->pending.items[at - 1];
	loads->pending.items[at] = event;
	return true;
}

/* False: no memory. */
static bool note_place(struct ss_module_loads *loads, const struct ss_mmap_event *event)
{
	if (!loads->recent)
		loads->recent = calloc(SS_RECENT_LOADS, sizeof(*loads->recent));
	if (!loads->recent)
		return false;
	struct ss_recent_load *recent =
		&loads->recent[loads->recent_count++ % SS_RECENT_LOADS];
	loads->unknown_ns = SS_MAX(loads->unknown_ns, recent->time_ns);
	*recent = (struct ss_recent_load){ .time_ns = event->time_ns,
					   .start = event->start,
					   .end = event->start + event->size };
	return true;
}

bool ss_module_loads_add(struct ss_module_loads *loads, const struct ss_mmap_event *event)
{
	loads->last_code_ns = SS_MAX(loads->last_code_ns, event->time_ns);
	if (event->anonymous)
		return true;
	loads->last_ns = SS_MAX(loads->last_ns, event->time_ns);
	return note_place(loads, event) && (loads->pending.count == SS_MODULE_LOADS_MAX ||
					    insert(loads, copy(event)));
}

bool ss_module_loads_read(struct ss_module_loads *loads, pid_t pid)
{
	struct ss_mmap_event event;

	while (ss_mmap_events_next(&loads->events, &event)) {
		if (event.pid == pid && !ss_module_loads_add(loads, &event))
			return false;
	}
	return true;
}

bool ss_module_loads_covered(const struct ss_module_loads *loads, uint64_t address,
			     uint64_t since_ns)
{
	if (loads->unknown_ns >= since_ns)
		return true;
	for (size_t i = 0; loads->recent && i < SS_RECENT_LOADS; i++) {
		const struct ss_recent_load *recent = &loads->recent[i];
		if (recent->time_ns >= since_ns && address >= recent->start &&
		    address < recent->end)
			return true;
	}
	return false;
}

static struct ss_mmap_event *take(struct ss_module_loads *loads, size_t at)
{
	struct ss_mmap_event *event = loads->pending.items[at];

	loads->pending.count--;
	memmove(&loads->pending.items[at], &loads->pending.items[at + 1],
		(loads->pending.count - at) * sizeof(*loads->pending.items));
	return event;
}

uint64_t ss_module_loads_date(struct ss_module_loads *loads,
			      const struct ss_module *module)
{
	uint64_t time_ns = 0;
	uint64_t start = 0;

	for (size_t i = loads->pending.count; i-- > 0;) {
		const struct ss_mmap_event *event = loads->pending.items[i];
		if (event->start < module->base ||
		    event->start - module->base >= module->size)
			continue;
		/* A load has an event for each executable segment. The same segment once
		   more is of an earlier load. */
		if (time_ns && event->start == start)
			break;
		if (!time_ns)
			start = event->start;
		time_ns = event->time_ns;
		free(take(loads, i));
	}
	return time_ns;
}

uint64_t ss_module_loads_first(const struct ss_module_loads *loads,
			       const struct ss_module *module)
{
	for (size_t i = 0; i < loads->pending.count; i++) {
		const struct ss_mmap_event *event = loads->pending.items[i];
		if (event->start < module->base + module->size &&
		    event->start + event->size > module->base)
			return event->time_ns;
	}
	return 0;
}

struct ss_mmap_event *ss_module_loads_take(struct ss_module_loads *loads,
					   uint64_t before_ns)
{
	if (loads->pending.count == 0 || loads->pending.items[0]->time_ns >= before_ns)
		return NULL;
	return take(loads, 0);
}

const struct ss_module_impl *ss_module_loads_find(const struct ss_mmap_event *event,
						  const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module_impl *module = capture->modules.items[i];
		if (event->start >= module->pub.base &&
		    event->start - module->pub.base < module->pub.size &&
		    strcmp(event->path, module->pub.path) == 0)
			return module;
	}
	return NULL;
}

struct ss_module_impl *ss_module_loads_make(const struct ss_mmap_event *event)
{
	/* As linkers lay out files: from the beginning of the file on. */
	uint64_t before = SS_MIN(event->offset, event->start);
	struct ss_module_impl *module = ss_module_new(event->path, event->start - before,
						      event->start + event->size);

	if (module && event->build_id_size)
		(void)ss_module_set_build_id(module, event->build_id,
					     event->build_id_size); /* or none */
	return module;
}
