/*
 * Two sets of recordings compared, for people.
 */
#include <inttypes.h>

#include "output/escape.h"
#include "output/profile_diff.h"
#include "output/quantity.h"
#include "output/text.h"

/* Frames of a stack that are shown, from the innermost one on. */
enum { FRAMES_MAX = 12 };

/* Differences below half a percent are noise in most recordings. */
static const double change_min = 0.005;

static const char *const sets[] = { "before", "after" };

static void write_name(const char *name, FILE *out)
{
	ss_escape_write(name, NULL, out);
}

static void write_function(const struct ss_profile *profile, uint32_t node, FILE *out)
{
	const struct ss_profile_node *n = ss_profile_node_at(profile, node);

	write_name(ss_profile_function_at(profile, n->function)->name, out);
}

static void write_stack(const struct ss_profile *profile, uint32_t node, FILE *out)
{
	uint32_t path[FRAMES_MAX];
	size_t count = 0;

	for (; node != 0 && count < FRAMES_MAX; count++) {
		path[count] = node;
		node = ss_profile_node_at(profile, node)->parent;
	}
	if (node != 0)
		(void)fputs("... > ", out);
	else if (count == 0)
		(void)fputs("[no frames]", out);
	while (count-- > 0) {
		write_function(profile, path[count], out);
		(void)fputs(count ? " > " : "", out);
	}
}

static void write_more(size_t all, size_t shown, FILE *out)
{
	if (all > shown)
		(void)fprintf(out, "  (%zu more: --rows, or -v for all)\n", all - shown);
}

static void write_sets(const struct ss_profile_diff *diff, FILE *out)
{
	for (size_t i = 0; i < SS_SET_COUNT; i++) {
		(void)fprintf(out, "%-6s  ", sets[i]);
		ss_quantity_write_things(diff->recordings.of[i], "recording", out);
		(void)fputs(", ", out);
		ss_quantity_write_things(diff->samples.of[i], "sample", out);
		(void)fputc_unlocked('\n', out);
	}
}

static double percent(const struct ss_profile_diff *diff,
		      const struct ss_set_counts *counts, unsigned set)
{
	return diff->samples.of[set] ?
		       100.0 * (double)counts->of[set] / (double)diff->samples.of[set] :
		       0;
}

static bool is_change(const struct ss_profile_diff *diff,
		      const struct ss_set_counts *counts)
{
	double change = ss_profile_diff_change(diff, counts);

	return change >= change_min || change <= -change_min;
}

static void write_functions(const struct ss_profile_diff *diff, size_t rows, FILE *out)
{
	size_t all = 0;
	size_t shown = 0;

	(void)fputs("\nFunctions whose share of the samples changed (self)\n"
		    "  before    after   change  function\n",
		    out);
	for (size_t i = 0; i < diff->function_count; i++) {
		const struct ss_function_difference *f = &diff->functions[i];
		if (!is_change(diff, &f->self) || all++ >= rows)
			continue;
		shown++;
		(void)fprintf(out, " %5.1f %%  %5.1f %%  %+5.1f %%  ",
			      percent(diff, &f->self, SS_BEFORE),
			      percent(diff, &f->self, SS_AFTER),
			      100 * ss_profile_diff_change(diff, &f->self));
		write_name(ss_profile_function_at(diff->profile, f->function)->name, out);
		(void)fputc_unlocked('\n', out);
	}
	if (all == 0)
		(void)fputs("  none\n", out);
	write_more(all, shown, out);
}

/* Stacks that only one set has. */
static void write_stacks(const struct ss_profile_diff *diff, const char *title,
			 unsigned set, size_t rows, FILE *out)
{
	size_t all = 0;
	size_t shown = 0;

	for (size_t i = 0; i < diff->stack_count; i++) {
		const struct ss_stack_difference *s = &diff->stacks[i];
		if (s->samples.of[!set] || all++ >= rows)
			continue;
		if (shown++ == 0)
			(void)fprintf(out, "\n%s\n", title);
		(void)fprintf(out, " %5.1f %%  ", percent(diff, &s->samples, set));
		write_stack(diff->profile, s->node, out);
		(void)fputc_unlocked('\n', out);
	}
	write_more(all, shown, out);
}

static void write_thread(const struct ss_profile_diff *diff,
			 const struct ss_thread_difference *d, FILE *out)
{
	const struct ss_profile *profile = diff->profile;
	uint32_t one = d->thread[d->thread[SS_AFTER] == SS_ID_NONE ? 0 : 1];
	const struct ss_profile_thread *thread = &profile->threads.items[one];
	const char *host = ss_profile_recording_of(profile, thread)->host;

	(void)fprintf(out, "  %-5s  ", ss_change_name(d->change));
	write_name(host ? host : "", out);
	(void)fprintf(out, " %d/%d ", profile->processes.items[thread->process].pid,
		      thread->tid);
	write_name(thread->name, out);
	if (thread->task) {
		(void)fputc(' ', out);
		write_name(thread->task, out);
	}
	(void)fputs(": ", out);
	for (size_t set = 0; set < SS_SET_COUNT; set++) {
		if (d->thread[set] == SS_ID_NONE)
			continue;
		if (d->node[set])
			write_function(profile, d->node[set], out);
		else
			(void)fputs("[no frames]", out);
		if (set == SS_BEFORE && d->thread[SS_AFTER] != SS_ID_NONE)
			(void)fputs(" -> ", out);
	}
	(void)fputc_unlocked('\n', out);
}

static void write_threads(const struct ss_profile_diff *diff, size_t rows, FILE *out)
{
	size_t all = 0;
	size_t shown = 0;

	(void)fprintf(
		out,
		"\nThreads, by their last samples: %zu unchanged, %zu moved, %zu new, "
		"%zu gone\n",
		diff->changes[SS_UNCHANGED], diff->changes[SS_MOVED],
		diff->changes[SS_NEW], diff->changes[SS_GONE]);
	for (size_t i = 0; i < diff->thread_count; i++) {
		if (diff->threads[i].change == SS_UNCHANGED || all++ >= rows)
			continue;
		shown++;
		write_thread(diff, &diff->threads[i], out);
	}
	write_more(all, shown, out);
}

struct ss_error *ss_text_write_profile_diff(const struct ss_profile *profile,
					    const struct ss_format_options *options,
					    FILE *out)
{
	_cleanup_(ss_profile_diff_cleanup) struct ss_profile_diff *diff =
		ss_profile_diff_new(profile);
	size_t rows = options->verbose ? SIZE_MAX : options->rows;

	if (!diff)
		return ss_error_no_memory();
	write_sets(diff, out);
	write_functions(diff, rows, out);
	write_stacks(diff, "Stacks that appeared", SS_AFTER, rows, out);
	write_stacks(diff, "Stacks that vanished", SS_BEFORE, rows, out);
	write_threads(diff, rows, out);
	for (size_t i = 0; i < profile->notes.count; i++) {
		(void)fputs(i ? "" : "\nNotes\n", out);
		(void)fputs("  ", out);
		write_name(profile->notes.items[i], out);
		(void)fputc_unlocked('\n', out);
	}
	return NULL;
}
