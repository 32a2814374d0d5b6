/*
 * A profile for people: the recordings, deadlocks, the hottest functions, states, threads,
 * waits, the call tree, and what is missing.
 */
#include "output/text_profile.h"

#include <inttypes.h>
#include <string.h>

#include "output/escape.h"
#include "profile/label.h"
#include "output/quantity.h"
#include "output/style.h"
#include "output/text.h"

static void write_recording(const struct ss_profile_recording *recording, FILE *out)
{
	ss_escape_write(recording->file, NULL, out);
	if (recording->more) {
		(void)fputs(" and ", out);
		ss_quantity_write_things(recording->more, "later snapshot", out);
	}
	(void)fputs(": ", out);
	ss_quantity_write_date(recording->start_ns, out);
	if (recording->host && *recording->host) {
		(void)fputs(" on ", out);
		ss_escape_write(recording->host, NULL, out);
	}
	if (recording->machine && *recording->machine) {
		(void)fputs(" (", out);
		ss_escape_write(recording->machine, NULL, out);
		(void)fputc(')', out);
	}
	(void)fputs(", ", out);
	bool events = recording->scope == SS_SCOPE_EVENTS;
	ss_quantity_write_things(recording->ticks.count, events ? "hit" : "tick", out);
	if (recording->period_ns)
		(void)fprintf(out, " at %.4g Hz", 1e9 / (double)recording->period_ns);
	if (recording->missed) {
		(void)fputs(", ", out);
		ss_quantity_write_count(recording->missed, out);
		(void)fputs(" missed", out);
	}
	if (recording->scope == SS_SCOPE_CPUS)
		(void)fputs(", what was on a CPU (perf events)", out);
	else if (recording->scope == SS_SCOPE_RUNNING)
		(void)fputs(", running threads, which were stopped: short bursts "
			    "are missing (no perf events)",
			    out);
	else if (events)
		(void)fputs(" of traced functions", out);
	(void)fputc('\n', out);
}

/* "12 threads, 30 goroutines and 4 tasks" */
static void write_threads(const struct ss_profile *profile, FILE *out)
{
	const size_t tasks = profile->task_count;
	const size_t goroutines = profile->goroutines.count - tasks;

	ss_quantity_write_things(profile->threads.count - profile->goroutines.count,
				 "thread", out);
	if (goroutines) {
		(void)fputs(tasks ? ", " : " and ", out);
		ss_quantity_write_things(goroutines, "goroutine", out);
	}
	if (tasks) {
		(void)fputs(" and ", out);
		ss_quantity_write_things(tasks, "task", out);
	}
}

static void write_head(const struct ss_profile *profile,
		       const struct ss_format_options *options, FILE *out)
{
	for (size_t i = 0; i < profile->recordings.count; i++)
		write_recording(&profile->recordings.items[i], out);
	for (size_t i = 0; i < profile->processes.count; i++) {
		const struct ss_profile_process *p = &profile->processes.items[i];
		if (i == options->rows && !options->verbose) {
			(void)fprintf(out, "... and %zu more processes (-v lists them)\n",
				      profile->processes.count - i);
			break;
		}
		ss_escape_write(p->name, NULL, out);
		(void)fprintf(out, ", pid %d", p->pid);
		if (p->executable) {
			(void)fputs(", ", out);
			ss_escape_write(p->executable, NULL, out);
		}
		(void)fputc('\n', out);
	}
	ss_quantity_write_things(profile->samples, "sample", out);
	(void)fputs(" of ", out);
	write_threads(profile, out);
	(void)fputc('\n', out);
}

struct hot {
	uint32_t function;
	struct ss_weight weight;
};

static int compare_hot(const void *a, const void *b)
{
	const struct hot *x = a;
	const struct hot *y = b;

	if (x->weight.self != y->weight.self)
		return x->weight.self < y->weight.self ? 1 : -1;
	if (x->weight.total != y->weight.total)
		return x->weight.total < y->weight.total ? 1 : -1;
	return x->function < y->function ? -1 : 1;
}

static bool write_functions(const struct ss_condensed *condensed,
			    const struct ss_weights *weights,
			    const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile *profile = weights->profile;
	size_t count = profile->functions.count;
	_cleanup_free_ struct hot *hot = calloc(count + 1, sizeof(*hot));

	if (!hot)
		return false;
	for (uint32_t i = 0; i < count; i++)
		hot[i] = (struct hot){ i, weights->functions[i] };
	qsort(hot, count, sizeof(*hot), compare_hot);
	ss_text_profile_heading(
		profile->by_time ? "    self     total  function, by time in scopes" :
				   "    self     total  function",
		options, out);
	for (size_t i = 0; i < count && (options->verbose || i < options->rows); i++) {
		if (!hot[i].weight.self && !options->verbose)
			break;
		ss_text_profile_share(hot[i].weight.self, profile->weight, out);
		(void)fputs("  ", out);
		ss_text_profile_share(hot[i].weight.total, profile->weight, out);
		(void)fputs("  ", out);
		ss_text_profile_function(condensed, hot[i].function,
					 &condensed->functions[hot[i].function], options,
					 out);
		(void)fputc('\n', out);
	}
	return true;
}

/* Functions without a name in one module. */
struct nameless {
	uint64_t functions; /* whose start is known */
	uint64_t addresses; /* others */
	uint64_t samples;   /* with one of them, counted for each */
};

static void count_nameless(const struct ss_condensed *condensed,
			   const struct ss_weights *weights, struct nameless *ret)
{
	const struct ss_profile *profile = &condensed->profile;

	for (uint32_t i = 0; i < profile->functions.count; i++) {
		const struct ss_profile_function *function =
			ss_profile_function_at(profile, i);
		if (!function->place || function->module == SS_ID_NONE)
			continue;
		struct nameless *nameless = &ret[function->module];
		nameless->functions += function->has_start;
		nameless->addresses += condensed->functions[i].count;
		nameless->samples += weights->functions[i].total;
	}
}

static void write_nameless_module(const struct ss_profile_module *module,
				  const struct nameless *nameless, FILE *out)
{
	(void)fputs("  ", out);
	if (nameless->functions)
		ss_quantity_write_things(nameless->functions, "function", out);
	if (nameless->functions && nameless->addresses)
		(void)fputs(", ", out);
	if (nameless->addresses)
		ss_quantity_write_things(nameless->addresses, "address", out);
	(void)fputs(" in ", out);
	ss_escape_write(module->path, NULL, out);
	(void)fputs(" [", out);
	ss_escape_write(module->build_id, NULL, out);
	(void)fputs("]\n", out);
}

/* Lists modules that were found but have no symbols: their debug files would help. False
   without memory. */
static bool write_nameless(const struct ss_condensed *condensed,
			   const struct ss_weights *weights,
			   const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile *profile = &condensed->profile;
	double least = options->threshold * (double)profile->weight / 100.0;
	_cleanup_free_ struct nameless *nameless =
		calloc(profile->modules.count + 1, sizeof(*nameless));
	bool any = false;

	if (!nameless)
		return false;
	count_nameless(condensed, weights, nameless);
	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_profile_module *module = &profile->modules.items[i];
		if (nameless[i].functions + nameless[i].addresses == 0 ||
		    !module->build_id || module->problem ||
		    (double)nameless[i].samples < least)
			continue;
		if (!any)
			ss_text_profile_heading(
				"Modules without symbols (debug files have them: "
				"see --debug-dir, --debuginfod)",
				options, out);
		any = true;
		write_nameless_module(module, &nameless[i], out);
	}
	return true;
}

/* Lists modules whose names rest on less than a build-id. */
static void write_by_file(const struct ss_profile *profile,
			  const struct ss_format_options *options, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_profile_module *module = &profile->modules.items[i];
		if (!module->by_file || options->raw)
			continue;
		if (!any)
			ss_text_profile_heading("Modules without build-id (names rest on "
						"size, headers and "
						"symbols of their files)",
						options, out);
		any = true;
		(void)fputs("  ", out);
		ss_escape_write(module->path, NULL, out);
		(void)fputs(" [file ", out);
		ss_escape_write(module->hash, NULL, out);
		(void)fputs("]\n", out);
	}
}

static void write_notes(const struct ss_profile *profile,
			const struct ss_format_options *options, FILE *out)
{
	if (profile->notes.count)
		ss_text_profile_heading("Missing", options, out);
	for (size_t i = 0; i < profile->notes.count; i++) {
		ss_style_write(SS_STYLE_WARN, options->color, out);
		(void)fputs("  ", out);
		ss_escape_write(profile->notes.items[i], NULL, out);
		ss_style_write(SS_STYLE_NONE, options->color, out);
		(void)fputc('\n', out);
	}
}

static bool write_tables(const struct ss_profile *profile,
			 const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ struct ss_chain *chains = ss_chains_new(profile);
	_cleanup_(ss_condensed_cleanup) struct ss_condensed *condensed =
		ss_condensed_new(profile, options->verbose || options->raw);
	_cleanup_(ss_weights_cleanup) struct ss_weights *weights =
		condensed ? ss_weights_new(&condensed->profile) : NULL;

	if (!chains || !weights)
		return false;
	ss_text_profile_deadlocks(profile, chains, options, out);
	if (!ss_text_profile_trace(profile, options, out) ||
	    !write_functions(condensed, weights, options, out) ||
	    (!ss_profile_is_trace(profile) &&
	     !ss_text_profile_threads(condensed, options, out)) ||
	    !ss_text_profile_other_waits(profile, chains, options, out) ||
	    !ss_text_profile_waits(profile, options, out))
		return false;
	ss_text_profile_heading("Calls", options, out);
	if (!ss_text_profile_tree(condensed, weights, options, out))
		return false;
	return write_nameless(condensed, weights, options, out);
}

struct ss_error *ss_text_write_profile(const struct ss_profile *profile,
				       const struct ss_format_options *options, FILE *out)
{
	write_head(profile, options, out);
	if (profile->samples && !write_tables(profile, options, out))
		return ss_error_no_memory();
	write_by_file(profile, options, out);
	write_notes(profile, options, out);
	return NULL;
}
