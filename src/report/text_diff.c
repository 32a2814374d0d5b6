/*
 * The difference of two snapshots for people: threads that did not move, blocked ones first;
 * then those that moved, are new, or gone.
 */
#include <stdlib.h>

#include "report/diff.h"
#include "report/print.h"
#include "report/group.h"
#include "report/names.h"
#include "report/text.h"
#include "report/profile.h"
#include "diagnose/progress.h"

enum { THREADS_MAX = 20 }; /* of each part, without -v */

struct report {
	const struct ss_diff_input *input;
	const struct ss_diff *diff;
	const struct ss_format_options *options;
	FILE *out;
};

/* The parts of the output. */
enum part { BLOCKED, UNCHANGED, IDLE, MOVED, NEW, GONE, PART_COUNT };

static const char *const titles[] = {
	[BLOCKED] = "unchanged and blocked",
	[UNCHANGED] = "unchanged",
	[IDLE] = "unchanged and idle",
	[MOVED] = "moved",
	[NEW] = "new",
	[GONE] = "gone",
};

static unsigned part_of(const struct ss_task_change *change)
{
	switch (change->change) {
	case SS_MOVED:
		return MOVED;
	case SS_NEW:
		return NEW;
	case SS_GONE:
		return GONE;
	default:
		break;
	}
	if (change->class <= SS_GROUP_BLOCKED)
		return BLOCKED;
	return change->class == SS_GROUP_IDLE ? IDLE : UNCHANGED;
}

static void write_side(const struct report *report, const char *word,
		       const struct ss_diff_side *side)
{
	FILE *out = report->out;

	(void)fprintf(out, "%s: ", word);
	if (side->file) {
		ss_escape_write(side->file, NULL, out);
		(void)fputs_unlocked(", ", out);
	}
	ss_text_write_process(ss_snapshot_process(side->snapshot), report->options->color,
			      out);
}

static void write_counts(const struct report *report)
{
	const struct ss_diff *diff = report->diff;
	FILE *out = report->out;
	uint64_t begin_ns = ss_snapshot_process(report->input->before.snapshot)->time_ns;
	uint64_t end_ns = ss_snapshot_process(report->input->after.snapshot)->time_ns;

	for (size_t i = 0; i < SS_CHANGE_COUNT; i++)
		ss_style_print(SS_STYLE_STRONG, report->options->color, out, "%s%zu %s",
			       i ? ", " : "", diff->counts[i],
			       ss_change_name((enum ss_change)i));
	if (end_ns > begin_ns)
		(void)fprintf(out, "; %s apart",
			      ss_quantity_time(end_ns - begin_ns).text);
	if (!diff->same_process)
		(void)fputs_unlocked("; two processes: threads are matched by name", out);
	(void)fputc_unlocked('\n', out);
}

static void write_place(const void *data, size_t item)
{
	const struct report *report = data;
	const struct ss_task_change *change = &report->diff->items[item];
	const struct ss_task *thread = ss_change_task(change);
	const struct ss_diff_side *side = change->after ? &report->input->after :
							  &report->input->before;

	if (change->change == SS_MOVED && change->before && change->after)
		ss_text_write_move(report->input, change, report->options, report->out);
	else if (report->options->verbose)
		ss_text_write_frames(side->snapshot, thread, report->options,
				     report->out);
	else
		ss_text_write_where(side->snapshot, thread, report->options, report->out);
}

/* ", has not run", ", ran 0.12 ms (3 times)"; of several threads in all. */
static void write_progress(const struct report *report, const struct ss_bundle *row)
{
	const bool several = row->count > 1;
	uint64_t run_ns = 0;
	uint64_t runs = 0;
	bool ran = false;

	for (size_t i = 0; i < row->count; i++) {
		const struct ss_thread_progress *progress =
			report->diff->items[row->items[i]].progress;
		if (!progress || progress->movement == SS_MOVEMENT_UNKNOWN)
			return;
		ran |= progress->movement != SS_MOVEMENT_NONE;
		run_ns += progress->run_ns;
		runs += progress->runs;
	}
	if (!ran) {
		(void)fputs_unlocked(several ? ", have not run" : ", has not run",
				     report->out);
		return;
	}
	(void)fprintf(report->out, ", ran %s (%s)%s", ss_quantity_time(run_ns).text,
		      ss_quantity_things(runs, "time").text, several ? " in total" : "");
}

static void write_activity(const void *data, const struct ss_bundle *row)
{
	const struct report *report = data;
	const struct ss_task_change *first = &report->diff->items[*row->items];
	const struct ss_task *thread = ss_change_task(first);

	(void)fprintf(report->out, ", %s", ss_state_name(thread->state));
	if (row->count == 1 && first->before && first->before->tid != thread->tid)
		(void)fprintf(report->out, ", was %d", first->before->tid);
	if (first->before && first->before->state != thread->state)
		(void)fprintf(report->out, ", was %s",
			      ss_state_name(first->before->state));
	write_progress(report, row);
}

static void write_title(const void *data, unsigned part, size_t count, bool folded)
{
	const struct report *report = data;

	(void)fputc_unlocked('\n', report->out);
	ss_style_print(part == BLOCKED ? SS_STYLE_WARN : SS_STYLE_STRONG,
		       report->options->color, report->out, "%s: %s", titles[part],
		       ss_quantity_things(count, "thread").text);
	(void)fputs_unlocked(folded ? "; -a lists them\n" : "\n", report->out);
}

struct ss_error *ss_text_write_diff(const struct ss_diff_input *input,
				    const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
		ss_diff_new(input, SS_TASK_THREAD, NULL);
	_cleanup_free_ struct ss_text_item *items =
		diff ? ss_text_change_items(input, diff, part_of) : NULL;
	const struct report report = {
		.input = input, .diff = diff, .options = options, .out = out
	};
	const struct ss_snapshot *sides[] = { input->before.snapshot,
					      input->after.snapshot };
	const struct ss_snapshots both = { .items = sides,
					   .count = SS_ARRAY_SIZE(sides) };

	_cleanup_(ss_merged_cleanup) struct ss_merged *goroutines =
		ss_merged_new(&both, SS_TASK_GOROUTINE, true);
	struct ss_error *error = NULL;

	if (!items || !goroutines)
		return ss_error_no_memory();
	const struct ss_text_list list = { .items = items,
					   .count = diff->count,
					   .write_title = write_title,
					   .write_activity = write_activity,
					   .write_place = write_place,
					   .data = &report,
					   .most = THREADS_MAX,
					   .options = options,
					   .out = out };
	write_side(&report, "before", &input->before);
	write_side(&report, "after", &input->after);
	write_counts(&report);
	ss_text_write_problem(options->problem, options->color, out);
	ss_text_write_deadlocks(input->after.snapshot, NULL, options, out);
	ss_text_write_task_cycles(input->after.snapshot, options, out);
	for (enum part part = 0; part < PART_COUNT && !error; part++)
		error = ss_text_write_part(&list, part, part == IDLE ? SIZE_MAX : 0);
	if (!error)
		error = ss_text_write_groups(&both, goroutines, NULL, true, options, out);
	if (!error)
		error = ss_text_write_task_diff(input, diff, options, out);
	ss_text_write_advice(options, out);
	return error;
}

/*
 * Two sets of recordings compared, for people.
 */

/* Frames of a stack that are shown, from the innermost one on. */
enum { FRAMES_MAX = 12 };

/* Differences below half a percent are noise in most recordings. */
static const double change_min = 0.005;

static const char *const sets[] = { "before", "after" };

static void write_name(const char *name, FILE *out)
{
	ss_escape_write(name, NULL, out);
}

static void write_profile_function(const struct ss_profile *profile, uint32_t node,
				   FILE *out)
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
		write_profile_function(profile, path[count], out);
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
	for (size_t i = 0; i < SS_SET_COUNT; i++)
		(void)fprintf(
			out, "%-6s  %s, %s\n", sets[i],
			ss_quantity_things(diff->recordings.of[i], "recording").text,
			ss_quantity_things(diff->samples.of[i], "sample").text);
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

static void write_profile_thread(const struct ss_profile_diff *diff,
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
			write_profile_function(profile, d->node[set], out);
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
		write_profile_thread(diff, &diff->threads[i], out);
	}
	write_more(all, shown, out);
}

struct ss_error *ss_text_write_profile_diff(const struct ss_profile *profile,
					    const struct ss_format_options *options,
					    FILE *out)
{
	_cleanup_(ss_profile_diff_cleanup) struct ss_profile_diff *diff =
		ss_profile_diff_new(profile);
	size_t rows = ss_text_most(options, options->rows);

	if (!diff)
		return ss_error_no_memory();
	write_sets(diff, out);
	write_functions(diff, rows, out);
	write_stacks(diff, "Stacks that appeared", SS_AFTER, rows, out);
	write_stacks(diff, "Stacks that vanished", SS_BEFORE, rows, out);
	write_threads(diff, rows, out);
	for (size_t i = 0; i < profile->notes.count; i++) {
		(void)fprintf(out, "%s  ", i ? "" : "\nNotes\n");
		write_name(profile->notes.items[i], out);
		(void)fputc_unlocked('\n', out);
	}
	return NULL;
}
