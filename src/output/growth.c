#include "output/growth.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/idtable.h"

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

bool ss_growth_add(struct ss_growth *growth, const struct ss_trace_event *event)
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

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return (x->order < y->order) - (x->order > y->order);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct ss_growth_sample *x = a;
	const struct ss_growth_sample *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static int compare_sites(const void *a, const void *b, void *data)
{
	const struct ss_growth_site *x = a;
	const struct ss_growth_site *y = b;
	const struct ss_growth *growth = data;
	uint64_t left = growth->held_only ? x->held : x->samples;
	uint64_t right = growth->held_only ? y->held : y->samples;

	if (left != right)
		return left > right ? -1 : 1;
	if (x->held != y->held)
		return x->held > y->held ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
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
		const struct ss_trace_frame *frame = &stack->frames[i];
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

	growth->end_ns = ss_now_ns();
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

bool ss_growth_finish(struct ss_growth *growth, const struct ss_trace *trace)
{
	growth->failed = !finish(growth, trace);
	return !growth->failed;
}

bool ss_growth_shows(const struct ss_growth *growth, const struct ss_growth_site *site)
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

double ss_growth_error(uint64_t samples)
{
	return samples ? deviations * square_root((double)samples) : none_seen;
}
