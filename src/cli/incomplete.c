#include "cli/incomplete.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/failure.h"
#include "report/names.h"
#include "report/text_frames.h"

enum { TIDS_MAX = 8, END_COUNT = SS_END_RUNNABLE + 1 };

static bool is_whole(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	return thread->end == SS_END_ROOT && !ss_end_has_guess(snapshot, thread);
}

size_t ss_incomplete_count(const struct ss_snapshot *snapshot)
{
	size_t count = ss_snapshot_process(snapshot)->threads_unseen;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		count += !is_whole(snapshot,
				   ss_snapshot_task(snapshot, SS_TASK_THREAD, i));
	return count;
}

typedef bool thread_predicate(const struct ss_snapshot *snapshot,
			      const struct ss_task *thread, enum ss_end end);

static bool ends_with(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		      enum ss_end end)
{
	(void)snapshot;
	return thread->end == end;
}

static bool is_guessed(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		       enum ss_end end)
{
	(void)end;
	return ss_end_has_guess(snapshot, thread);
}

static size_t write_tids(const struct ss_snapshot *snapshot, thread_predicate *predicate,
			 enum ss_end end, FILE *out)
{
	size_t count = 0;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		if (!predicate(snapshot, thread, end))
			continue;
		if (count < TIDS_MAX)
			(void)fprintf(out, "%s%d", count ? ", " : "thread ", thread->tid);
		count++;
	}
	if (count > TIDS_MAX)
		(void)fprintf(out, " and %zu more", count - TIDS_MAX);
	return count;
}

/* The specific reason of the first thread with this end, or NULL. */
static const char *find_reason(const struct ss_snapshot *snapshot, enum ss_end end)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		if (thread->end == end && thread->reason)
			return thread->reason;
	}
	return NULL;
}

static bool was_any_stopped(const struct ss_snapshot *snapshot, enum ss_end end)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		if (thread->end == end && thread->stopped_ns > 0)
			return true;
	}
	return false;
}

static void print_end(const struct ss_snapshot *snapshot, enum ss_end end,
		      size_t max_stack)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	size_t count = write_tids(snapshot, ends_with, end, out);
	(void)fprintf(out, ": %s [%s]", ss_end_text(end), ss_end_name(end));
	const char *reason = find_reason(snapshot, end);
	if (reason)
		(void)fprintf(out, ": %s", reason);
	else
		ss_end_write_remedy(end, ss_snapshot_process(snapshot)->mode,
				    was_any_stopped(snapshot, end), max_stack, out);
	if (fclose(out) == 0 && count > 0)
		ss_failure_warn("%d: %s", ss_snapshot_process(snapshot)->pid, text);
}

static void print_guesses(const struct ss_snapshot *snapshot)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	size_t count = write_tids(snapshot, is_guessed, SS_END_ROOT, out);
	if (fclose(out) == 0 && count > 0)
		ss_failure_warn("%d: %s: " SS_END_GUESS_TEXT,
				ss_snapshot_process(snapshot)->pid, text);
}

void ss_incomplete_print(const struct ss_snapshot *snapshot, size_t max_stack)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);

	for (int end = SS_END_ROOT + 1; end < END_COUNT; end++)
		print_end(snapshot, (enum ss_end)end, max_stack);
	print_guesses(snapshot);
	if (process->threads_unseen)
		ss_failure_warn("%d: %u more threads could not be read", process->pid,
				process->threads_unseen);
}

/* Sets for each module whether a frame is in it, and whether one of these has no name. */
struct module_use {
	bool used;
	bool nameless;
};

static void mark_modules(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 struct module_use *ret)
{
	size_t count = thread->frame_count;

	for (size_t i = 0; i < count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->module_index < 0)
			continue;
		ret[frame->module_index].used = true;
		ret[frame->module_index].nameless |= !frame->symbol;
	}
}

/* Of a core file, also where another file gave the names: the one that was named on the
   command line is not used then. */
void ss_incomplete_print_modules(const struct ss_snapshot *snapshot)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t count = ss_snapshot_module_count(snapshot);
	_cleanup_free_ struct module_use *uses = calloc(count + 1, sizeof(*uses));

	if (!uses)
		return;
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		mark_modules(snapshot, ss_snapshot_task(snapshot, SS_TASK_THREAD, i),
			     uses);
	for (size_t i = 0; i < count; i++) {
		const struct ss_module *module = ss_snapshot_module(snapshot, i);
		if (module->problem &&
		    (uses[i].nameless || (uses[i].used && process->mode == SS_MODE_CORE)))
			ss_failure_warn(
				"%d: %s: %s%s", process->pid, module->path,
				module->problem,
				uses[i].nameless ? "; its functions have no names" : "");
	}
}
