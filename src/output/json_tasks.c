/*
 * Tasks of asyncio in documents on several snapshots of a process.
 */
#include "output/json_document.h"
#include "output/merged_tasks.h"
#include "output/task_diff.h"

void ss_json_task_counts(struct ss_json *json, const struct ss_snapshot *snapshot)
{
	ss_json_unsigned(json, "tasks", ss_snapshot_async_task_count(snapshot));
	ss_json_unsigned(json, "tasks_changed",
			 ss_snapshot_async_tasks_changed(snapshot));
	ss_json_unsigned(json, "tasks_unread", ss_snapshot_async_tasks_unread(snapshot));
}

static void write_frames(struct ss_json *json, const char *key,
			 const struct ss_snapshot *snapshot,
			 const struct ss_async_task *task)
{
	if (!task) {
		ss_json_null(json, key);
		return;
	}
	ss_json_open(json, key, '[');
	for (size_t i = 0; i < task->frame_count; i++)
		ss_json_plain_frame(json,
				    ss_snapshot_async_task_frame(snapshot, task, i));
	ss_json_close(json, ']');
}

/* What the task does, but its frames. */
static void write_state(struct ss_json *json, const struct ss_snapshot *snapshot,
			const struct ss_async_task *task)
{
	ss_json_text(json, "status", ss_async_task_status_name(task->status));
	ss_json_signed_if(json, "loop_tid", task->tid, task->tid);
	ss_json_text(json, "awaited_type", task->awaited_type);
	ss_json_open(json, "awaited_names", '[');
	for (size_t i = 0; i < task->awaited_count; i++)
		ss_json_text(json, NULL,
			     ss_snapshot_async_task(snapshot, task->awaited[i])->name);
	ss_json_close(json, ']');
}

static void write_group(struct ss_json *json, const struct ss_snapshots *snapshots,
			const struct ss_merged_task *group)
{
	const struct ss_snapshot *last = snapshots->items[group->presence.last];

	ss_json_open(json, NULL, '{');
	ss_presence_write_times(json, &group->presence);
	ss_presence_write_counts(json, &group->presence);
	ss_json_open(json, "names", '[');
	for (size_t i = 0; i < group->members.count; i++)
		ss_json_text(json, NULL, group->members.items[i]->name);
	ss_json_close(json, ']');
	write_state(json, last, group->members.items[0]);
	write_frames(json, "frames", last, group->members.items[0]);
	ss_json_close(json, '}');
}

bool ss_json_merged_tasks(struct ss_json *json, const struct ss_snapshots *snapshots)
{
	_cleanup_(ss_merged_tasks_cleanup) struct ss_merged_tasks *merged =
		ss_merged_tasks_new(snapshots);

	if (!merged)
		return false;
	ss_json_open(json, "tasks", '[');
	for (size_t i = 0; i < merged->count; i++)
		write_group(json, snapshots, &merged->items[i]);
	ss_json_close(json, ']');
	ss_json_text(json, "tasks_problem", merged->problem);
	return true;
}

static void write_change(struct ss_json *json, const struct ss_diff_input *input,
			 const struct ss_task_change *change)
{
	const struct ss_async_task *before = change->before;
	const struct ss_async_task *after = change->after;
	const struct ss_async_task *task = after ? after : before;

	ss_json_open(json, NULL, '{');
	ss_json_text(json, "change", ss_change_name(change->change));
	/* cppcheck-suppress ctunullpointer; a change has one of them at least */
	ss_json_text(json, "name", task->name);
	ss_json_hex(json, "address", task->address);
	ss_json_text(json, "status_before",
		     before ? ss_async_task_status_name(before->status) : NULL);
	write_state(json, after ? input->after.snapshot : input->before.snapshot, task);
	ss_json_unsigned(json, "common_frames", change->common);
	write_frames(json, "frames_before", input->before.snapshot, before);
	write_frames(json, "frames", input->after.snapshot, after);
	ss_json_close(json, '}');
}

bool ss_json_task_diff(struct ss_json *json, const struct ss_diff_input *input,
		       const struct ss_diff *threads,
		       const struct ss_format_options *options)
{
	_cleanup_(ss_task_diff_cleanup) struct ss_task_diff *diff =
		ss_task_diff_new(input, threads);

	if (!diff)
		return false;
	ss_json_open(json, "tasks", '[');
	for (size_t i = 0; i < diff->count; i++)
		write_change(json, input, &diff->items[i]);
	ss_json_close(json, ']');
	ss_json_text(json, "tasks_problem", options->task_groups ? diff->problem : NULL);
	return true;
}
