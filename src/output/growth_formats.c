/*
 * The formats of "trace --alloc". Estimates have their error with them.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "output/escape.h"
#include "output/growth.h"
#include "output/quantity.h"
#include "output/trace.h"
#include "profile/label.h"

enum { FRAMES_SHOWN = 24, SIZE_COLUMN = 12 };

void ss_growth_begin(struct ss_trace_output *output)
{
	output->growth->begin_ns = ss_now_ns();
}

void ss_growth_take(struct ss_trace_output *output, const struct ss_trace_event *event)
{
	/* What does not fit is missing in the sum. */
	if (event->kind == SS_TRACE_HIT)
		(void)ss_growth_add(output->growth, event);
}

static void write_frame(const struct ss_trace_frame *frame, FILE *out)
{
	if (frame->symbol)
		ss_escape_write(frame->symbol, NULL, out);
	else
		(void)fprintf(out, "0x%" PRIx64,
			      frame->module ? frame->offset : frame->pc);
	if (frame->module) {
		(void)fputs(" (", out);
		ss_escape_write(ss_label_base(frame->module->path), NULL, out);
		(void)fputc(')', out);
	}
	if (frame->file) {
		(void)fputs(" at ", out);
		ss_escape_write(frame->file, NULL, out);
		(void)fprintf(out, ":%" PRIu32, frame->line);
	}
}

static void write_site(const struct ss_trace_output *output,
		       const struct ss_growth_site *site)
{
	const struct ss_growth *growth = output->growth;
	const double unit = (double)growth->sample_bytes;
	FILE *out = output->out;

	(void)fputc('\n', out);
	ss_quantity_write_size_column(site->samples * growth->sample_bytes, SIZE_COLUMN,
				      out);
	(void)fputs(" new, +- ", out);
	ss_quantity_write_size((uint64_t)(ss_growth_error(site->samples) * unit), out);
	(void)fputs(" (", out);
	ss_quantity_write_things(site->samples, "sample", out);
	(void)fputs("); held ", out);
	ss_quantity_write_size(site->held * growth->sample_bytes, out);
	(void)fputs(", +- ", out);
	ss_quantity_write_size((uint64_t)(ss_growth_error(site->held) * unit), out);
	(void)fputc('\n', out);
	if (!site->stack) {
		(void)fputs("    stack not known\n", out);
		return;
	}
	const struct ss_trace_stack *stack = ss_trace_stack(output->trace, site->stack);
	for (size_t i = 0; i < stack->count && i < FRAMES_SHOWN; i++) {
		(void)fprintf(out, "    #%-2zu ", i);
		write_frame(&stack->frames[i], out);
		(void)fputc('\n', out);
	}
	if (stack->count > FRAMES_SHOWN)
		(void)fprintf(out, "    and %zu more\n", stack->count - FRAMES_SHOWN);
}

static void write_text(struct ss_trace_output *output)
{
	struct ss_growth *growth = output->growth;
	FILE *out = output->out;
	size_t shown = 0;

	if (!ss_growth_finish(growth, output->trace))
		return;
	ss_quantity_write_size(growth->samples * growth->sample_bytes, out);
	(void)fputs(" of new memory in ", out);
	ss_quantity_write_time(growth->end_ns - growth->begin_ns, out);
	if (ss_trace_summary(output->trace)->ended) {
		(void)fputs("; the process has ended", out);
	} else {
		(void)fputs(", of which it holds ", out);
		ss_quantity_write_size(growth->held * growth->sample_bytes, out);
	}
	(void)fputs("; each sample stands for ", out);
	ss_quantity_write_size(growth->sample_bytes, out);
	if (growth->unsampled_bytes) {
		(void)fputs("; up to ", out);
		ss_quantity_write_size(growth->unsampled_bytes, out);
		(void)fputs(" more is in no sample", out);
	}
	(void)fputc('\n', out);
	for (size_t i = 0; i < growth->sites.count; i++) {
		if (!ss_growth_shows(growth, &growth->sites.items[i]))
			continue;
		if (shown < growth->rows)
			write_site(output, &growth->sites.items[i]);
		shown++;
	}
	if (shown > growth->rows)
		(void)fprintf(out, "\nand %zu more stacks (--rows)\n",
			      shown - growth->rows);
}

/* As in folded_trace.c, with bytes. */
static void write_folded(struct ss_trace_output *output)
{
	struct ss_growth *growth = output->growth;

	if (!ss_growth_finish(growth, output->trace))
		return;
	for (size_t i = 0; i < growth->sites.count; i++) {
		const struct ss_growth_site *site = &growth->sites.items[i];
		if (!site->stack || !ss_growth_shows(growth, site))
			continue;
		ss_trace_write_folded(ss_trace_stack(output->trace, site->stack),
				      (growth->held_only ? site->held : site->samples) *
					      growth->sample_bytes,
				      output->out);
	}
}

const struct ss_trace_format ss_growth_text = {
	.name = "text",
	.wants_stacks = true,
	.begin = ss_growth_begin,
	.event = ss_growth_take,
	.end = write_text,
};

const struct ss_trace_format ss_growth_folded = {
	.name = "folded",
	.wants_stacks = true,
	.begin = ss_growth_begin,
	.event = ss_growth_take,
	.end = write_folded,
};
