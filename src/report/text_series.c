/*
 * Several snapshots of a process for people, merged: in how many of them which threads had
 * which stack.
 */
#include <stdlib.h>
#include <string.h>

#include "report/escape.h"
#include "report/merged.h"
#include "report/names.h"
#include "report/quantity.h"
#include "report/style.h"
#include "report/text.h"

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
		(void)fprintf(out, "paused at most %s, %s in all",
			      ss_quantity_time(longest_ns).text,
			      ss_quantity_time(sum_ns).text);
	else
		(void)fputs_unlocked("nothing was paused", out);
	(void)fputs_unlocked(", ", out);
	if (atomic < snapshots->count)
		(void)fprintf(out, "%s of them ", ss_quantity_count(atomic).text);
	(void)fputs_unlocked("atomic\n", out);
}

/* "10 snapshots in 9.00 s, 5 threads; paused at most 0.12 ms, 0.80 ms in all, atomic" */
static void write_captures(const struct ss_snapshots *snapshots,
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

/* The threads of a stack, to be freed; NULL without memory. */
static const struct ss_task **list_threads(const struct ss_merged_group *stack)
{
	const struct ss_task **threads =
		calloc(stack->members.count + 1, sizeof(const struct ss_task *));

	for (size_t i = 0; threads && i < stack->members.count; i++)
		threads[i] = stack->members.items[i].task;
	return threads;
}

/* "in 8 of 10 snapshots, 12 times: 2 threads, running: worker-* 11,12" */
static struct ss_error *write_header(const struct ss_snapshots *snapshots,
				     const struct ss_merged_group *stack,
				     const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ const struct ss_task **threads = list_threads(stack);

	if (!threads)
		return ss_error_no_memory();
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_text_write_snapshots(stack->presence.snapshots, snapshots->count, out);
	if (stack->times != stack->presence.snapshots)
		(void)fprintf(out, ", %s", ss_quantity_things(stack->times, "time").text);
	(void)fprintf(out, ": %s",
		      ss_quantity_things(stack->members.count, "thread").text);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	ss_text_write_states(stack->states, stack->times, "time", out);
	ss_text_write_list(threads, stack->members.count, options, out);
	return NULL;
}

static struct ss_error *write_stack(const struct ss_snapshots *snapshots,
				    const struct ss_merged_group *stack,
				    const struct ss_format_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	struct ss_error *error = write_header(snapshots, stack, options, out);
	if (!error)
		error = ss_text_write_waits(stack->group->members, stack->group->count,
					    "  ", options, out);
	if (!error)
		ss_text_write_frames(snapshots->items[stack->presence.last],
				     *stack->group->members, options, out);
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
	ss_style_print(SS_STYLE_STRONG, color, out, "%s of idle threads",
		       ss_quantity_things(stacks, "stack").text);
	(void)fprintf(out, ", %s; -a shows them\n",
		      ss_quantity_things(times, "time").text);
}

struct ss_error *ss_text_write_series(const struct ss_snapshots *snapshots,
				      const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[snapshots->count - 1];
	const struct ss_process *process = ss_snapshot_process(snapshots->items[0]);
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(snapshots, SS_TASK_THREAD);
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
		error = ss_text_write_merged_tasks(snapshots, SS_TASK_GOROUTINE, false,
						   options, out);
	if (!error)
		error = ss_text_write_merged_tasks(snapshots, SS_TASK_ASYNCIO, false,
						   options, out);
	ss_text_write_advice(options, out);
	return error;
}

/*
 * Several processes for people: equal stacks are merged over all of them.
 */

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
		(void)fputs_unlocked("; nothing was paused\n", out);
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
	size_t shown = options->verbose ? snapshots->count :
					  SS_MIN(snapshots->count, (size_t)PROCESSES_MAX);

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
	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++) {
		if (!is_known(snapshots, index, ss_snapshot_cycle(snapshot, i)))
			return false;
	}
	return true;
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
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (!is_repeated(snapshots, index))
		ss_text_write_deadlocks(snapshots->items[index], true, options, out);
	ss_text_write_task_cycles(snapshots->items[index], options, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
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
	for (size_t i = 0; i < index; i++) {
		if (strcmp(findings->texts[i], findings->texts[index]) == 0)
			return true;
	}
	return false;
}

static struct ss_error *write_deadlocks(const struct ss_snapshots *snapshots,
					const struct ss_format_options *options,
					FILE *out)
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

/* "9 threads in 8 of 11 processes, sleeping: postgres 4711-4719" */
static struct ss_error *write_process_stack(const struct ss_snapshots *snapshots,
					    const struct ss_merged_group *stack,
					    const struct ss_format_options *options,
					    FILE *out)
{
	const size_t count = stack->members.count;
	_cleanup_free_ const struct ss_task **threads = list_threads(stack);

	if (!threads)
		return ss_error_no_memory();
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_STRONG, options->color, out, "%s in %s of %s processes",
		       ss_quantity_things(count, "thread").text,
		       ss_quantity_count(stack->presence.snapshots).text,
		       ss_quantity_count(snapshots->count).text);
	ss_text_write_states(stack->states, stack->times, NULL, out);
	ss_text_write_list(threads, count, options, out);
	struct ss_error *error = ss_text_write_waits(threads, count, "  ", options, out);
	if (!error)
		ss_text_write_frames(snapshots->items[stack->presence.last],
				     *stack->group->members, options, out);
	return error;
}

/* As in a snapshot of one process: what few do comes first. */
static int compare(const void *a, const void *b)
{
	const struct ss_merged_group *x = *(const struct ss_merged_group *const *)a;
	const struct ss_merged_group *y = *(const struct ss_merged_group *const *)b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->times != y->times)
		return x->times < y->times ? -1 : 1;
	return (x > y) - (x < y);
}

static bool is_process_foldable(const struct ss_merged_group *stack)
{
	return stack->class == SS_GROUP_IDLE;
}

static void write_process_folded(size_t stacks, size_t threads, bool color, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_STRONG, color, out, "%s",
		       ss_quantity_things(threads, "idle thread").text);
	(void)fprintf(out, " in %s; -a shows them\n",
		      ss_quantity_things(stacks, "group").text);
}

static struct ss_error *write_stacks(const struct ss_snapshots *snapshots,
				     const struct ss_merged *merged,
				     const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ const struct ss_merged_group **order =
		calloc(merged->count + 1, sizeof(const struct ss_merged_group *));
	size_t folded = 0;
	size_t threads = 0;
	struct ss_error *error = order ? NULL : ss_error_no_memory();

	if (error)
		return error;
	for (size_t i = 0; i < merged->count; i++)
		order[i] = &merged->items[i];
	if (merged->count > 1)
		qsort(order, merged->count, sizeof(const struct ss_merged_group *),
		      compare);
	/* If all are idle, that is what the user wants to see. */
	bool all = options->all || options->verbose || merged->count == 0 ||
		   is_process_foldable(order[0]);
	for (size_t i = 0; i < merged->count && !error; i++) {
		if (all || !is_process_foldable(order[i])) {
			error = write_process_stack(snapshots, order[i], options, out);
			continue;
		}
		folded++;
		threads += order[i]->times;
	}
	if (folded)
		write_process_folded(folded, threads, options->color, out);
	return error;
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

	for (size_t i = 0; i < snapshots->count; i++) {
		goroutines +=
			ss_snapshot_task_count(snapshots->items[i], SS_TASK_GOROUTINE);
		tasks += ss_snapshot_task_count(snapshots->items[i], SS_TASK_ASYNCIO);
	}
	write_count(goroutines, "goroutine", "goroutines", out);
	write_count(tasks, "asyncio task", "tasks", out);
}

struct ss_error *ss_text_write_processes(const struct ss_snapshots *snapshots,
					 const struct ss_format_options *options,
					 FILE *out)
{
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(snapshots, SS_TASK_THREAD);
	struct ss_error *error = merged ? NULL : ss_error_no_memory();

	if (error)
		return error;
	write_process_captures(snapshots, options->color, out);
	write_processes(snapshots, options, out);
	ss_text_write_problem(options->problem, options->color, out);
	error = write_deadlocks(snapshots, options, out);
	if (!error)
		error = write_stacks(snapshots, merged, options, out);
	write_left_out(snapshots, out);
	ss_text_write_advice(options, out);
	return error;
}
