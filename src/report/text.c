/*
 * A snapshot for people: the process, how it was captured, deadlocks, then the threads in
 * groups of equal stacks.
 */
#include "report/text.h"

#include <stdlib.h>
#include <string.h>

#include "report/crash.h"
#include "report/escape.h"
#include "report/quantity.h"
#include "report/style.h"
#include "report/wait_text.h"

/* "paused 0.85 ms (all threads, running ones at most 0.055 ms)" */
static void write_pause(const struct ss_process *process, size_t count, FILE *out)
{
	if (process->threads_stopped == 0) {
		(void)fputs_unlocked("nothing was paused", out);
		return;
	}
	(void)fprintf(out, "paused %s", ss_quantity_time(process->stopped_ns).text);
	if (count == 1)
		return;
	(void)fputs_unlocked(" (", out);
	if (process->threads_stopped < count)
		(void)fprintf(out, "%s of %s threads",
			      ss_quantity_count(process->threads_stopped).text,
			      ss_quantity_count(count).text);
	else
		(void)fputs_unlocked("all threads", out);
	if (process->threads_stopped > 1 && process->running_stopped_ns)
		(void)fprintf(out, ", running ones at most %s",
			      ss_quantity_time(process->running_stopped_ns).text);
	(void)fputc_unlocked(')', out);
}

/* Threads whose stack changed while it was copied. */
static size_t count_torn(const struct ss_snapshot *snapshot)
{
	size_t count = 0;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		count += !thread->consistent && thread->frame_count > 0;
	}
	return count;
}

/* Whether the stacks show one point in time, and if not, why. */
static void write_atomicity(const struct ss_snapshot *snapshot, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t torn = count_torn(snapshot);

	if (process->consistent) {
		(void)fputs_unlocked(", atomic", out);
		return;
	}
	(void)fputs_unlocked(", not atomic: ", out);
	if (torn) {
		(void)fprintf(out, "%s changed while being read",
			      ss_quantity_things(torn, "thread").text);
	} else if (process->threads_unseen) {
		(void)fputs_unlocked("some threads were not captured", out);
	} else if (process->threads_stopped == 0) {
		(void)fputs_unlocked("threads were read one after another", out);
	} else {
		(void)fputs_unlocked("threads were paused at different times", out);
	}
}

static void write_capture(const struct ss_snapshot *snapshot, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t count = ss_snapshot_task_count(snapshot, SS_TASK_THREAD);

	(void)fputs_unlocked(ss_quantity_things(count, "thread").text, out);
	if (process->mode == SS_MODE_CORE) {
		(void)fputs_unlocked(process->core_truncated ?
					     "; from a core file, which is truncated\n" :
					     "; from a core file\n",
				     out);
		ss_crash_write(snapshot, out);
		return;
	}
	(void)fputs_unlocked("; ", out);
	if (process->crash.signal) {
		(void)fputs_unlocked("when the signal arrived", out);
		write_atomicity(snapshot, out);
		(void)fputc_unlocked('\n', out);
		ss_crash_write(snapshot, out);
		return;
	}
	write_pause(process, count, out);
	if (process->mode == SS_MODE_LIVE)
		(void)fputs_unlocked(", unwound meanwhile", out);
	write_atomicity(snapshot, out);
	(void)fputc_unlocked('\n', out);
}

static void write_unseen(unsigned count, bool color, FILE *out)
{
	if (count == 0)
		return;
	ss_style_print(SS_STYLE_WARN, color, out,
		       "%s more thread%s exist%s, but could not be read\n",
		       ss_quantity_count(count).text, count == 1 ? "" : "s",
		       count == 1 ? "s" : "");
}

/* Where the threads of a group wait, in the language of the program: "  waits in Queue.get at
   worker.py:41". */
static void write_place(const struct ss_snapshot *snapshot, const struct ss_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *thread = *group->members;
	size_t program = 0;
	size_t called = ss_text_find_wait(snapshot, thread, &program);

	if (called >= thread->frame_count || options->raw)
		return;
	const struct ss_frame *caller = ss_snapshot_frame(snapshot, thread, program);
	(void)fputs_unlocked(group->count == 1 ? "  waits in " : "  wait in ", out);
	ss_escape_write(ss_snapshot_frame(snapshot, thread, called)->symbol, NULL, out);
	ss_text_write_source(caller->file, caller->line, options->verbose, out);
	(void)fputc_unlocked('\n', out);
}

static struct ss_error *write_group(const struct ss_snapshot *snapshot,
				    const struct ss_group *group,
				    const struct ss_grouping *goroutines,
				    const struct ss_format_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_text_write_threads(snapshot, group, options, out);
	struct ss_error *error =
		ss_text_write_waits(group->members, group->count, "  ", options, out);

	write_place(snapshot, group, options, out);
	ss_text_write_thread_goroutine(goroutines, snapshot, group, options, out);
	if (group->like_previous)
		(void)fputs_unlocked("  the same native frames; functions of the "
				     "interpreted program are not known\n",
				     out);
	else
		ss_text_write_frames(snapshot, *group->members, options, out);
	return error;
}

/* Whether a group of idle threads is only counted. The first group is shown in any case:
   usually that of the main thread. */
static bool is_foldable(const struct ss_grouping *grouping, size_t index)
{
	return index > 0 && grouping->groups[index].class == SS_GROUP_IDLE;
}

/* A single thread is not worth the remark that it is left out. */
static bool folds(const struct ss_grouping *grouping,
		  const struct ss_format_options *options)
{
	size_t threads = 0;

	for (size_t i = 0; i < grouping->count; i++)
		threads += is_foldable(grouping, i) ? grouping->groups[i].count : 0;
	return threads > 1 && !options->all && !options->verbose && !options->no_group;
}

/* "38 idle threads in 6 groups; -a shows them" */
static void write_folded(const struct ss_grouping *grouping, bool color, FILE *out)
{
	size_t groups = 0;
	size_t threads = 0;
	size_t incomplete = 0;

	for (size_t i = 0; i < grouping->count; i++) {
		const struct ss_group *group = &grouping->groups[i];
		if (!is_foldable(grouping, i))
			continue;
		groups += !group->like_previous;
		threads += group->count;
		if ((*group->members)->end != SS_END_ROOT)
			incomplete += group->count;
	}
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_STRONG, color, out, "%s",
		       ss_quantity_things(threads, "idle thread").text);
	(void)fprintf(out, " in %s",
		      ss_quantity_things(SS_MAX(groups, (size_t)1), "group").text);
	if (incomplete)
		(void)fprintf(out, ", %s with %s", ss_quantity_count(incomplete).text,
			      incomplete == 1 ? "an incomplete stack" :
						"incomplete stacks");
	(void)fputs_unlocked("; -a shows them\n", out);
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, !options->no_group);
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *goroutines =
		ss_grouping_new(snapshot, SS_TASK_GOROUTINE, !options->no_group);
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *tasks =
		ss_grouping_new(snapshot, SS_TASK_ASYNCIO, !options->no_group);
	struct ss_error *error = grouping && goroutines && tasks ? NULL :
								   ss_error_no_memory();

	if (error)
		return error;
	ss_text_write_process(process, options->color, out);
	write_capture(snapshot, out);
	if (options->verbose)
		ss_crash_write_registers(snapshot, out);
	ss_text_write_frozen(process, options->color, out);
	write_unseen(process->threads_unseen, options->color, out);
	ss_text_write_problem(options->problem, options->color, out);
	ss_text_write_deadlocks(snapshot, true, options, out);
	ss_text_write_task_cycles(snapshot, options, out);
	bool folding = folds(grouping, options);
	for (size_t i = 0; i < grouping->count && !error; i++) {
		if (!folding || !is_foldable(grouping, i))
			error = write_group(snapshot, &grouping->groups[i], goroutines,
					    options, out);
	}
	if (folding)
		write_folded(grouping, options->color, out);
	if (error)
		return error;
	ss_text_write_tasks(snapshot, goroutines, options, out);
	ss_text_write_tasks(snapshot, tasks, options, out);
	ss_text_write_advice(options, out);
	return NULL;
}

const struct ss_format ss_format_text = {
	.name = "text",
	.description = "for people; equal stacks are merged",
	.separator = "\n",
	.explains = true,
	.write_snapshot = write_snapshot,
	.write_hang = ss_text_write_hang,
	.write_profile = ss_text_write_profile,
	.write_profile_diff = ss_text_write_profile_diff,
	.write_series = ss_text_write_series,
	.write_diff = ss_text_write_diff,
	.write_processes = ss_text_write_processes,
	.write_heap = ss_text_write_heap,
};
