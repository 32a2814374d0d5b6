#include "output/trace.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "output/escape.h"
#include "output/quantity.h"

enum { NS_PER_US = 1000, INDENT_MAX = 40 };

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
		ss_durations_write_time(event->duration_ns, out);
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

void ss_trace_write_totals(const struct ss_trace_summary *summary, FILE *out)
{
	ss_quantity_write_things(summary->hits, "hit", out);
	(void)fputs(" counted by the kernel, ", out);
	ss_quantity_write_count(summary->read, out);
	(void)fputs(" read, ", out);
	ss_quantity_write_count(summary->lost, out);
	(void)fputs(" lost", out);
	if (summary->skipped) {
		(void)fputs(", ", out);
		ss_quantity_write_count(summary->skipped, out);
		(void)fputs(" not shown because of --every or --max-rate", out);
	}
	if (summary->unpaired) {
		(void)fputs(", ", out);
		ss_quantity_write_things(summary->unpaired, "return", out);
		(void)fputs(" of calls from before", out);
	}
	(void)fputc('\n', out);
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
		ss_quantity_write_things(probe->hits, "hit", out);
		(void)fputs(" of ", out);
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

const struct ss_trace_format ss_trace_text = {
	.name = "text",
	.event = write_event,
	.end = write_end,
};
