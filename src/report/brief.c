/*
 * The answer in at most 2,048 bytes, for tickets and programs: what is wrong first, then the groups of
 * threads that are not idle, in a stable order. The sentences are those of the format "text".
 */
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"
#include "diagnose/progress.h"
#include "report/names.h"
#include "report/print.h"
#include "report/text.h"
#include "report/wait_text.h"

enum {
	SIZE_MAX_WRITTEN = 2048,
	LINE_MAX_WRITTEN = 240,
	NAMES_MAX = 4, /* threads of a group */
};

static const char rest_text[] = "... -f text has the rest\n";

/* The threads of each class. */
struct counts {
	size_t of[SS_GROUP_COUNT];
};

static struct counts count_classes(const struct ss_grouping *grouping)
{
	struct counts counts = {};

	for (size_t i = 0; i < grouping->count; i++)
		counts.of[grouping->groups[i].class] += grouping->groups[i].count;
	return counts;
}

/* "2 threads blocked, 5 idle" */
static void write_counts(const struct counts *counts, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < SS_GROUP_COUNT; i++) {
		if (counts->of[i] == 0)
			continue;
		(void)fprintf(out, "%s%s %s", any ? ", " : "",
			      any ? ss_quantity_count(counts->of[i]).text :
				    ss_quantity_things(counts->of[i], "thread").text,
			      ss_group_class_words((enum ss_group_class)i));
		any = true;
	}
	if (!any)
		(void)fputs_unlocked("no threads", out);
}

/* "shop, pid 4711: deadlock: 2 threads in a deadlock, 5 idle" */
static void write_first_line(const struct ss_snapshot *snapshot,
			     const struct ss_progress *progress,
			     const struct ss_grouping *grouping, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct counts counts = count_classes(grouping);
	bool cycle = ss_snapshot_cycle_count(snapshot) > 0;

	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++)
		cycle |= !ss_snapshot_deadlock(snapshot, i)->timed;
	const char *verdict = progress ? ss_verdict_name(progress->verdict) :
			      cycle    ? ss_verdict_name(SS_VERDICT_DEADLOCK) :
					 NULL;

	ss_escape_write(process->name, NULL, out);
	(void)fprintf(out, ", pid %d: ", process->pid);
	if (verdict)
		(void)fprintf(out, "%s: ", verdict);
	write_counts(&counts, out);
	(void)fputc_unlocked('\n', out);
}

/* "2 threads blocked: 4711 (a), 4712 (b)", what the first one waits for, and where. */
static void write_group(const struct ss_snapshot *snapshot, const struct ss_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *first = *group->members;
	size_t shown = SS_MIN(group->count, (size_t)NAMES_MAX);

	(void)fprintf(out, "%s %s: ", ss_quantity_things(group->count, "thread").text,
		      ss_group_class_words(group->class));
	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : "", out);
		ss_text_write_thread(group->members[i]->tid, group->members[i]->name,
				     options, out);
	}
	if (shown < group->count)
		(void)fprintf(out, " and %s more",
			      ss_quantity_count(group->count - shown).text);
	(void)fputc_unlocked('\n', out);
	if (first->wait) {
		(void)fputs_unlocked("  waits for ", out);
		ss_wait_text_write(first->wait, false, out);
		(void)fputc_unlocked('\n', out);
	}
	ss_text_write_where(snapshot, first, options, out);
}

/* Those that are idle or of the runtime come last: if the first group is idle, no other is busy. */
static void write_groups(const struct ss_snapshot *snapshot,
			 const struct ss_grouping *grouping,
			 const struct ss_format_options *options, FILE *out)
{
	for (size_t i = 0; i < grouping->count; i++) {
		const struct ss_group *group = &grouping->groups[i];
		if (group->class != SS_GROUP_DEADLOCK &&
		    group->class != SS_GROUP_RUNTIME &&
		    (group->class != SS_GROUP_IDLE ||
		     grouping->groups[0].class == SS_GROUP_IDLE))
			write_group(snapshot, group, options, out);
	}
}

static struct ss_error *write_all(const struct ss_snapshot *snapshot,
				  const struct ss_progress *progress,
				  const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, true);

	if (!grouping)
		return ss_error_no_memory();
	write_first_line(snapshot, progress, grouping, out);
	ss_text_write_frozen(ss_snapshot_process(snapshot), false, out);
	ss_text_write_problem(options->problem, false, out);
	ss_text_write_deadlocks(snapshot, progress, options, out);
	ss_text_write_task_cycles(snapshot, options, out);
	ss_missing_write(snapshot, options->max_stack, options->strict,
			 "incomplete: ", out);
	/* Goroutines and tasks of asyncio are the program, unless a thread is in their way. */
	const bool tasks_first = grouping->count == 0 ||
				 grouping->groups[0].class >= SS_GROUP_OTHER;
	if (!tasks_first)
		write_groups(snapshot, grouping, options, out);
	struct ss_error *error =
		ss_text_write_kind(snapshot, SS_TASK_GOROUTINE, options, out);
	if (!error)
		error = ss_text_write_kind(snapshot, SS_TASK_ASYNCIO, options, out);
	if (!error && tasks_first)
		write_groups(snapshot, grouping, options, out);
	return error;
}

/* Copies lines that are not empty while they and the last line fit. */
static void write_lines(char *text, FILE *out)
{
	size_t room = SIZE_MAX_WRITTEN - sizeof(rest_text);
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		size_t size = ss_escape_cut(line, LINE_MAX_WRITTEN);
		const char *end = line[size] ? "...\n" : "\n";
		if (size + strlen(end) > room) {
			(void)fputs_unlocked(rest_text, out);
			return;
		}
		(void)fprintf(out, "%.*s%s", (int)size, line, end);
		room -= size + strlen(end);
	}
}

static struct ss_error *write_hang(const struct ss_snapshot *snapshot,
				   const struct ss_progress *progress,
				   const struct ss_format_options *options, FILE *out)
{
	struct ss_format_options plain = *options;
	struct ss_text_stream all;

	if (!ss_text_stream_open(&all))
		return ss_error_no_memory();
	plain.color = plain.verbose = plain.all = false;
	struct ss_error *error = write_all(snapshot, progress, &plain, all.out);
	_cleanup_free_ char *text = ss_text_stream_close(&all);
	if (error || !text)
		return error ? error : ss_error_no_memory();
	write_lines(text, out);
	return NULL;
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	return write_hang(snapshot, NULL, options, out);
}

const struct ss_format ss_format_brief = {
	.name = "brief",
	.description = "at most 2,048 bytes, for tickets: what is wrong, and where",
	.separator = "\n",
	.explains = true,
	.write_snapshot = write_snapshot,
	.write_hang = write_hang,
};
