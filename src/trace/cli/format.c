#include "trace/cli/format.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "report/json.h"
#include "report/print.h"
#include "stacksnap/trace.h"

enum { INDENT_MAX = 40, NS_PER_US = 1000 };

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void write_probe(const struct ss_trace_probe *probe, FILE *out)
{
	ss_escape_write(probe->name, NULL, out);
	(void)fputs(" (", out);
	ss_escape_write(base_name(probe->module->path), NULL, out);
	(void)fputc(')', out);
}

/* The time of day; the seconds are formatted once for each. */
static void write_time(struct ss_trace_output *output, uint64_t time_ns)
{
	uint64_t second = time_ns / SS_NS_PER_SECOND;

	if (second != output->last_second) {
		time_t seconds = (time_t)second;
		struct tm tm = {};
		output->last_second = second;
		output->date[0] = '\0';
		if (localtime_r(&seconds, &tm))
			(void)strftime(output->date, sizeof(output->date), "%H:%M:%S",
				       &tm); /* it fits */
	}
	(void)fprintf(output->out, "%s.%06" PRIu64 " ", output->date,
		      time_ns % SS_NS_PER_SECOND / NS_PER_US);
}

static const char *word_of(enum ss_trace_kind kind)
{
	switch (kind) {
	case SS_TRACE_ENTER:
		return "->";
	case SS_TRACE_EXIT:
		return "<-";
	case SS_TRACE_LEFT:
		return "<!";
	case SS_TRACE_OPEN:
		return "..";
	default:
		return "hit";
	}
}

static void write_stack(struct ss_trace_output *output, uint32_t number)
{
	const struct ss_trace_stack *stack = ss_trace_stack(output->trace, number);
	FILE *out = output->out;

	for (size_t i = 0; i < stack->count; i++) {
		const struct ss_trace_frame *frame = &stack->frames[i];
		(void)fputs("        ", out);
		if (frame->symbol)
			ss_escape_write(frame->symbol, NULL, out);
		if (frame->symbol && frame->module)
			(void)fputs(" (", out);
		if (frame->module)
			ss_escape_write(base_name(frame->module->path), NULL, out);
		if (frame->symbol && frame->module)
			(void)fputc(')', out);
		else if (!frame->symbol)
			(void)fprintf(out, "+0x%" PRIx64,
				      frame->module ? frame->offset : frame->pc);
		if (frame->file) {
			(void)fputs(" at ", out);
			ss_escape_write(base_name(frame->file), NULL, out);
			(void)fprintf(out, ":%" PRIu32, frame->line);
		}
		(void)fputs(frame->inlined ? " [inlined]\n" : "\n", out);
	}
	if (stack->end != SS_END_ROOT)
		(void)fprintf(out, "        (ends early: %s)\n", ss_end_name(stack->end));
}

static void write_event(struct ss_trace_output *output,
			const struct ss_trace_event *event)
{
	FILE *out = output->out;

	write_time(output, event->time_ns);
	(void)fprintf(out, "#%" PRIu64 " %d/%d ", event->sequence, (int)event->pid,
		      (int)event->tid);
	ss_escape_write(event->name, NULL, out);
	(void)fprintf(out, "  %*s%s ",
		      (int)SS_MIN(event->depth * 2, (unsigned)INDENT_MAX), "",
		      word_of(event->kind));
	write_probe(ss_trace_probe(output->trace, event->probe), out);
	for (unsigned i = 0; i < event->arg_count; i++)
		(void)fprintf(out, " 0x%" PRIx64, event->args[i]);
	if (event->kind >= SS_TRACE_EXIT) {
		(void)fputs("  ", out);
		ss_duration_write(event->duration_ns, out);
	}
	if (event->kind == SS_TRACE_LEFT)
		(void)fputs("  without a return", out);
	if (event->kind == SS_TRACE_OPEN)
		(void)fputs("  still open", out);
	if (event->stack)
		(void)fprintf(out, "  stack %" PRIu32, event->stack);
	(void)fputc('\n', out);
	/* Each stack once. */
	for (; output->stacks < event->stack; output->stacks++)
		write_stack(output, output->stacks + 1);
}

static void write_end(struct ss_trace_output *output)
{
	const struct ss_trace_summary *summary = ss_trace_summary(output->trace);
	FILE *out = output->out;

	(void)fputc('\n', out);
	for (size_t i = 0; i < ss_trace_probe_count(output->trace); i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(output->trace, i);
		const struct ss_durations *durations = &output->durations[i];
		if (!probe->hits)
			continue;
		(void)fprintf(out, "%s of ", ss_quantity_things(probe->hits, "hit").text);
		write_probe(probe, out);
		(void)fputc('\n', out);
		if (durations->count)
			ss_durations_write_line(durations, out);
		if (durations->count)
			ss_durations_write(durations, out);
	}
	ss_trace_write_totals(summary, out);
}

void ss_trace_write_probes(const struct ss_trace *trace, FILE *out)
{
	for (size_t i = 0; i < ss_trace_probe_count(trace); i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(trace, i);
		(void)fprintf(out, "0x%" PRIx64 " ", probe->offset);
		write_probe(probe, out);
		if (probe->usdt)
			(void)fputs(" [usdt]", out);
		if (probe->returns)
			(void)fprintf(out, " [%zu returns]", probe->returns);
		if (!probe->set)
			(void)fputs(" [not probed]", out);
		(void)fputc('\n', out);
	}
}

static const struct ss_trace_format trace_text = {
	.name = "text",
	.event = write_event,
	.end = write_end,
};

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

static void write_frame(const struct ss_trace_frame *frame, FILE *out)
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

static const struct ss_trace_format *const formats[] = { &trace_text, &trace_json,
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
