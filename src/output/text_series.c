/*
 * Several snapshots of a process for people, merged: in how many of them which threads had
 * which stack.
 */
#include <stdlib.h>

#include "output/merged.h"
#include "output/quantity.h"
#include "output/state.h"
#include "output/style.h"
#include "output/text.h"

static void write_pauses(const struct ss_snapshots *snapshots, FILE *out)
{
	uint64_t longest_ns = 0;
	uint64_t sum_ns = 0;
	size_t atomic = 0;

	for (size_t i = 0; i < snapshots->count; i++) {
		const struct ss_process *process =
			ss_snapshot_process(snapshots->items[i]);
		uint64_t ns = process->threads_stopped ? process->stopped_ns : 0;
		longest_ns = SS_MAX(longest_ns, ns);
		sum_ns += ns;
		atomic += process->consistent;
	}
	if (sum_ns) {
		(void)fputs_unlocked("paused at most ", out);
		ss_quantity_write_time(longest_ns, out);
		(void)fputs_unlocked(", ", out);
		ss_quantity_write_time(sum_ns, out);
		(void)fputs_unlocked(" in all", out);
	} else {
		(void)fputs_unlocked("nothing was paused", out);
	}
	(void)fputs_unlocked(", ", out);
	if (atomic < snapshots->count) {
		ss_quantity_write_count(atomic, out);
		(void)fputs_unlocked(" of them ", out);
	}
	(void)fputs_unlocked("atomic\n", out);
}

/* "10 snapshots in 9.00 s, 5 threads; paused at most 0.12 ms, 0.80 ms in all, atomic" */
static void write_captures(const struct ss_snapshots *snapshots,
			   const struct ss_merged *merged, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[snapshots->count - 1];
	uint64_t begin_ns = ss_snapshot_process(snapshots->items[0])->time_ns;
	uint64_t end_ns = ss_snapshot_process(last)->time_ns;

	ss_quantity_write_things(snapshots->count, "snapshot", out);
	if (end_ns > begin_ns) {
		(void)fputs_unlocked(" in ", out);
		ss_quantity_write_time(end_ns - begin_ns, out);
	}
	(void)fputs_unlocked(", ", out);
	ss_quantity_write_things(merged->thread_count, "thread", out);
	(void)fputs_unlocked("; ", out);
	write_pauses(snapshots, out);
}

/* ", running", or ", 3 times running, 9 times sleeping" */
static void write_states(const struct ss_merged_stack *stack, FILE *out)
{
	for (size_t state = 0; state < SS_ARRAY_SIZE(stack->states); state++) {
		size_t times = stack->states[state];
		if (times == 0)
			continue;
		(void)fputs_unlocked(", ", out);
		if (times < stack->times) {
			ss_quantity_write_things(times, "time", out);
			(void)fputc_unlocked(' ', out);
		}
		(void)fputs_unlocked(ss_state_name((char)state), out);
	}
}

/* "in all snapshots", "in 8 of 10 snapshots" */
static void write_snapshots(size_t snapshots, size_t of, FILE *out)
{
	(void)fputs_unlocked("in ", out);
	if (snapshots == of) {
		(void)fputs_unlocked("all", out);
	} else {
		ss_quantity_write_count(snapshots, out);
		(void)fputs_unlocked(" of ", out);
		ss_quantity_write_count(of, out);
	}
	(void)fputs_unlocked(" snapshots", out);
}

/* ", 20 to 24", how many there were in a snapshot; nothing if always as many */
static void write_range(size_t least, size_t most, FILE *out)
{
	if (most <= SS_MAX(least, (size_t)1))
		return;
	(void)fputs_unlocked(", ", out);
	if (least) {
		ss_quantity_write_count(least, out);
		(void)fputs_unlocked(" to ", out);
	} else {
		(void)fputs_unlocked("at most ", out);
	}
	ss_quantity_write_count(most, out);
}

void ss_text_write_presence(const struct ss_presence *presence, size_t snapshots,
			    FILE *out)
{
	write_snapshots(presence->snapshots, snapshots, out);
	write_range(presence->least, presence->most, out);
	(void)fputs_unlocked(": ", out);
}

/* "in 8 of 10 snapshots, 12 times: 2 threads, running: worker-* 11,12" */
static struct ss_error *write_header(const struct ss_snapshots *snapshots,
				     const struct ss_merged_stack *stack,
				     const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ const struct ss_thread **threads =
		calloc(stack->threads.count, sizeof(const struct ss_thread *));

	if (!threads)
		return ss_error_no_memory();
	for (size_t i = 0; i < stack->threads.count; i++)
		threads[i] = stack->threads.items[i].thread;
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	write_snapshots(stack->snapshots, snapshots->count, out);
	if (stack->times != stack->snapshots) {
		(void)fputs_unlocked(", ", out);
		ss_quantity_write_things(stack->times, "time", out);
	}
	(void)fputs_unlocked(": ", out);
	ss_quantity_write_things(stack->threads.count, "thread", out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	write_states(stack, out);
	ss_text_write_thread_list(threads, stack->threads.count, options, out);
	return NULL;
}

static struct ss_error *write_stack(const struct ss_snapshots *snapshots,
				    const struct ss_merged_stack *stack,
				    const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[stack->last];

	(void)fputc_unlocked('\n', out);
	struct ss_error *error = write_header(snapshots, stack, options, out);
	if (!error)
		error = ss_text_write_waits(last, stack->group, options, out);
	if (!error)
		ss_text_write_frames(last,
				     ss_snapshot_thread(last, *stack->group->members),
				     options, out);
	return error;
}

/* Whether a stack of idle threads is only counted. */
static bool is_foldable(const struct ss_merged *merged, size_t index)
{
	return index > 0 && merged->items[index].class == SS_GROUP_IDLE;
}

static void write_folded(const struct ss_merged *merged, size_t stacks, bool color,
			 FILE *out)
{
	size_t times = 0;

	for (size_t i = 0; i < merged->count; i++)
		times += is_foldable(merged, i) ? merged->items[i].times : 0;
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_STRONG, color, out);
	ss_quantity_write_things(stacks, "stack", out);
	(void)fputs_unlocked(" of idle threads", out);
	ss_style_write(SS_STYLE_NONE, color, out);
	(void)fputs_unlocked(", ", out);
	ss_quantity_write_things(times, "time", out);
	(void)fputs_unlocked("; -a shows them\n", out);
}

struct ss_error *ss_text_write_series(const struct ss_snapshots *snapshots,
				      const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[snapshots->count - 1];
	const struct ss_process *process = ss_snapshot_process(snapshots->items[0]);
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged = ss_merged_new(snapshots);
	struct ss_error *error = merged ? NULL : ss_error_no_memory();
	size_t foldable = 0;

	if (error)
		return error;
	ss_text_write_process(process, options->color, out);
	write_captures(snapshots, merged, out);
	ss_text_write_frozen(ss_snapshot_process(last), options->color, out);
	ss_text_write_problem(options->problem, options->color, out);
	ss_text_write_deadlocks(last, true, options, out);
	ss_text_write_task_cycles(last, options, out);
	for (size_t i = 0; i < merged->count; i++)
		foldable += is_foldable(merged, i);
	bool folding = foldable > 1 && !options->all && !options->verbose;
	for (size_t i = 0; i < merged->count && !error; i++) {
		if (!folding || !is_foldable(merged, i))
			error = write_stack(snapshots, &merged->items[i], options, out);
	}
	if (folding)
		write_folded(merged, foldable, options->color, out);
	if (!error)
		error = ss_text_write_merged_goroutines(snapshots, false, options, out);
	if (!error)
		error = ss_text_write_merged_tasks(snapshots, options, out);
	ss_text_write_advice(options, out);
	return error;
}
