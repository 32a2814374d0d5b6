/*
 * Reads the events of a recorded trace. Hits and entries stand for the samples of the recording,
 * in their order; what ends a scope completes the event of its entry.
 */
#include <string.h>

#include "recording/format.h"
#include "recording/recording.h"

bool ss_probe_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *c)
{
	struct {
		uint64_t offset;
		uint64_t flags;
		uint32_t module; /* + 1 */
		uint32_t name;
	} key = {};
	uint32_t module = ss_cursor_index(c, scope->modules.items.count + 1);
	bool added = false;

	key.offset = ss_cursor_uleb128(c);
	key.name = ss_scope_read_text(scope, c);
	key.flags = ss_cursor_uleb128(c);
	if (c->failed)
		return false;
	key.module = module ? scope->modules.items.items[module - 1] + 1 : 0;
	uint32_t id = ss_recording_number(recording, &recording->probe_ids, &key,
					  sizeof(key), SS_PROBES_MAX, &added);
	struct ss_recorded_probe *probe = added ? ss_vector_push(&recording->probes) :
						  NULL;
	if (added && !probe)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (probe)
		*probe = (struct ss_recorded_probe){
			.name = key.name ? recording->texts.items[key.name - 1] : "",
			.module = key.module ? key.module - 1 : UINT32_MAX,
			.offset = key.offset,
			.usdt = key.flags & SS_PROBE_USDT,
			.line = key.flags & SS_PROBE_LINE,
			.scope = key.flags & SS_PROBE_SCOPE,
		};
	return ss_locals_add(recording, &scope->probes, &scope->locals, id);
}

bool ss_trace_totals_read(struct ss_recording *recording, struct ss_scope *scope,
			  struct ss_cursor *c)
{
	struct ss_trace_summary *trace = &recording->trace;
	uint64_t *const numbers[] = { &trace->hits, &trace->read, &trace->lost,
				      &trace->skipped, &trace->unpaired };

	(void)scope;
	for (size_t i = 0; i < SS_ARRAY_SIZE(numbers); i++)
		*numbers[i] = ss_cursor_uleb128(c);
	trace->ended = ss_cursor_uleb128(c);
	recording->has_trace = !c->failed;
	return !c->failed;
}

static bool has_room(const struct ss_recording *recording)
{
	uint64_t most = SS_EVENTS + SS_EVENTS_PER_BYTE * recording->info.size;

	return recording->events.count < SS_MIN(most, (uint64_t)SS_EVENTS_MAX) &&
	       recording->event_args.count <= SS_EVENTS_MAX;
}

static bool read_begin(struct ss_recording *recording, const struct ss_scope *scope,
		       struct ss_kept_event event, struct ss_cursor *c)
{
	event.probe = ss_locals_read(&scope->probes, c);
	event.args = (uint32_t)recording->event_args.count;
	if (c->failed || event.arg_count > SS_TRACE_ARGS)
		return false;
	if (!has_room(recording))
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	for (unsigned i = 0; i < event.arg_count; i++) {
		uint64_t *arg = ss_vector_push(&recording->event_args);
		if (!arg)
			return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		*arg = ss_cursor_uleb128(c);
	}
	struct ss_kept_event *slot = ss_vector_push(&recording->events);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = event;
	return !c->failed;
}

static bool read_end(struct ss_recording *recording, enum ss_trace_kind kind,
		     struct ss_cursor *c)
{
	uint64_t distance = ss_cursor_uleb128(c);
	uint64_t duration_ns = ss_cursor_uleb128(c);

	if (c->failed || distance == 0 || distance > recording->events.count)
		return false;
	struct ss_kept_event *event =
		&recording->events.items[recording->events.count - distance];
	if (event->kind != SS_TRACE_ENTER)
		return false;
	event->kind = kind;
	event->duration_ns = duration_ns;
	return true;
}

static bool read_event(struct ss_recording *recording, const struct ss_scope *scope,
		       struct ss_cursor *c)
{
	uint64_t head = ss_cursor_uleb128(c);
	uint64_t kind = head & ((1U << SS_EVENT_KIND_BITS) - 1);
	uint64_t args = head >> SS_EVENT_KIND_BITS & ((1U << SS_EVENT_ARGS_BITS) - 1);
	uint64_t depth = head >> (SS_EVENT_KIND_BITS + SS_EVENT_ARGS_BITS);

	if (c->failed || kind > SS_TRACE_OPEN || depth > SS_EVENT_DEPTH_MAX)
		return false;
	if (kind >= SS_TRACE_EXIT)
		return read_end(recording, (enum ss_trace_kind)kind, c);
	return read_begin(recording, scope,
			  (struct ss_kept_event){ .kind = kind & 15,
						  .arg_count = args & 15,
						  .depth = depth & 0xffffff },
			  c);
}

bool ss_events_read(struct ss_recording *recording, const struct ss_scope *scope,
		    struct ss_cursor *c)
{
	uint64_t first = ss_cursor_uleb128(c);

	if (c->failed ||
	    first - recording->info.first_sequence != recording->events.count)
		return false;
	while (c->at < c->end) {
		if (!read_event(recording, scope, c))
			return false;
	}
	return !c->failed;
}

size_t ss_recording_probe_count(const struct ss_recording *recording)
{
	return recording->probes.count;
}

const struct ss_recorded_probe *ss_recording_probe(const struct ss_recording *recording,
						   size_t index)
{
	return &recording->probes.items[index];
}

const struct ss_trace_summary *
ss_recording_trace_summary(const struct ss_recording *recording)
{
	return recording->has_trace ? &recording->trace : NULL;
}

bool ss_recording_event(const struct ss_recording *recording,
			const struct ss_sample *sample, struct ss_recorded_event *ret)
{
	uint64_t index = sample->sequence - recording->info.first_sequence;

	if (index >= recording->events.count)
		return false;
	const struct ss_kept_event *event = &recording->events.items[index];
	*ret = (struct ss_recorded_event){ .kind = (enum ss_trace_kind)event->kind,
					   .probe = event->probe,
					   .depth = event->depth,
					   .duration_ns = event->duration_ns,
					   .arg_count = event->arg_count };
	if (event->arg_count)
		memcpy(ret->args, &recording->event_args.items[event->args],
		       event->arg_count * sizeof(*ret->args));
	return true;
}
