/*
 * stacksnap-series/1: one line, see stacksnap-json(5).
 */
#include "report/diff.h"
#include "report/json.h"
#include "report/group.h"
#include "diagnose/progress.h"

/* How many goroutines and tasks one of several snapshots has. */
static void write_task_counts(struct ss_json *json, const struct ss_snapshot *snapshot)
{
	const struct ss_task_coverage *coverage =
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO);
	size_t goroutines = ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE);

	ss_json_signed_if(json, "goroutines", goroutines, (int64_t)goroutines);
	ss_json_unsigned(json, "goroutines_unread",
			 ss_snapshot_task_coverage(snapshot, SS_TASK_GOROUTINE)->unread);
	ss_json_unsigned(json, "tasks",
			 ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO));
	ss_json_unsigned(json, "tasks_changed", coverage->changed);
	ss_json_unsigned(json, "tasks_unread", coverage->unread);
}

static void write_captures(struct ss_json *json, const struct ss_snapshots *snapshots)
{
	ss_json_open(json, "captures", '[');
	for (size_t i = 0; i < snapshots->count; i++) {
		const struct ss_snapshot *snapshot = snapshots->items[i];
		ss_json_open(json, NULL, '{');
		ss_json_members(json, &ss_process_schema, ss_snapshot_process(snapshot),
				SS_SHOW_TIME | SS_SHOW_CAPTURE);
		ss_json_unsigned(json, "threads",
				 ss_snapshot_task_count(snapshot, SS_TASK_THREAD));
		write_task_counts(json, snapshot);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
}

static void write_threads(struct ss_json *json, const struct ss_merged_group *stack)
{
	ss_json_open(json, "threads", '[');
	for (size_t i = 0; i < stack->members.count; i++) {
		const struct ss_merged_member *member = &stack->members.items[i];
		ss_json_open(json, NULL, '{');
		ss_json_members(json, &ss_task_schema, member->task, SS_SHOW_THREAD);
		ss_json_unsigned(json, "snapshots", member->snapshots);
		ss_json_wait(json, "wait", member->task->wait);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
}

static void write_states(struct ss_json *json, const struct ss_merged_group *stack)
{
	ss_json_open(json, "states", '{');
	for (size_t state = 0; state < SS_ARRAY_SIZE(stack->states); state++) {
		const char name[] = { (char)state, '\0' };
		if (stack->states[state])
			ss_json_unsigned(json, name, stack->states[state]);
	}
	ss_json_close(json, '}');
}

static void write_stack(struct ss_json *json, const struct ss_snapshot *snapshot,
			const struct ss_merged_group *stack)
{
	const struct ss_task *thread = *stack->group->members;

	ss_json_open(json, NULL, '{');
	ss_json_unsigned(json, "snapshots", stack->presence.snapshots);
	ss_json_unsigned(json, "times", stack->times);
	ss_json_unsigned(json, "last", stack->presence.last);
	write_states(json, stack);
	ss_json_members(json, &ss_task_schema, thread, SS_SHOW_END);
	write_threads(json, stack);
	ss_json_frames(json, "frames", snapshot, thread, false);
	ss_json_close(json, '}');
}

/* What tasks do. Those that they wait for are named: numbers are of one snapshot. */
static void write_doing(struct ss_json *json, const struct ss_snapshot *snapshot,
			const struct ss_task *const *tasks, size_t count)
{
	const struct ss_task *first = *tasks;

	ss_json_doing(json, tasks, count);
	/* A change has one of its tasks at least.
	   NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	if (first->kind != SS_TASK_ASYNCIO)
		return;
	ss_json_open(json, "awaited_names", '[');
	for (size_t i = 0; i < first->awaited_count; i++)
		ss_json_text(
			json, NULL,
			ss_snapshot_task(snapshot, first->kind, first->awaited[i])->name);
	ss_json_close(json, ']');
}

static void write_group(struct ss_json *json, const struct ss_snapshots *snapshots,
			const struct ss_merged_group *group, bool changes)
{
	const struct ss_presence *presence = &group->presence;
	const struct ss_snapshot *last = snapshots->items[presence->last];
	const struct ss_task *const *tasks =
		(const struct ss_task *const *)group->tasks.items;
	const bool named = tasks[0]->kind == SS_TASK_ASYNCIO;

	ss_json_open(json, NULL, '{');
	if (changes) {
		ss_json_text(json, "change", ss_merged_change(group));
	} else {
		ss_json_unsigned(json, "snapshots", presence->snapshots);
		ss_json_unsigned(json, "last", presence->last);
		ss_json_unsigned(json, "least", presence->least);
		ss_json_unsigned(json, "most", presence->most);
	}
	ss_json_unsigned(json, "count_first", presence->before);
	ss_json_unsigned(json, "count_last", presence->after);
	ss_json_unsigned(json, "count_same", group->same);
	ss_json_open(json, named ? "names" : "ids", '[');
	for (size_t i = 0; i < group->tasks.count; i++) {
		if (named)
			ss_json_text(json, NULL, tasks[i]->name);
		else
			ss_json_unsigned(json, NULL, tasks[i]->id);
	}
	ss_json_close(json, ']');
	write_doing(json, last, tasks, group->tasks.count);
	ss_json_frames(json, "frames", last, tasks[0], false);
	ss_json_close(json, '}');
}

bool ss_json_merged(struct ss_json *json, const struct ss_snapshots *snapshots,
		    enum ss_task_kind kind, bool changes,
		    const struct ss_format_options *options)
{
	const bool goroutines = kind == SS_TASK_GOROUTINE;
	const char *key = goroutines ? "goroutines" : "tasks";
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(snapshots, kind, true);

	if (!merged)
		return false;
	const bool wanted = options->groups[kind] > 0;
	const char *denial = changes ? ss_merged_denial(merged) : NULL;
	const char *problem = merged->problem ? merged->problem : denial;
	if (merged->read == 0 || denial || !wanted) {
		ss_json_null(json, key);
	} else {
		ss_json_open(json, key, '[');
		for (size_t i = 0; i < merged->count; i++)
			write_group(json, snapshots, &merged->items[i], changes);
		ss_json_close(json, ']');
	}
	ss_json_text(json, goroutines ? "goroutines_problem" : "tasks_problem",
		     wanted ? problem : NULL);
	return true;
}

static struct ss_error *write_series(const struct ss_snapshots *snapshots,
				     const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *last = snapshots->items[snapshots->count - 1];
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(snapshots, SS_TASK_THREAD, true);
	struct ss_json json = { .out = out };

	if (!merged)
		return ss_error_no_memory();
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-series/1");
	ss_json_process(&json, ss_snapshot_process(last));
	ss_json_unsigned(&json, "period_ns", snapshots->period_ns);
	write_captures(&json, snapshots);
	ss_json_open(&json, "stacks", '[');
	for (size_t i = 0; i < merged->count; i++)
		write_stack(&json, snapshots->items[merged->items[i].presence.last],
			    &merged->items[i]);
	ss_json_close(&json, ']');
	if (!ss_json_merged(&json, snapshots, SS_TASK_GOROUTINE, false, options) ||
	    !ss_json_merged(&json, snapshots, SS_TASK_ASYNCIO, false, options))
		return ss_error_no_memory();
	ss_json_deadlocks(&json, last);
	ss_json_text(&json, "problem", options->problem);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return NULL;
}

/*
 * stacksnap-diff/1: one line, see stacksnap-json(5).
 */

static void write_side(struct ss_json *json, const char *key,
		       const struct ss_diff_side *side)
{
	const struct ss_process *process = ss_snapshot_process(side->snapshot);

	ss_json_open(json, key, '{');
	ss_json_process(json, process);
	ss_json_unsigned(json, "time_ns", process->time_ns);
	ss_json_text(json, "file", side->file);
	write_task_counts(json, side->snapshot);
	ss_json_close(json, '}');
}

static void write_movement(struct ss_json *json,
			   const struct ss_thread_progress *progress)
{
	ss_json_text(json, "movement", ss_movement_name(progress->movement));
	ss_json_unsigned(json, "run_ns", progress->run_ns);
	ss_json_unsigned(json, "ready_ns", progress->ready_ns);
	ss_json_unsigned(json, "runs", progress->runs);
}

static void write_progress(struct ss_json *json,
			   const struct ss_thread_progress *progress)
{
	if (!progress) {
		ss_json_null(json, "progress");
		return;
	}
	ss_json_open(json, "progress", '{');
	write_movement(json, progress);
	ss_json_close(json, '}');
}

static void write_change(struct ss_json *json, const struct ss_diff_input *input,
			 const struct ss_task_change *change)
{
	const struct ss_task *before = change->before;
	const struct ss_task *after = change->after;
	const char state[] = { before ? before->state : '?', '\0' };

	ss_json_open(json, NULL, '{');
	ss_json_text(json, "change", ss_change_name(change->change));
	/* cppcheck-suppress ctunullpointer; a change has one of them at least */
	ss_json_members(json, &ss_task_schema, ss_change_task(change), SS_SHOW_THREAD);
	ss_json_signed_if(json, "tid_before", before, before ? before->tid : 0);
	ss_json_text(json, "state_before", before && before->state != '?' ? state : NULL);
	ss_json_bool(json, "blocked", change->class <= SS_GROUP_BLOCKED);
	ss_json_unsigned(json, "common_frames", change->common);
	write_progress(json, change->progress);
	ss_json_wait(json, "wait", change->wait);
	ss_json_frames(json, "frames_before", input->before.snapshot, before, false);
	ss_json_frames(json, "frames", input->after.snapshot, after, false);
	ss_json_close(json, '}');
}

static void write_task_change(struct ss_json *json, const struct ss_diff_input *input,
			      const struct ss_task_change *change)
{
	const struct ss_task *before = change->before;
	const struct ss_task *after = change->after;
	const struct ss_task *task = ss_change_task(change);

	ss_json_open(json, NULL, '{');
	ss_json_text(json, "change", ss_change_name(change->change));
	/* cppcheck-suppress ctunullpointer; a change has one of them at least */
	ss_json_members(json, &ss_task_schema, task, SS_SHOW_OBJECT);
	ss_json_text(json, "status_before",
		     before ? ss_task_status_name(before->status) : NULL);
	write_doing(json, after ? input->after.snapshot : input->before.snapshot, &task,
		    1);
	ss_json_unsigned(json, "common_frames", change->common);
	ss_json_frames(json, "frames_before", input->before.snapshot, before, false);
	ss_json_frames(json, "frames", input->after.snapshot, after, false);
	ss_json_close(json, '}');
}

bool ss_json_task_diff(struct ss_json *json, const struct ss_diff_input *input,
		       const struct ss_diff *threads,
		       const struct ss_format_options *options)
{
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
		ss_diff_new(input, SS_TASK_ASYNCIO, threads);

	if (!diff)
		return false;
	ss_json_open(json, "tasks", '[');
	for (size_t i = 0; i < diff->count; i++)
		write_task_change(json, input, &diff->items[i]);
	ss_json_close(json, ']');
	ss_json_text(json, "tasks_problem",
		     options->groups[SS_TASK_ASYNCIO] ? diff->problem : NULL);
	return true;
}

static struct ss_error *write_diff(const struct ss_diff_input *input,
				   const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
		ss_diff_new(input, SS_TASK_THREAD, NULL);
	const struct ss_snapshot *sides[] = { input->before.snapshot,
					      input->after.snapshot };
	const struct ss_snapshots both = { .items = sides,
					   .count = SS_ARRAY_SIZE(sides) };
	struct ss_json json = { .out = out };

	if (!diff)
		return ss_error_no_memory();
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-diff/1");
	write_side(&json, "before", &input->before);
	write_side(&json, "after", &input->after);
	ss_json_bool(&json, "same_process", diff->same_process);
	for (size_t i = 0; i < SS_CHANGE_COUNT; i++)
		ss_json_unsigned(&json, ss_change_name((enum ss_change)i),
				 diff->counts[i]);
	ss_json_open(&json, "threads", '[');
	for (size_t i = 0; i < diff->count; i++)
		write_change(&json, input, &diff->items[i]);
	ss_json_close(&json, ']');
	if (!ss_json_merged(&json, &both, SS_TASK_GOROUTINE, true, options) ||
	    !ss_json_task_diff(&json, input, diff, options))
		return ss_error_no_memory();
	ss_json_text(&json, "problem", options->problem);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return NULL;
}

/*
 * stacksnap-hang/1: one line, see stacksnap-json(5).
 */

static void write_thread(struct ss_json *json, const struct ss_snapshot *snapshot,
			 const struct ss_task *thread,
			 const struct ss_thread_progress *progress)
{
	ss_json_open(json, NULL, '{');
	ss_json_members(json, &ss_task_schema, thread, SS_SHOW_THREAD);
	write_movement(json, progress);
	ss_json_bool(json, "stuck", progress->stuck);
	ss_json_bool(json, "blocked", progress->blocked);
	ss_json_unsigned(json, "voluntary", progress->voluntary);
	ss_json_unsigned(json, "forced", progress->forced);
	ss_json_text(json, "within", progress->within);
	ss_json_unsigned(json, "samples", progress->samples);
	ss_json_wait_text(json, "wait", thread->wait);
	ss_json_text(json, "wait_kind",
		     thread->wait ? ss_wait_kind_name(thread->wait->kind) : NULL);
	ss_json_wait(json, "wait_data", thread->wait);
	ss_json_waits_in(json, snapshot, thread);
	ss_json_close(json, '}');
}

static struct ss_error *write_hang(const struct ss_snapshot *snapshot,
				   const struct ss_progress *progress,
				   const struct ss_format_options *options, FILE *out)
{
	struct ss_json json = { .out = out };

	(void)options;
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-hang/1");
	ss_json_process(&json, ss_snapshot_process(snapshot));
	ss_json_text(&json, "verdict", ss_verdict_name(progress->verdict));
	ss_json_unsigned(&json, "elapsed_ns", progress->elapsed_ns);
	ss_json_bool(&json, "closed", progress->closed);
	ss_json_open(&json, "threads", '[');
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		write_thread(&json, snapshot,
			     ss_snapshot_task(snapshot, SS_TASK_THREAD, i),
			     ss_progress_thread(progress, i));
	ss_json_close(&json, ']');
	bool whole = ss_json_tasks(&json, snapshot, true);
	ss_json_deadlocks(&json, snapshot);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return whole ? NULL : ss_error_no_memory();
}

const struct ss_format ss_format_json = {
	.name = "json",
	.description = "for programs, see stacksnap-json(5), stacksnap-report-json(5)",
	.write_snapshot = ss_json_write_snapshot,
	.write_hang = write_hang,
	.write_profile = ss_json_write_profile,
	.write_profile_diff = ss_json_write_profile_diff,
	.write_snapshots = write_series,
	.write_diff = write_diff,
	.write_heap = ss_json_write_heap,
};
