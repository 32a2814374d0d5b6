#include "output/trace.h"

#include "output/json_document.h"

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
		const struct ss_trace_frame *frame = &stack->frames[i];
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

static void write_stack(struct ss_trace_output *output, uint32_t number)
{
	struct ss_json json = { .out = output->out };

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "event", "stack");
	ss_json_unsigned(&json, "stack", number);
	ss_json_trace_stack(&json, ss_trace_stack(output->trace, number));
	ss_json_close(&json, '}');
	(void)fputc('\n', output->out);
}

static void write_event(struct ss_trace_output *output,
			const struct ss_trace_event *event)
{
	const struct ss_trace_probe *probe = ss_trace_probe(output->trace, event->probe);
	struct ss_json json = { .out = output->out };

	for (; output->stacks < event->stack; output->stacks++)
		write_stack(output, output->stacks + 1);
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

void ss_json_durations(struct ss_json *json, const struct ss_durations *durations)
{
	ss_json_open(json, "duration", '{');
	ss_json_unsigned(json, "count", durations->count);
	ss_json_unsigned(json, "sum_ns", durations->sum_ns);
	ss_json_unsigned(json, "min_ns", durations->min_ns);
	ss_json_unsigned(json, "max_ns", durations->max_ns);
	ss_json_unsigned(json, "p50_ns", ss_durations_percentile(durations, 50));
	ss_json_unsigned(json, "p90_ns", ss_durations_percentile(durations, 90));
	ss_json_unsigned(json, "p99_ns", ss_durations_percentile(durations, 99));
	ss_json_unsigned(json, "p999_ns", ss_durations_percentile(durations, 99.9));
	ss_json_close(json, '}');
}

static void write_end(struct ss_trace_output *output)
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

const struct ss_trace_format ss_trace_json = {
	.name = "json",
	.begin = write_begin,
	.event = write_event,
	.end = write_end,
};
