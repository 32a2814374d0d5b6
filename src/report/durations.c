#include "report/durations.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "report/json.h"
#include "report/print.h"

/* Those of the scopes of each probe of a profile, of which there are at most
   SS_DURATION_PROBES. The caller frees them; NULL: no memory. */
enum { SS_DURATION_PROBES = 4096 };

const char *ss_trace_kind_name(enum ss_trace_kind kind)
{
	static const char *const names[] = {
		[SS_TRACE_HIT] = "hit",	  [SS_TRACE_ENTER] = "enter",
		[SS_TRACE_EXIT] = "exit", [SS_TRACE_LEFT] = "left",
		[SS_TRACE_OPEN] = "open",
	};

	return (size_t)kind < SS_ARRAY_SIZE(names) ? names[kind] : "unknown";
}

enum { STEP_BITS = 4, BAR = 40, NS_PER_US = 1000 };

/* Below 16 each number has a range of its own. */
static size_t range_of(uint64_t ns)
{
	if (ns < SS_DURATION_STEPS)
		return (size_t)ns;
	unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
	return (shift + 1) * SS_DURATION_STEPS +
	       ((ns >> shift) & (SS_DURATION_STEPS - 1));
}

/* The highest duration of a range. */
static uint64_t range_end(size_t range)
{
	if (range < SS_DURATION_STEPS)
		return range;
	unsigned shift = (unsigned)(range / SS_DURATION_STEPS) - 1;
	uint64_t step = range % SS_DURATION_STEPS + SS_DURATION_STEPS;
	return ((step + 1) << shift) - 1;
}

void ss_durations_add(struct ss_durations *durations, uint64_t ns)
{
	durations->min_ns = durations->count ? SS_MIN(durations->min_ns, ns) : ns;
	durations->max_ns = SS_MAX(durations->max_ns, ns);
	durations->count++;
	durations->sum_ns += ns;
	durations->ranges[range_of(ns)]++;
}

/* The duration that percent of them do not exceed; 0: there are none. */
static uint64_t durations_percentile(const struct ss_durations *durations, double percent)
{
	double wanted = (double)durations->count * percent / 100;
	uint64_t sum = 0;

	for (size_t i = 0; i < SS_DURATION_RANGES && durations->count; i++) {
		sum += durations->ranges[i];
		if (sum && (double)sum >= wanted)
			return SS_MIN(range_end(i), durations->max_ns);
	}
	return 0;
}

static uint64_t sum_of(const struct ss_durations *durations, size_t group)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < SS_DURATION_STEPS; i++)
		sum += durations->ranges[group * SS_DURATION_STEPS + i];
	return sum;
}

void ss_durations_write(const struct ss_durations *durations, FILE *out)
{
	enum { GROUPS = SS_DURATION_RANGES / SS_DURATION_STEPS };
	size_t first = GROUPS;
	size_t last = 0;
	uint64_t most = 1;

	for (size_t i = 0; i < GROUPS; i++) {
		uint64_t sum = sum_of(durations, i);
		first = sum ? SS_MIN(first, i) : first;
		last = sum ? i : last;
		most = SS_MAX(most, sum);
	}
	for (size_t i = first; i <= last && first < GROUPS; i++) {
		uint64_t sum = sum_of(durations, i);
		uint64_t end = range_end((i + 1) * SS_DURATION_STEPS - 1);
		(void)fprintf(out,
			      "  up to %12" PRIu64 ".%03" PRIu64 " us %10" PRIu64 " ",
			      end / 1000, end % 1000, sum);
		for (uint64_t bar = 0; bar < (sum * BAR + most - 1) / most; bar++)
			(void)fputc('#', out);
		(void)fputc('\n', out);
	}
}

void ss_duration_write(uint64_t ns, FILE *out)
{
	if (ns < SS_NS_PER_MS)
		(void)fprintf(out, "%" PRIu64 ".%03" PRIu64 " us", ns / NS_PER_US,
			      ns % NS_PER_US);
	else
		(void)fputs_unlocked(ss_quantity_time(ns).text, out);
}

void ss_durations_write_line(const struct ss_durations *durations, FILE *out)
{
	static const struct {
		double percent;
		const char *name;
	} percentiles[] = {
		{ 50, "p50" }, { 90, "p90" }, { 99, "p99" }, { 99.9, "p99.9" }
	};

	(void)fputs("  sum ", out);
	ss_duration_write(durations->sum_ns, out);
	(void)fputs(", mean ", out);
	ss_duration_write(durations->sum_ns / durations->count, out);
	(void)fputs(", min ", out);
	ss_duration_write(durations->min_ns, out);
	for (size_t i = 0; i < SS_ARRAY_SIZE(percentiles); i++) {
		(void)fprintf(out, ", %s ", percentiles[i].name);
		ss_duration_write(durations_percentile(durations, percentiles[i].percent),
				  out);
	}
	(void)fputs(", max ", out);
	ss_duration_write(durations->max_ns, out);
	(void)fputc('\n', out);
}

struct ss_durations *ss_profile_durations(const struct ss_profile *profile)
{
	size_t count = SS_MIN(profile->probes.count, (size_t)SS_DURATION_PROBES);
	struct ss_durations *durations =
		calloc(profile->probes.count + 1, sizeof(*durations));

	for (size_t i = 0; durations && i < profile->events.count; i++) {
		const struct ss_profile_event *event = &profile->events.items[i];
		if (event->kind == SS_TRACE_EXIT && event->probe < count)
			ss_durations_add(&durations[event->probe], event->duration_ns);
	}
	return durations;
}

void ss_trace_write_totals(const struct ss_trace_summary *summary, FILE *out)
{
	(void)fprintf(out, "%s counted by the kernel, %s read, %s lost",
		      ss_quantity_things(summary->hits, "hit").text,
		      ss_quantity_count(summary->read).text,
		      ss_quantity_count(summary->lost).text);
	if (summary->skipped)
		(void)fprintf(out, ", %s not shown because of --every or --max-rate",
			      ss_quantity_count(summary->skipped).text);
	if (summary->unpaired)
		(void)fprintf(out, ", %s of calls from before",
			      ss_quantity_things(summary->unpaired, "return").text);
	(void)fputc('\n', out);
}

void ss_json_durations(struct ss_json *json, const struct ss_durations *durations)
{
	ss_json_open(json, "duration", '{');
	ss_json_unsigned(json, "count", durations->count);
	ss_json_unsigned(json, "sum_ns", durations->sum_ns);
	ss_json_unsigned(json, "min_ns", durations->min_ns);
	ss_json_unsigned(json, "max_ns", durations->max_ns);
	ss_json_unsigned(json, "p50_ns", durations_percentile(durations, 50));
	ss_json_unsigned(json, "p90_ns", durations_percentile(durations, 90));
	ss_json_unsigned(json, "p99_ns", durations_percentile(durations, 99));
	ss_json_unsigned(json, "p999_ns", durations_percentile(durations, 99.9));
	ss_json_close(json, '}');
}
