#include "trace/cli/format.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
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
	for (size_t i = 0; i < stack->count; i++) {
		const struct ss_frame *frame = &stack->frames[i];
		ss_json_open(json, NULL, '{');
		ss_json_hex(json, "pc", frame->pc);
		ss_json_text(json, "module", frame->module ? frame->module->path : NULL);
		ss_json_hex_if(json, "offset", frame->module != NULL, frame->offset);
		ss_json_text(json, "symbol", frame->symbol);
		ss_json_text(json, "file", frame->file);
		ss_json_signed_if(json, "line", frame->line > 0, frame->line);
		ss_json_bool(json, "inlined", frame->inlined);
		ss_json_close(json, '}');
	}
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
	const struct ss_trace_summary *summary = ss_trace_summary(output->trace);
	struct ss_json json = { .out = output->out };

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "event", "end");
	ss_json_unsigned(&json, "hits", summary->hits);
	ss_json_unsigned(&json, "read", summary->read);
	ss_json_unsigned(&json, "lost", summary->lost);
	ss_json_unsigned(&json, "skipped", summary->skipped);
	ss_json_unsigned(&json, "unpaired", summary->unpaired);
	ss_json_bool(&json, "process_ended", summary->ended);
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
 * A trace as folded stacks, for flame graphs: weighted by hits or, with scopes, by the time that
 * they took without the scopes within them, in microseconds.
 */

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
}

static void write_frame(const struct ss_frame *frame, FILE *out)
{
	static const struct ss_substitution substitution[] = { { ";", ":" } };
	const char *slash = frame->module ? strrchr(frame->module->path, '/') : NULL;

	if (frame->symbol) {
		ss_escape_write(frame->symbol, substitution, out);
		return;
	}
	if (frame->module)
		ss_escape_write(slash ? slash + 1 : frame->module->path, substitution,
				out);
	(void)fprintf(out, "+0x%" PRIx64, frame->module ? frame->offset : frame->pc);
}

void ss_trace_write_folded(const struct ss_trace_stack *stack, uint64_t weight, FILE *out)
{
	for (size_t k = stack->count; k-- > 0;) {
		write_frame(&stack->frames[k], out);
		if (k > 0)
			(void)fputc(';', out);
	}
	(void)fprintf(out, " %" PRIu64 "\n", weight);
}

static void write_folded_end(struct ss_trace_output *output)
{
	for (size_t i = 0; i < output->weights.count; i++) {
		const struct ss_trace_stack *stack =
			ss_trace_stack(output->trace, (uint32_t)i + 1);
		if (!output->weights.items[i])
			continue;
		ss_trace_write_folded(stack, output->weights.items[i], output->out);
	}
}

static const struct ss_trace_format trace_folded = {
	.name = "folded",
	.wants_stacks = true,
	.event = take_event,
	.end = write_folded_end,
};

static const struct ss_trace_format *const formats[] = { &ss_trace_text, &trace_json,
							 &trace_folded };

static const struct ss_trace_format *find(const struct ss_trace_format *const *table,
					  size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	}
	return NULL;
}

const struct ss_trace_format *ss_trace_format_find(const char *name)
{
	return find(formats, SS_ARRAY_SIZE(formats), name);
}

const struct ss_trace_format *ss_growth_format_find(const char *name)
{
	static const struct ss_trace_format *const growth[] = {
		&ss_growth_text, &ss_growth_json, &ss_growth_folded, &ss_growth_pprof
	};

	return find(growth, SS_ARRAY_SIZE(growth), name);
}
