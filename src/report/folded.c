/*
 * One line for each distinct stack, outermost frame first, and the number of threads or
 * samples that have it: the input of flame graph scripts. A stack that is not complete
 * begins with the reason in brackets. ';' in names becomes ':'; white space in the names
 * of processes and threads becomes '_'.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"
#include "base/search.h"
#include "data/snapshot.h"
#include "report/format.h"
#include "report/group.h"
#include "report/print.h"
#include "report/profile.h"

enum { NS_PER_US = 1000 };

static const struct ss_substitution in_names = { ";: \t\r\n", "::____" };
static const struct ss_substitution in_frames = { ";", ":" };

static void write_names(const char *process, const char *thread, FILE *out)
{
	ss_escape_write(process, &in_names, out);
	(void)fputc_unlocked(';', out);
	ss_escape_write(thread, &in_names, out);
}

/* Snapshots: equal stacks of threads of equal names are one line ------------------------ */

struct task_line {
	const struct ss_task *task; /* one of those with this stack */
	size_t count;
	char *text; /* owned */
};

/* Goroutines have no names. */
static const char *name_of(const struct ss_task *task)
{
	return task->kind == SS_TASK_GOROUTINE ? "goroutine" : task->name;
}

static int compare_threads(const void *a, const void *b)
{
	const struct ss_task *t = ((const struct task_line *)a)->task;
	const struct ss_task *u = ((const struct task_line *)b)->task;

	return SS_COMPARE(t->stack_id, u->stack_id) ?:
		       SS_COMPARE(t->end, u->end)   ?:
						      strcmp(name_of(t), name_of(u));
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(((const struct task_line *)a)->text,
		      ((const struct task_line *)b)->text);
}

/* Sorts the lines and merges equal ones. Returns the new count. */
static size_t merge(struct task_line *lines, size_t count,
		    int (*compare)(const void *, const void *))
{
	size_t kept = 0;

	qsort(lines, count, sizeof(*lines), compare);
	for (size_t i = 0; i < count; i++) {
		if (kept > 0 && compare(&lines[kept - 1], &lines[i]) == 0) {
			lines[kept - 1].count += lines[i].count;
			free(lines[i].text);
		} else {
			lines[kept++] = lines[i];
		}
	}
	return kept;
}

static void write_task_line(const struct ss_snapshot *snapshot,
			    const struct ss_task *thread,
			    const struct ss_format_options *options, FILE *out)
{
	write_names(ss_snapshot_process(snapshot)->name, name_of(thread), out);
	if (!ss_end_is_outermost(thread->end))
		(void)fprintf(out, ";[%s]", ss_end_name(thread->end));
	for (size_t i = thread->frame_count; i-- > 0;) {
		(void)fputc_unlocked(';', out);
		ss_escape_write_owned(ss_label_new(ss_snapshot_frame(snapshot, thread, i),
						   options->raw),
				      &in_frames, out);
	}
}

static char *stack_text(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			const struct ss_format_options *options)
{
	struct ss_text_stream text;

	if (!ss_text_stream_open(&text))
		return NULL;
	write_task_line(snapshot, thread, options, text.out);
	return ss_text_stream_close(&text);
}

static struct ss_error *write_task_lines(struct task_line *lines, size_t *count,
					 const struct ss_snapshot *snapshot,
					 const struct ss_format_options *options,
					 FILE *out)
{
	*count = merge(lines, *count, compare_threads);
	for (size_t i = 0; i < *count; i++) {
		lines[i].text = stack_text(snapshot, lines[i].task, options);
		if (!lines[i].text)
			return ss_error_no_memory();
	}
	*count = merge(lines, *count, compare_texts);
	for (size_t i = 0; i < *count; i++)
		(void)fprintf(out, "%s %zu\n", lines[i].text, lines[i].count);
	return NULL;
}

/* Adds lines for tasks with stacks of their own. */
static size_t add_lines(const struct ss_snapshot *snapshot, enum ss_task_kind kind,
			struct task_line *lines)
{
	const size_t count = ss_snapshot_task_count(snapshot, kind);
	size_t added = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ss_task *task = ss_snapshot_task(snapshot, kind, i);
		if (!task->on_thread)
			lines[added++] = (struct task_line){ .task = task, .count = 1 };
	}
	return added;
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	size_t count = ss_snapshot_task_count(snapshot, SS_TASK_THREAD) +
		       ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE);
	_cleanup_free_ struct task_line *lines = calloc(count + 1, sizeof(*lines));

	if (!lines)
		return ss_error_no_memory();
	count = add_lines(snapshot, SS_TASK_THREAD, lines);
	count += add_lines(snapshot, SS_TASK_GOROUTINE, lines + count);
	struct ss_error *error = write_task_lines(lines, &count, snapshot, options, out);
	for (size_t i = 0; i < count; i++)
		free(lines[i].text);
	return error;
}

/* Profiles: strings are interned, so that equal strings have equal addresses ------------ */

struct sample_line {
	const char *process;
	const char *thread;
	uint64_t node;
};

struct sample_lines {
	const struct ss_profile *profile;
	struct ss_idtable table; /* of struct sample_line */
	SS_VECTOR(struct line_count { uint64_t sets[2]; }) counts;
	SS_VECTOR(uint32_t) path; /* scratch: functions of a stack */
};

static void sample_lines_deinit(struct sample_lines *lines)
{
	ss_idtable_deinit(&lines->table);
	ss_vector_free(&lines->counts);
	ss_vector_free(&lines->path);
}

static bool add_line(struct sample_lines *lines, const struct sample_line *line,
		     unsigned set, uint64_t weight)
{
	uint32_t number = ss_idtable_add(&lines->table, line, sizeof(*line), NULL);

	if (number == SS_ID_NONE ||
	    (number == lines->counts.count && !ss_vector_push(&lines->counts)))
		return false;
	lines->counts.items[number].sets[set] += weight;
	return true;
}

static bool add_run(struct sample_lines *lines, const struct ss_profile_thread *thread,
		    const struct ss_profile_run *run)
{
	const struct sample_line line = {
		.process = lines->profile->processes.items[thread->process].name,
		.thread = thread->name,
		.node = lines->profile->node_of.items[run->call],
	};

	return add_line(lines, &line,
			ss_profile_recording_of(lines->profile, thread)->set,
			ss_profile_weight(lines->profile, run));
}

/* Of no thread. */
static bool add_totals(struct sample_lines *lines)
{
	const struct ss_profile *profile = lines->profile;
	bool whole = true;

	for (size_t i = 0; whole && i < profile->totals.count; i++) {
		const struct ss_profile_total *total = &profile->totals.items[i];
		const struct sample_line line = {
			.node = profile->node_of.items[total->call],
		};
		whole = add_line(lines, &line, 0, total->values[profile->shown_unit]);
	}
	return whole;
}

static bool add_runs(struct sample_lines *lines)
{
	const struct ss_profile *profile = lines->profile;

	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			if (!add_run(lines, thread, &thread->runs.items[r]))
				return false;
		}
	}
	return true;
}

static bool write_sample_line(struct sample_lines *lines, uint32_t number, bool diff,
			      FILE *out)
{
	const struct line_count *count = &lines->counts.items[number];
	const uint64_t unit = lines->profile->by_time ? NS_PER_US : 1;
	const struct ss_profile *profile = lines->profile;
	const struct sample_line *line = ss_idtable_key(&lines->table, number, NULL);

	lines->path.count = 0;
	for (uint64_t node = line->node; node != 0;
	     node = ss_profile_node_at(profile, node)->parent) {
		uint32_t *slot = ss_vector_push(&lines->path);
		if (!slot)
			return false;
		*slot = ss_profile_node_at(profile, node)->function;
	}
	if (line->process)
		write_names(line->process, line->thread, out);
	for (size_t i = lines->path.count; i-- > 0;) {
		if (line->process || i + 1 < lines->path.count)
			(void)fputc_unlocked(';', out);
		ss_escape_write(
			ss_profile_function_at(profile, lines->path.items[i])->name,
			&in_frames, out);
	}
	if (diff) /* the input of flamegraph.pl for differences */
		(void)fprintf(out, " %" PRIu64 " %" PRIu64 "\n", count->sets[0] / unit,
			      count->sets[1] / unit);
	else
		(void)fprintf(out, " %" PRIu64 "\n", count->sets[0] / unit);
	return true;
}

static struct ss_error *write_lines(const struct ss_profile *profile, bool diff,
				    FILE *out)
{
	__attribute__((cleanup(sample_lines_deinit))) struct sample_lines lines = {
		.profile = profile,
	};
	bool whole = add_runs(&lines) && add_totals(&lines);

	for (size_t i = 0; whole && i < lines.counts.count; i++)
		whole = write_sample_line(&lines, (uint32_t)i, diff, out);
	return whole ? NULL : ss_error_no_memory();
}

static struct ss_error *write_profile(const struct ss_profile *profile,
				      const struct ss_format_options *options, FILE *out)
{
	(void)options;
	return write_lines(profile, false, out);
}

static struct ss_error *write_profile_diff(const struct ss_profile *profile,
					   const struct ss_format_options *options,
					   FILE *out)
{
	(void)options;
	return write_lines(profile, true, out);
}

const struct ss_format ss_format_folded = {
	.name = "folded",
	.description = "one line per distinct stack, for flame graph tools",
	.write_snapshot = write_snapshot,
	.totals = true,
	.write_profile = write_profile,
	.write_profile_diff = write_profile_diff,
};
