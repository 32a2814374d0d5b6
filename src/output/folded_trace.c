/*
 * A trace as folded stacks, for flame graphs: weighted by hits or, with scopes, by the time that
 * they took without the scopes within them, in microseconds.
 */
#include "output/trace.h"

#include <inttypes.h>
#include <string.h>

#include "output/escape.h"

enum { NS_PER_US = 1000 };

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

static void write_end(struct ss_trace_output *output)
{
	for (size_t i = 0; i < output->weights.count; i++) {
		const struct ss_trace_stack *stack =
			ss_trace_stack(output->trace, (uint32_t)i + 1);
		if (!output->weights.items[i])
			continue;
		ss_trace_write_folded(stack, output->weights.items[i], output->out);
	}
}

const struct ss_trace_format ss_trace_folded = {
	.name = "folded",
	.wants_stacks = true,
	.event = take_event,
	.end = write_end,
};
