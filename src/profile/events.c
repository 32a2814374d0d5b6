#include "profile/events.h"

#include <string.h>

static bool add_probe(struct ss_load_events *events, size_t index,
		      const uint32_t *modules)
{
	struct ss_profile *profile = events->profile;
	const struct ss_recorded_probe *recorded =
		ss_recording_probe(events->recording, index);
	const struct ss_profile_probe probe = {
		.name = ss_profile_text(profile, recorded->name),
		.module = recorded->module == UINT32_MAX ? SS_ID_NONE :
							   modules[recorded->module],
		.offset = recorded->offset,
		.kind = recorded->usdt ? SS_PROBE_OF_USDT :
			recorded->line ? SS_PROBE_OF_LINE :
					 SS_PROBE_OF_FUNCTION,
	};

	events->probes[index] = probe.name ? ss_idtable_add(&profile->probes, &probe,
							    sizeof(probe), NULL) :
					     SS_ID_NONE;
	return events->probes[index] != SS_ID_NONE;
}

bool ss_load_events_init(struct ss_load_events *events, struct ss_profile *profile,
			 const struct ss_recording *recording, const uint32_t *modules)
{
	size_t count = ss_recording_probe_count(recording);
	bool added = true;

	*events = (struct ss_load_events){ .profile = profile, .recording = recording };
	events->probes = calloc(count + 1, sizeof(*events->probes));
	for (size_t i = 0; events->probes && added && i < count; i++)
		added = add_probe(events, i, modules);
	return events->probes && added;
}

void ss_load_events_deinit(struct ss_load_events *events)
{
	for (size_t i = 0; i < events->scopes.count; i++)
		ss_vector_free(&events->scopes.items[i].items);
	ss_vector_free(&events->scopes);
	free(events->probes);
}

/* The time of a scope is not that of the scope that contains it. False without memory. */
static bool nest(struct ss_load_events *events, struct ss_load_scopes *scopes,
		 uint32_t number, uint64_t begin_ns)
{
	struct ss_profile_event *all = events->profile->events.items;
	const struct ss_profile_event *event = &all[number];
	uint64_t end_ns = begin_ns + event->duration_ns;

	if (event->kind == SS_TRACE_HIT)
		return true;
	while (scopes->items.count) {
		const struct ss_load_scope *last =
			&scopes->items.items[scopes->items.count - 1];
		if (last->depth < event->depth && last->end_ns >= end_ns)
			break;
		scopes->items.count--;
	}
	if (scopes->items.count) {
		struct ss_profile_event *outer =
			&all[scopes->items.items[scopes->items.count - 1].event];
		outer->self_ns -= SS_MIN(outer->self_ns, event->duration_ns);
	}
	struct ss_load_scope *scope = ss_vector_push(&scopes->items);
	if (scope)
		*scope = (struct ss_load_scope){ .event = number,
						 .depth = event->depth,
						 .end_ns = end_ns };
	return scope;
}

static bool copy_args(struct ss_profile *profile, const struct ss_recorded_event *from)
{
	for (unsigned i = 0; i < from->arg_count; i++) {
		uint64_t *arg = ss_vector_push(&profile->event_args);
		if (!arg)
			return false;
		*arg = from->args[i];
	}
	return true;
}

bool ss_load_events_set(struct ss_load_events *events, const struct ss_sample *sample,
			uint32_t thread, struct ss_profile_run *run)
{
	struct ss_profile *profile = events->profile;
	struct ss_recorded_event recorded;

	if (!ss_recording_event(events->recording, sample, &recorded))
		return true;
	while (events->scopes.count <= thread) {
		if (!ss_vector_push(&events->scopes))
			return false;
	}
	struct ss_profile_event *event = ss_vector_push(&profile->events);
	if (!event)
		return false;
	*event = (struct ss_profile_event){
		.duration_ns = recorded.duration_ns,
		.self_ns = recorded.duration_ns,
		.probe = events->probes[recorded.probe],
		.args = (uint32_t)profile->event_args.count,
		.depth = recorded.depth & 0xffffff,
		.kind = (unsigned)recorded.kind & 15,
		.arg_count = recorded.arg_count & 15,
	};
	run->event = (uint32_t)profile->events.count;
	return copy_args(profile, &recorded) &&
	       nest(events, &events->scopes.items[thread], run->event - 1,
		    sample->monotonic_ns);
}
