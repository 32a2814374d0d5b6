#include "trace/cli/format.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/recording_format.h"
#include "report/json.h"
#include "report/print.h"
#include "stacksnap/trace.h"

enum { NS_PER_US = 1000 };

enum { VERSION = 1 };

static void write_begin(struct ss_trace_output *output)
{
	struct ss_json json = { .out = output->out };

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "event", "begin");
	ss_json_unsigned(&json, "version", VERSION);
	ss_json_open(&json, "probes", '[');
	for (size_t i = 0; i < ss_trace_probe_count(output->trace); i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(output->trace, i);
		ss_json_open(&json, NULL, '{');
		ss_json_text(&json, "function", probe->name);
		ss_json_text(&json, "module", probe->module->path);
		ss_json_text(&json, "build_id", probe->module->build_id);
		ss_json_hex(&json, "offset", probe->offset);
		ss_json_text(&json, "kind",
			     probe->usdt ? "usdt" :
			     probe->line ? "line" :
					   "function");
		ss_json_bool(&json, "set", probe->set);
		ss_json_bool(&json, "scope", probe->returns > 0);
		ss_json_close(&json, '}');
	}
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc('\n', output->out);
}

void ss_json_trace_stack(struct ss_json *json, const struct ss_trace_stack *stack)
{
	ss_json_open(json, "frames", '[');
	for (size_t i = 0; i < stack->count; i++)
		ss_json_frame(json, &stack->frames[i], false);
	ss_json_close(json, ']');
	ss_json_text(json, "end", ss_end_name(stack->end));
}

static void write_json_stack(struct ss_trace_output *output, uint32_t number)
{
	struct ss_json json = { .out = output->out };

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "event", "stack");
	ss_json_unsigned(&json, "stack", number);
	ss_json_trace_stack(&json, ss_trace_stack(output->trace, number));
	ss_json_close(&json, '}');
	(void)fputc('\n', output->out);
}

static void write_json_event(struct ss_trace_output *output,
			     const struct ss_trace_event *event)
{
	const struct ss_trace_probe *probe = ss_trace_probe(output->trace, event->probe);
	struct ss_json json = { .out = output->out };

	for (; output->stacks < event->stack; output->stacks++)
		write_json_stack(output, output->stacks + 1);
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "event", ss_trace_kind_name(event->kind));
	ss_json_unsigned(&json, "sequence", event->sequence);
	ss_json_unsigned(&json, "time_ns", event->time_ns);
	ss_json_unsigned(&json, "monotonic_ns", event->monotonic_ns);
	ss_json_signed(&json, "pid", event->pid);
	ss_json_signed(&json, "tid", event->tid);
	ss_json_text(&json, "thread", event->name);
	ss_json_unsigned(&json, "probe", event->probe);
	ss_json_text(&json, "function", probe->name);
	if (probe->returns)
		ss_json_unsigned(&json, "depth", event->depth);
	if (event->kind >= SS_TRACE_EXIT) {
		ss_json_unsigned(&json, "entry", event->entry);
		ss_json_unsigned(&json, "duration_ns", event->duration_ns);
	}
	if (event->stack)
		ss_json_unsigned(&json, "stack", event->stack);
	if (event->arg_count) {
		ss_json_open(&json, "arguments", '[');
		for (unsigned i = 0; i < event->arg_count; i++)
			ss_json_hex(&json, NULL, event->args[i]);
		ss_json_close(&json, ']');
	}
	ss_json_close(&json, '}');
	(void)fputc('\n', output->out);
}

static void write_json_end(struct ss_trace_output *output)
{
	struct ss_json json = { .out = output->out };

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "event", "end");
	ss_json_members(&json, &ss_record_schemas[SS_DEFINE_TRACE],
			ss_trace_summary(output->trace), 0);
	ss_json_open(&json, "probes", '[');
	for (size_t i = 0; i < ss_trace_probe_count(output->trace); i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(output->trace, i);
		ss_json_open(&json, NULL, '{');
		ss_json_text(&json, "function", probe->name);
		ss_json_unsigned(&json, "hits", probe->hits);
		if (output->durations[i].count)
			ss_json_durations(&json, &output->durations[i]);
		ss_json_close(&json, '}');
	}
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc('\n', output->out);
}

static const struct ss_trace_format trace_json = {
	.name = "json",
	.begin = write_begin,
	.event = write_json_event,
	.end = write_json_end,
};

/*
 * The stacks of a trace as a profile: weighted by hits or, with scopes, by the time that they took
 * without the scopes within them, in microseconds.
 */

bool ss_trace_add_total(struct ss_profile *profile, const struct ss_trace_stack *stack,
			const uint64_t values[SS_PROFILE_UNITS_MAX])
{
	struct ss_profile_total *total = ss_vector_push(&profile->totals);
	uint32_t call = 0;

	for (size_t i = stack->count; total && i-- > 0 && call != SS_ID_NONE;) {
		const struct ss_frame *frame = &stack->frames[i];
		const uint32_t module =
			frame->module ? ss_profile_module(profile, frame->module, true) :
					SS_ID_NONE;
		const uint32_t id = ss_profile_add_frame(profile, frame, module, false);
		call = id == SS_ID_NONE ? id : ss_profile_call(profile, call, id);
	}
	if (!total || call == SS_ID_NONE)
		return false;
	total->call = call;
	memcpy(total->values, values, sizeof(total->values));
	return true;
}

static void add(struct ss_trace_output *output, uint32_t stack, uint64_t weight)
{
	while (output->weights.count < stack) {
		if (!ss_vector_push(&output->weights))
			return;
	}
	if (stack)
		output->weights.items[stack - 1] += weight;
}

static void take_event(struct ss_trace_output *output, const struct ss_trace_event *event)
{
	if (event->kind == SS_TRACE_HIT)
		add(output, event->stack, 1);
	else if (event->kind != SS_TRACE_ENTER)
		add(output, event->entry_stack, event->self_ns / NS_PER_US);
	output->scopes |= event->kind != SS_TRACE_HIT;
}

void ss_trace_write_profile(struct ss_trace_output *output, struct ss_profile *profile)
{
	const struct ss_format_options options = { .size = sizeof(options) };

	output->failed = !profile;
	if (!profile)
		return;
	profile->elapsed_ns = output->elapsed_ns;
	profile->start_ns = ss_clock_ns(CLOCK_REALTIME) - output->elapsed_ns;
	_cleanup_error_ struct ss_error *error =
		output->profile->write_profile(profile, &options, output->out);
	output->failed = error;
}

static void write_profile(struct ss_trace_output *output)
{
	static const struct ss_profile_unit hits = { "hits", "count" };
	static const struct ss_profile_unit time = { "duration", "microseconds" };
	_cleanup_(ss_profile_cleanup) struct ss_profile *profile = ss_profile_new();
	bool whole = profile;

	for (size_t i = 0; whole && i < output->weights.count; i++) {
		const uint64_t values[SS_PROFILE_UNITS_MAX] = {
			output->weights.items[i]
		};
		whole = !*values ||
			ss_trace_add_total(profile,
					   ss_trace_stack(output->trace, (uint32_t)i + 1),
					   values);
	}
	if (whole) {
		profile->units[0] = output->scopes ? time : hits;
		profile->unit_count = profile->period = 1;
	}
	ss_trace_write_profile(output, whole ? profile : NULL);
}

const struct ss_trace_format ss_trace_profile = {
	.wants_stacks = true,
	.event = take_event,
	.end = write_profile,
};

const struct ss_trace_format *ss_trace_format_find(const char *name, bool growth,
						   const struct ss_format **ret_profile)
{
	static const struct ss_trace_format *const formats[2][2] = {
		{ &ss_trace_text, &trace_json }, { &ss_growth_text, &ss_growth_json }
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(formats[growth]); i++) {
		if (strcmp(formats[growth][i]->name, name) == 0)
			return formats[growth][i];
	}
	*ret_profile = ss_format_find(SS_FORMAT_TOTALS, name);
	if (!*ret_profile)
		return NULL;
	return growth ? &ss_growth_profile : &ss_trace_profile;
}
