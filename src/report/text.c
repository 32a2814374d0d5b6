/*
 * One or more snapshots for people: the process, how it was captured, deadlocks, then the threads in
 * groups of equal stacks. Of several snapshots of a process, in how many of them which threads had
 * which stack; of several processes, equal stacks are merged over all of them.
 */
#include "report/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text_stream.h"
#include "report/crash.h"
#include "report/group.h"
#include "report/names.h"
#include "report/print.h"

/* One snapshot ---------------------------------------------------------------- */

/* "paused 0.85 ms (all threads, running ones at most 0.055 ms)" */
static void write_pause(const struct ss_process *process, size_t count, FILE *out)
{
	if (process->threads_stopped == 0) {
		(void)fputs_unlocked("no thread was paused", out);
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
					     "; from a truncated core file\n" :
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
		(void)fputs_unlocked(", including unwinding", out);
	write_atomicity(snapshot, out);
	(void)fputc_unlocked('\n', out);
}

/* The reasons for exit status 1. */
static void write_missing(const struct ss_snapshots *snapshots,
			  const struct ss_format_options *options, FILE *out)
{
	const bool series = snapshots->kind == SS_SNAPSHOTS_SERIES;
	char prefix[64] = "incomplete: ";

	ss_style_write(SS_STYLE_WARN, options->color, out);
	for (size_t i = 0; i < snapshots->count; i++) {
		const struct ss_snapshot *snapshot = snapshots->items[i];
		if (ss_missing_count(snapshot, options->strict) == 0)
			continue;
		if (series) /* it fits, also below */
			(void)snprintf(prefix, sizeof(prefix),
				       "incomplete in snapshot %zu: ", i + 1);
		else if (snapshots->kind == SS_SNAPSHOTS_PROCESSES)
			(void)snprintf(prefix, sizeof(prefix), "incomplete in %d: ",
				       ss_snapshot_process(snapshot)->pid);
		ss_missing_write(snapshot, options->max_stack, options->strict, prefix,
				 out);
		if (series)
			break;
	}
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

/* A series -------------------------------------------------------------------- */

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
	if (sum_ns)
		(void)fprintf(out, "paused at most %s, %s in total",
			      ss_quantity_time(longest_ns).text,
			      ss_quantity_time(sum_ns).text);
	else
		(void)fputs_unlocked("no thread was paused", out);
	(void)fputs_unlocked(", ", out);
	if (atomic < snapshots->count)
		(void)fprintf(out, "%s of them ", ss_quantity_count(atomic).text);
	(void)fputs_unlocked("atomic\n", out);
}

/* "10 snapshots in 9.00 s, 5 threads; paused at most 0.12 ms, 0.80 ms in total, atomic" */
static void write_series_captures(const struct ss_snapshots *snapshots,
				  const struct ss_merged *merged, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[snapshots->count - 1];
	uint64_t begin_ns = ss_snapshot_process(snapshots->items[0])->time_ns;
	uint64_t end_ns = ss_snapshot_process(last)->time_ns;

	(void)fputs_unlocked(ss_quantity_things(snapshots->count, "snapshot").text, out);
	if (end_ns > begin_ns)
		(void)fprintf(out, " in %s", ss_quantity_time(end_ns - begin_ns).text);
	(void)fprintf(out, ", %s; ",
		      ss_quantity_things(merged->thread_count, "thread").text);
	write_pauses(snapshots, out);
}

/* Several processes ----------------------------------------------------------- */

enum { PROCESSES_MAX = 24 }; /* without -v */

/* "11 processes, 12 threads; paused at most 0.12 ms; within 35 ms" */
static void write_process_captures(const struct ss_snapshots *snapshots, bool color,
				   FILE *out)
{
	uint64_t first_ns = UINT64_MAX;
	uint64_t last_ns = 0;
	uint64_t paused_ns = 0;
	size_t threads = 0;

	for (size_t i = 0; i < snapshots->count; i++) {
		const struct ss_process *process =
			ss_snapshot_process(snapshots->items[i]);
		first_ns = SS_MIN(first_ns, process->time_ns);
		last_ns = SS_MAX(last_ns, process->time_ns);
		if (process->threads_stopped)
			paused_ns = SS_MAX(paused_ns, process->stopped_ns);
		threads += ss_snapshot_task_count(snapshots->items[i], SS_TASK_THREAD);
	}
	ss_style_print(SS_STYLE_STRONG, color, out, "%s processes",
		       ss_quantity_count(snapshots->count).text);
	(void)fprintf(out, ", %s, %s, one after the other within %s",
		      ss_quantity_things(threads, "thread").text,
		      ss_quantity_date(first_ns).text,
		      ss_quantity_time(last_ns - first_ns).text);
	if (paused_ns)
		(void)fprintf(out, "; each paused at most %s\n",
			      ss_quantity_time(paused_ns).text);
	else
		(void)fputs_unlocked("; no thread was paused\n", out);
}

/* "  4711 postgres: checkpointer" */
static void write_process(const struct ss_snapshots *snapshots, size_t index, bool color,
			  FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshots->items[index]);
	const char *command = snapshots->command_lines ? snapshots->command_lines[index] :
							 NULL;

	(void)fprintf(out, "%7d ", process->pid);
	ss_escape_write(command && *command ? command : process->name, NULL, out);
	(void)fputc_unlocked('\n', out);
	ss_text_write_frozen(process, color, out);
}

static void write_processes(const struct ss_snapshots *snapshots,
			    const struct ss_format_options *options, FILE *out)
{
	size_t shown = SS_MIN(snapshots->count, ss_text_most(options, PROCESSES_MAX));

	for (size_t i = 0; i < shown; i++)
		write_process(snapshots, i, options->color, out);
	if (shown < snapshots->count)
		(void)fprintf(out, "    ... and %s more (-v lists them)\n",
			      ss_quantity_count(snapshots->count - shown).text);
}

/* Whether a cycle through several processes was found in one of the snapshots before, too. */
static bool is_known(const struct ss_snapshots *snapshots, size_t index,
		     const struct ss_cycle *cycle)
{
	pid_t tid = cycle->members[0].thread->tid;

	for (size_t i = 0; i < index; i++) {
		for (size_t j = 0; j < ss_snapshot_cycle_count(snapshots->items[i]);
		     j++) {
			const struct ss_cycle *other =
				ss_snapshot_cycle(snapshots->items[i], j);
			for (size_t k = 0; k < other->count; k++) {
				if (other->members[k].thread->tid == tid &&
				    other->count == cycle->count)
					return true;
			}
		}
	}
	return false;
}

/* Whether all cycles of a snapshot are known, and there is nothing else about locks in it. */
static bool is_repeated(const struct ss_snapshots *snapshots, size_t index)
{
	const struct ss_snapshot *snapshot = snapshots->items[index];

	if (ss_snapshot_deadlock_count(snapshot) || ss_snapshot_blocker_count(snapshot) ||
	    ss_snapshot_application_lock_count(snapshot))
		return false;
	return ss_all(ss_snapshot_cycle_count(snapshot), i,
		      is_known(snapshots, index, ss_snapshot_cycle(snapshot, i)));
}

/* What is wrong in each process, "" for nothing. */
struct findings {
	char **texts; /* owned */
	size_t count;
};

static void findings_deinit(struct findings *findings)
{
	for (size_t i = 0; findings->texts && i < findings->count; i++)
		free(findings->texts[i]);
	free(findings->texts);
}

static char *new_finding(const struct ss_snapshots *snapshots, size_t index,
			 const struct ss_format_options *options)
{
	const struct ss_snapshot *snapshot = snapshots->items[index];
	struct ss_text_stream text;

	if (!ss_text_stream_open(&text))
		return NULL;
	if (!is_repeated(snapshots, index))
		ss_text_write_deadlocks(snapshot, NULL, options, text.out);
	ss_text_write_task_cycles(snapshot, options, text.out);
	return ss_text_stream_close(&text);
}

/* "in postgres, pids 4711, 4712:" and what they have in common. */
static void write_finding(const struct ss_snapshots *snapshots,
			  const struct findings *findings, size_t index, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshots->items[index]);
	const char *text = findings->texts[index];
	size_t same = 0;

	for (size_t i = 0; i < findings->count; i++)
		same += strcmp(findings->texts[i], text) == 0;
	(void)fputs_unlocked("\nin ", out);
	ss_escape_write(process->name, NULL, out);
	(void)fprintf(out, ", pid%s %d", same > 1 ? "s" : "", process->pid);
	for (size_t i = index + 1; i < findings->count; i++) {
		if (strcmp(findings->texts[i], text) == 0)
			(void)fprintf(out, ", %d",
				      ss_snapshot_process(snapshots->items[i])->pid);
	}
	(void)fputc_unlocked(':', out);
	if (*text != '\n')
		(void)fputc_unlocked('\n', out);
	(void)fputs_unlocked(text, out);
}

static bool was_written(const struct findings *findings, size_t index)
{
	return ss_any(index, i, strcmp(findings->texts[i], findings->texts[index]) == 0);
}

static struct ss_error *write_findings(const struct ss_snapshots *snapshots,
				       const struct ss_format_options *options, FILE *out)
{
	__attribute__((cleanup(findings_deinit))) struct findings findings = {
		.texts = calloc(snapshots->count, sizeof(char *)),
	};

	for (size_t i = 0; findings.texts && i < snapshots->count; i++) {
		findings.texts[i] = new_finding(snapshots, i, options);
		if (!findings.texts[i])
			return ss_error_no_memory();
		findings.count++;
	}
	if (!findings.texts)
		return ss_error_no_memory();
	for (size_t i = 0; i < findings.count; i++) {
		if (*findings.texts[i] && !was_written(&findings, i))
			write_finding(snapshots, &findings, i, out);
	}
	return NULL;
}

/* "1,204 goroutines; --goroutines=all shows them, and each process separately" */
static void write_count(size_t count, const char *thing, const char *option, FILE *out)
{
	if (count == 0)
		return;
	(void)fprintf(out, "\n%s; --%s=all shows %s, and each process separately\n",
		      ss_quantity_things(count, thing).text, option,
		      count == 1 ? "it" : "them");
}

/* Processes share stacks of threads, but not these. */
static void write_left_out(const struct ss_snapshots *snapshots, FILE *out)
{
	size_t goroutines = 0;
	size_t tasks = 0;
	size_t greenlets = 0;

	for (size_t i = 0; i < snapshots->count; i++) {
		goroutines +=
			ss_snapshot_task_count(snapshots->items[i], SS_TASK_GOROUTINE);
		tasks += ss_snapshot_task_count(snapshots->items[i], SS_TASK_ASYNCIO);
		greenlets += ss_greenlet_count(snapshots->items[i]);
	}
	write_count(goroutines, "goroutine", "goroutines", out);
	write_count(tasks - greenlets, "asyncio task", "tasks", out);
	write_count(greenlets, "greenlet", "tasks", out);
}

static struct ss_error *write_heading(const struct ss_snapshots *snapshots,
				      const struct ss_merged *threads,
				      const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[snapshots->count - 1];
	const struct ss_process *process = ss_snapshot_process(last);
	const bool one = snapshots->kind == SS_SNAPSHOTS_ONE;

	if (snapshots->kind == SS_SNAPSHOTS_PROCESSES) {
		write_process_captures(snapshots, options->color, out);
		write_processes(snapshots, options, out);
		write_missing(snapshots, options, out);
		ss_text_write_problem(options->problem, options->color, out);
		return write_findings(snapshots, options, out);
	}
	ss_text_write_process(ss_snapshot_process(*snapshots->items), options->color,
			      out);
	if (one)
		write_capture(last, out);
	else
		write_series_captures(snapshots, threads, out);
	if (one && options->verbose)
		ss_crash_write_registers(last, out);
	ss_text_write_frozen(process, options->color, out);
	write_missing(snapshots, options, out);
	ss_text_write_problem(options->problem, options->color, out);
	ss_text_write_deadlocks(last, NULL, options, out);
	ss_text_write_task_cycles(last, options, out);
	return NULL;
}

static struct ss_error *write_snapshots(const struct ss_snapshots *snapshots,
					const struct ss_format_options *options,
					FILE *out)
{
	const bool merge = snapshots->kind != SS_SNAPSHOTS_ONE || !options->no_group;
	const bool processes = snapshots->kind == SS_SNAPSHOTS_PROCESSES;
	_cleanup_(ss_merged_cleanup) struct ss_merged *threads =
		ss_merged_new(snapshots, SS_TASK_THREAD, merge);

	if (!threads)
		return ss_error_no_memory();
	struct ss_error *error = write_heading(snapshots, threads, options, out);
	if (threads->count == 0)
		(void)fputs_unlocked(
			"\nnone of its threads is in a state that was asked for\n", out);
	if (!error && processes)
		error = ss_text_write_groups(snapshots, threads, NULL, false, options,
					     out);
	else if (!error)
		error = ss_text_write_tasks(snapshots, threads, merge, options, out);
	if (processes)
		write_left_out(snapshots, out);
	ss_text_write_advice(options, out);
	return error;
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshots one = { .items = &snapshot,
					  .count = 1,
					  .kind = SS_SNAPSHOTS_ONE };

	return write_snapshots(&one, options, out);
}

const struct ss_format ss_format_text = {
	.name = "text",
	.description = "for people; equal stacks are merged",
	.separator = "\n",
	.explains = true,
	.merges_processes = true,
	.write_snapshot = write_snapshot,
	.write_hang = ss_text_write_hang,
	.write_profile = ss_text_write_profile,
	.write_profile_diff = ss_text_write_profile_diff,
	.write_snapshots = write_snapshots,
	.write_diff = ss_text_write_diff,
	.write_heap = ss_text_write_heap,
};
