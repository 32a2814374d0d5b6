#include "trace/cli/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/search.h"
#include "report/print.h"
#include "stacksnap/trace.h"

/* Of frames. */
const struct ss_format_options ss_trace_plain = { .size = sizeof(ss_trace_plain) };

enum { INDENT_MAX = 40, NS_PER_US = 1000, CALLERS_SHOWN = 10, PERCENT = 100 };

static void write_probe(const struct ss_trace_probe *probe, FILE *out)
{
	ss_escape_write(probe->name, NULL, out);
	(void)fputs(" (", out);
	ss_escape_write(ss_path_base(probe->module->path), NULL, out);
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
		(void)fputs("        ", out);
		ss_text_write_frame(&stack->frames[i], &ss_trace_plain, out);
	}
	if (!ss_end_is_outermost(stack->end))
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

/* Without --verbose, hits are not shown: they are counted by what called them, and the slowest
   calls are kept. */

/* No padding. */
struct caller_key {
	uint32_t probe;
	uint32_t stack; /* 0: not known */
};

static void count_caller(struct ss_trace_output *output,
			 const struct ss_trace_event *event, uint32_t stack)
{
	const struct caller_key key = { (uint32_t)event->probe, stack };
	bool added = false;

	if (!ss_vector_reserve(&output->callers, 1))
		return;
	uint32_t id = ss_idtable_add(&output->caller_ids, &key, sizeof(key), &added);
	if (id == SS_ID_NONE)
		return;
	struct ss_trace_caller *caller = added ? ss_vector_push(&output->callers) :
						 &output->callers.items[id];
	caller->probe = key.probe;
	caller->stack = stack;
	caller->hits += event->kind <= SS_TRACE_ENTER;
	caller->duration_ns += event->duration_ns;
}

/* Slowest first. */
static void keep_slow(struct ss_trace_output *output, const struct ss_trace_event *event)
{
	struct ss_trace_slow *slow = output->slow[event->probe].calls;
	size_t at = SS_TRACE_SLOWEST;

	while (at > 0 && slow[at - 1].duration_ns < event->duration_ns)
		at--;
	if (at == SS_TRACE_SLOWEST)
		return;
	memmove(&slow[at + 1], &slow[at], (SS_TRACE_SLOWEST - 1 - at) * sizeof(*slow));
	slow[at] = (struct ss_trace_slow){
		.duration_ns = event->duration_ns,
		.time_ns = event->time_ns - SS_MIN(event->time_ns, event->duration_ns),
		.tid = event->tid,
		.kind = event->kind,
	};
	(void)snprintf(slow[at].name, sizeof(slow[at].name), "%s", event->name);
}

static void count_event(struct ss_trace_output *output,
			const struct ss_trace_event *event)
{
	bool ends = event->kind >= SS_TRACE_EXIT;

	count_caller(output, event, ends ? event->entry_stack : event->stack);
	if (ends)
		keep_slow(output, event);
}

static void begin_summary(struct ss_trace_output *output)
{
	output->summary = true;
}

/* By time if durations are known, otherwise by hits. */
static int compare_callers(const void *a, const void *b)
{
	const struct ss_trace_caller *x = a;
	const struct ss_trace_caller *y = b;

	return SS_COMPARE(y->duration_ns, x->duration_ns) ?:
		       SS_COMPARE(y->hits, x->hits)	  ?:
							    SS_COMPARE(x->stack, y->stack);
}

static void write_caller(struct ss_trace_output *output,
			 const struct ss_trace_caller *caller, uint64_t hits)
{
	const struct ss_trace_stack *stack =
		caller->stack ? ss_trace_stack(output->trace, caller->stack) : NULL;
	FILE *out = output->out;

	(void)fprintf(out, "    %10" PRIu64 " %3" PRIu64 " %% ", caller->hits,
		      caller->hits * PERCENT / SS_MAX(hits, UINT64_C(1)));
	if (caller->duration_ns) {
		(void)fputc(' ', out);
		ss_duration_write(caller->duration_ns, out);
		(void)fputs("  ", out);
	}
	/* Of the caller. Calls that were inlined into the function are before it. */
	size_t at = 0;

	while (stack && at < stack->count && stack->frames[at].inlined)
		at++;
	at++;
	if (stack && at < stack->count)
		ss_text_write_frame(&stack->frames[at], &ss_trace_plain, out);
	else
		(void)fputs("(not known)\n", out);
	for (size_t i = at + 1; stack && i < stack->count && output->whole_stacks; i++) {
		(void)fputs("                      ", out);
		ss_text_write_frame(&stack->frames[i], &ss_trace_plain, out);
	}
}

static void write_callers(struct ss_trace_output *output, size_t probe)
{
	size_t shown = 0;
	size_t others = 0;
	uint64_t hits = 0;

	for (size_t i = 0; i < output->callers.count; i++)
		hits += output->callers.items[i].probe == probe ?
				output->callers.items[i].hits :
				0;
	for (size_t i = 0; i < output->callers.count; i++) {
		const struct ss_trace_caller *caller = &output->callers.items[i];
		if (caller->probe != probe)
			continue;
		if (shown == 0)
			(void)fputs("  called from\n", output->out);
		if (shown++ < CALLERS_SHOWN)
			write_caller(output, caller, hits);
		else
			others++;
	}
	if (others)
		(void)fprintf(output->out, "    and %s\n",
			      ss_quantity_things(others, "other place").text);
}

static void write_slowest(struct ss_trace_output *output, size_t probe)
{
	FILE *out = output->out;

	for (size_t i = 0; i < SS_TRACE_SLOWEST; i++) {
		const struct ss_trace_slow *slow = &output->slow[probe].calls[i];
		if (!slow->duration_ns)
			break;
		(void)fputs(i == 0 ? "  slowest " : "          ", out);
		ss_duration_write(slow->duration_ns, out);
		(void)fputs(", began ", out);
		write_time(output, slow->time_ns);
		(void)fprintf(out, "tid %d ", (int)slow->tid);
		ss_escape_write(slow->name, NULL, out);
		(void)fputs(slow->kind == SS_TRACE_OPEN ? ", still open\n" :
			    slow->kind == SS_TRACE_LEFT ? ", without a return\n" :
							  "\n",
			    out);
	}
}

static void write_end(struct ss_trace_output *output)
{
	const struct ss_trace_summary *summary = ss_trace_summary(output->trace);
	const uint64_t elapsed_ns = output->summary ? output->elapsed_ns : 0;
	FILE *out = output->out;

	if (!output->summary)
		(void)fputc('\n', out);
	if (output->callers.count)
		qsort(output->callers.items, output->callers.count,
		      sizeof(*output->callers.items), compare_callers);
	for (size_t i = 0; i < ss_trace_probe_count(output->trace); i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(output->trace, i);
		const struct ss_durations *durations = &output->durations[i];
		if (!probe->hits)
			continue;
		(void)fprintf(out, "%s of ", ss_quantity_things(probe->hits, "hit").text);
		write_probe(probe, out);
		if (elapsed_ns >= SS_NS_PER_SECOND)
			(void)fprintf(out, ", %.1f a second",
				      (double)probe->hits * (double)SS_NS_PER_SECOND /
					      (double)elapsed_ns);
		(void)fputc('\n', out);
		if (durations->count)
			ss_durations_write_line(durations, out);
		if (durations->count)
			ss_durations_write(durations, out);
		write_slowest(output, i);
		write_callers(output, i);
		if (output->summary)
			(void)fputc('\n', out);
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
	.begin = begin_summary,
	.event = count_event,
	.end = write_end,
};

const struct ss_trace_format ss_trace_text_verbose = {
	.name = "text",
	.event = write_event,
	.end = write_end,
};
