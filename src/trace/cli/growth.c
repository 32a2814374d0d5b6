#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/search.h"
#include "report/json.h"
#include "report/print.h"
#include "report/profile.h"
#include "stacksnap/trace.h"
#include "trace/cli/format.h"
#include "trace/trace.h"

enum { SAMPLES_MAX = 16 << 20 };

/* Standard deviations that contain 95 % of a normal distribution, */
static const double deviations = 1.96;
/* and the upper limit of the expected number if none was seen (the "rule of three"). */
static const double none_seen = 3;
static const double tolerance = 1e-6;

void ss_growth_deinit(struct ss_growth *growth)
{
	ss_vector_free(&growth->items);
	ss_vector_free(&growth->sites);
}

/* False: no memory. */
static bool growth_add(struct ss_growth *growth, const struct ss_trace_event *event)
{
	struct ss_growth_sample *sample =
		growth->items.count < SAMPLES_MAX ? ss_vector_push(&growth->items) : NULL;

	if (!sample)
		return false;
	*sample = (struct ss_growth_sample){
		.page = event->args[0] / ss_trace_page_size(),
		.stack = event->stack,
		.order = (uint32_t)growth->items.count,
	};
	return true;
}

/* By page, the last one first. */
static int compare_pages(const void *a, const void *b)
{
	const struct ss_growth_sample *x = a;
	const struct ss_growth_sample *y = b;

	return SS_COMPARE(x->page, y->page) ?: SS_COMPARE(y->order, x->order);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct ss_growth_sample *x = a;
	const struct ss_growth_sample *y = b;

	return SS_COMPARE(x->stack, y->stack) ?: SS_COMPARE(x->order, y->order);
}

static int compare_sites(const void *a, const void *b, void *data)
{
	const struct ss_growth_site *x = a;
	const struct ss_growth_site *y = b;
	const struct ss_growth *growth = data;
	uint64_t left = growth->held_only ? x->held : x->samples;
	uint64_t right = growth->held_only ? y->held : y->samples;

	return SS_COMPARE(right, left)		    ?:
		       SS_COMPARE(y->held, x->held) ?:
						      SS_COMPARE(x->stack, y->stack);
}

static bool make_sites(struct ss_growth *growth)
{
	for (size_t i = 0; i < growth->items.count; i++) {
		const struct ss_growth_sample *sample = &growth->items.items[i];
		struct ss_growth_site *site =
			growth->sites.count ?
				&growth->sites.items[growth->sites.count - 1] :
				NULL;
		if (!site || site->stack != sample->stack) {
			site = ss_vector_push(&growth->sites);
			if (!site)
				return false;
			site->stack = sample->stack;
		}
		site->samples++;
		site->held += sample->held;
	}
	return true;
}

/* What identifies a frame: its function, or else its address. */
struct identity {
	const char *symbol; /* interned */
	const struct ss_module *module;
	uint64_t offset;
};

static bool add_identities(const struct ss_trace_stack *stack, struct ss_buffer *key)
{
	ss_buffer_truncate(key, 0);
	for (size_t i = 0; i < stack->count; i++) {
		const struct ss_frame *frame = &stack->frames[i];
		const struct identity identity = {
			.symbol = frame->symbol,
			.module = frame->module,
			.offset = frame->symbol ? 0 : frame->pc,
		};
		ss_buffer_add(key, &identity, sizeof(identity));
	}
	return !key->failed;
}

/* Gives stacks of the same functions one number: that of the first of them. */
static bool merge_stacks(struct ss_growth *growth, const struct ss_trace *trace)
{
	size_t count = ss_trace_stack_count(trace);
	_cleanup_free_ uint32_t *merged = calloc(count + 1, sizeof(*merged));
	_cleanup_free_ uint32_t *first = calloc(count + 1, sizeof(*first)); /* by id */
	_cleanup_buffer_ struct ss_buffer key = {};
	__attribute__((cleanup(ss_idtable_deinit))) struct ss_idtable ids = {};

	for (uint32_t i = 1; merged && first && i <= count; i++) {
		if (!add_identities(ss_trace_stack(trace, i), &key))
			return false;
		uint32_t id = ss_idtable_add(&ids, key.bytes, key.size, NULL);
		if (id == SS_ID_NONE)
			return false;
		if (!first[id])
			first[id] = i;
		merged[i] = first[id];
	}
	for (size_t i = 0; merged && i < growth->items.count; i++)
		growth->items.items[i].stack = merged[growth->items.items[i].stack];
	return merged && first;
}

/* What the kernel has counted, but is in no sample. Pages of files
   are among it, and of child processes, which inherit the event. */
static uint64_t unsampled(const struct ss_growth *growth, const struct ss_trace *trace)
{
	const struct ss_trace_summary *summary = ss_trace_summary(trace);
	uint64_t touched = summary->hits * ss_trace_page_size();
	uint64_t sampled = (summary->read + summary->lost) * growth->sample_bytes;

	return touched - SS_MIN(touched, sampled);
}

static bool finish(struct ss_growth *growth, const struct ss_trace *trace)
{
	struct ss_growth_sample *items = growth->items.items;
	size_t count = growth->items.count;

	growth->samples = count;
	growth->unsampled_bytes = unsampled(growth, trace);
	if (count > 1)
		qsort(items, count, sizeof(*items), compare_pages);
	for (size_t i = 0; i < count; i++) {
		bool last = i == 0 || items[i - 1].page != items[i].page;
		items[i].held =
			last &&
			ss_trace_is_resident(trace, items[i].page * ss_trace_page_size());
		growth->held += items[i].held;
	}
	if (!merge_stacks(growth, trace))
		return false;
	if (count > 1)
		qsort(items, count, sizeof(*items), compare_stacks);
	if (!make_sites(growth))
		return false;
	if (growth->sites.count > 1)
		qsort_r(growth->sites.items, growth->sites.count,
			sizeof(*growth->sites.items), compare_sites, growth);
	return true;
}

/* Finds out which pages are still there, and makes the sites. False: no memory. */
static bool growth_finish(struct ss_trace_output *output)
{
	output->failed = !finish(output->growth, output->trace);
	return !output->failed;
}

/* Whether a stack belongs to the result. */
static bool growth_shows(const struct ss_growth *growth,
			 const struct ss_growth_site *site)
{
	return site->held || !growth->held_only;
}

/* By Newton's method, which needs no library of mathematics. */
static double square_root(double number)
{
	double root = number > 1 ? number : 1;

	for (double last = root + 1; last - root > root * tolerance;) {
		last = root;
		root = (root + number / root) / 2;
	}
	return root;
}

/* By how much an estimate from so many samples may be wrong, in samples: 95 % of all are closer.
   Samples are independent at worst. */
static double growth_error(uint64_t samples)
{
	return samples ? deviations * square_root((double)samples) : none_seen;
}

/*
 * The formats of "trace --alloc". Estimates have their error with them.
 */

enum { FRAMES_SHOWN = 24, SIZE_COLUMN = 12 };

static void growth_take(struct ss_trace_output *output,
			const struct ss_trace_event *event)
{
	/* What does not fit is missing in the sum. */
	if (event->kind == SS_TRACE_HIT)
		(void)growth_add(output->growth, event);
}

static void write_site(const struct ss_trace_output *output,
		       const struct ss_growth_site *site)
{
	const struct ss_growth *growth = output->growth;
	const double unit = (double)growth->sample_bytes;
	FILE *out = output->out;

	(void)fprintf(
		out, "\n%*s new, +- %s (%s); held %s, +- %s\n", SIZE_COLUMN,
		ss_quantity_size(site->samples * growth->sample_bytes).text,
		ss_quantity_size((uint64_t)(growth_error(site->samples) * unit)).text,
		ss_quantity_things(site->samples, "sample").text,
		ss_quantity_size(site->held * growth->sample_bytes).text,
		ss_quantity_size((uint64_t)(growth_error(site->held) * unit)).text);
	if (!site->stack) {
		(void)fputs("    stack not known\n", out);
		return;
	}
	const struct ss_trace_stack *stack = ss_trace_stack(output->trace, site->stack);
	for (size_t i = 0; i < stack->count && i < FRAMES_SHOWN; i++) {
		(void)fprintf(out, "    #%-2zu ", i);
		ss_text_write_frame(&stack->frames[i], &ss_trace_plain, out);
	}
	if (stack->count > FRAMES_SHOWN)
		(void)fprintf(out, "    and %zu more\n", stack->count - FRAMES_SHOWN);
}

static void write_text(struct ss_trace_output *output)
{
	struct ss_growth *growth = output->growth;
	FILE *out = output->out;
	size_t shown = 0;

	if (!growth_finish(output))
		return;
	(void)fprintf(out, "%s of new memory in %s",
		      ss_quantity_size(growth->samples * growth->sample_bytes).text,
		      ss_quantity_time(output->elapsed_ns).text);
	if (ss_trace_summary(output->trace)->ended)
		(void)fputs("; the process has ended", out);
	else
		(void)fprintf(out, ", of which it holds %s",
			      ss_quantity_size(growth->held * growth->sample_bytes).text);
	(void)fprintf(out, "; each sample stands for %s",
		      ss_quantity_size(growth->sample_bytes).text);
	if (growth->unsampled_bytes)
		(void)fprintf(out, "; up to %s more may be missing from the samples",
			      ss_quantity_size(growth->unsampled_bytes).text);
	(void)fputc('\n', out);
	for (size_t i = 0; i < growth->sites.count; i++) {
		if (!growth_shows(growth, &growth->sites.items[i]))
			continue;
		if (shown < growth->rows)
			write_site(output, &growth->sites.items[i]);
		shown++;
	}
	if (shown > growth->rows)
		(void)fprintf(out, "\nand %zu more stacks (--rows)\n",
			      shown - growth->rows);
}

const struct ss_trace_format ss_growth_text = {
	.name = "text",
	.wants_stacks = true,
	.event = growth_take,
	.end = write_text,
};

/* As a profile, with the sample types of heap profiles. An object is a page. */
static void write_profile(struct ss_trace_output *output)
{
	static const struct ss_profile_unit units[SS_PROFILE_UNITS_MAX] = {
		{ "alloc_objects", "count" },
		{ "alloc_space", "bytes" },
		{ "inuse_objects", "count" },
		{ "inuse_space", "bytes" },
	};
	const struct ss_growth *growth = output->growth;
	const uint64_t bytes = growth->sample_bytes;
	const uint64_t pages = bytes / ss_trace_page_size();
	_cleanup_(ss_profile_cleanup) struct ss_profile *profile =
		growth_finish(output) ? ss_profile_new() : NULL;
	bool whole = profile;

	for (size_t i = 0; whole && i < growth->sites.count; i++) {
		const struct ss_growth_site *site = &growth->sites.items[i];
		const uint64_t values[] = { site->samples * pages, site->samples * bytes,
					    site->held * pages, site->held * bytes };
		whole = !site->stack || !growth_shows(growth, site) ||
			ss_trace_add_total(profile,
					   ss_trace_stack(output->trace, site->stack),
					   values);
	}
	if (whole) {
		memcpy(profile->units, units, sizeof(units));
		profile->unit_count = SS_ARRAY_SIZE(units);
		profile->shown_unit = growth->held_only ? 3 : 1;
		profile->period = bytes;
	}
	ss_trace_write_profile(output, whole ? profile : NULL);
}

const struct ss_trace_format ss_growth_profile = {
	.wants_stacks = true,
	.event = growth_take,
	.end = write_profile,
};

/*
 * "trace --alloc" as JSON: see stacksnap-json(5).
 */

static void write_estimate(struct ss_json *json, const char *key, uint64_t samples,
			   const struct ss_growth *growth)
{
	ss_json_open(json, key, '{');
	ss_json_unsigned(json, "samples", samples);
	ss_json_unsigned(json, "bytes", samples * growth->sample_bytes);
	ss_json_unsigned(
		json, "error_bytes",
		(uint64_t)(growth_error(samples) * (double)growth->sample_bytes));
	ss_json_close(json, '}');
}

static void write_json_site(struct ss_json *json, const struct ss_trace_output *output,
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

static void write_json_end(struct ss_trace_output *output)
{
	const struct ss_trace_summary *summary = ss_trace_summary(output->trace);
	struct ss_growth *growth = output->growth;
	struct ss_json json = { .out = output->out };

	if (!growth_finish(output))
		return;
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-growth/1");
	ss_json_signed(&json, "pid", growth->pid);
	ss_json_unsigned(&json, "duration_ns", output->elapsed_ns);
	ss_json_bool(&json, "process_ended", summary->ended);
	ss_json_unsigned(&json, "sample_bytes", growth->sample_bytes);
	ss_json_unsigned(&json, "unsampled_bytes", growth->unsampled_bytes);
	ss_json_unsigned(&json, "lost", summary->lost);
	write_estimate(&json, "new", growth->samples, growth);
	write_estimate(&json, "held", growth->held, growth);
	ss_json_open(&json, "stacks", '[');
	for (size_t i = 0; i < growth->sites.count; i++) {
		if (growth_shows(growth, &growth->sites.items[i]))
			write_json_site(&json, output, &growth->sites.items[i]);
	}
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc('\n', output->out);
}

const struct ss_trace_format ss_growth_json = {
	.name = "json",
	.wants_stacks = true,
	.event = growth_take,
	.end = write_json_end,
};
