/*
 * "trace --alloc" as JSON: see stacksnap-json(5).
 */
#include "output/growth.h"
#include "output/json_document.h"
#include "output/trace.h"

static void write_estimate(struct ss_json *json, const char *key, uint64_t samples,
			   const struct ss_growth *growth)
{
	ss_json_open(json, key, '{');
	ss_json_unsigned(json, "samples", samples);
	ss_json_unsigned(json, "bytes", samples * growth->sample_bytes);
	ss_json_unsigned(
		json, "error_bytes",
		(uint64_t)(ss_growth_error(samples) * (double)growth->sample_bytes));
	ss_json_close(json, '}');
}

static void write_site(struct ss_json *json, const struct ss_trace_output *output,
		       const struct ss_growth_site *site)
{
	ss_json_new_line(json);
	ss_json_open(json, NULL, '{');
	write_estimate(json, "new", site->samples, output->growth);
	write_estimate(json, "held", site->held, output->growth);
	if (site->stack) {
		ss_json_trace_stack(json, ss_trace_stack(output->trace, site->stack));
	} else {
		ss_json_open(json, "frames", '[');
		ss_json_close(json, ']');
		ss_json_null(json, "end");
	}
	ss_json_close(json, '}');
}

static void write_end(struct ss_trace_output *output)
{
	const struct ss_trace_summary *summary = ss_trace_summary(output->trace);
	struct ss_growth *growth = output->growth;
	struct ss_json json = { .out = output->out };

	if (!ss_growth_finish(growth, output->trace))
		return;
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-growth/1");
	ss_json_signed(&json, "pid", growth->pid);
	ss_json_unsigned(&json, "duration_ns", growth->end_ns - growth->begin_ns);
	ss_json_bool(&json, "process_ended", summary->ended);
	ss_json_unsigned(&json, "sample_bytes", growth->sample_bytes);
	ss_json_unsigned(&json, "unsampled_bytes", growth->unsampled_bytes);
	ss_json_unsigned(&json, "lost", summary->lost);
	write_estimate(&json, "new", growth->samples, growth);
	write_estimate(&json, "held", growth->held, growth);
	ss_json_open(&json, "stacks", '[');
	for (size_t i = 0; i < growth->sites.count; i++) {
		if (ss_growth_shows(growth, &growth->sites.items[i]))
			write_site(&json, output, &growth->sites.items[i]);
	}
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc('\n', output->out);
}

const struct ss_trace_format ss_growth_json = {
	.name = "json",
	.wants_stacks = true,
	.begin = ss_growth_begin,
	.event = ss_growth_take,
	.end = write_end,
};
