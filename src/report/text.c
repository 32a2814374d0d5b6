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

void ss_text_write_process(const struct ss_process *process, bool color, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, color, out);
	ss_escape_write(process->name, NULL, out);
	ss_style_write(SS_STYLE_NONE, color, out);
	(void)fprintf(out, ", pid %d", process->pid);
	if (process->inner_pid && process->inner_pid != process->pid)
		(void)fprintf(out, "[%d in its pid namespace]", process->inner_pid);
	if (process->executable) {
		(void)fputs_unlocked(", ", out);
		ss_escape_write(process->executable, NULL, out);
	}
	if (process->time_ns)
		(void)fprintf(out, ", %s", ss_quantity_date(process->time_ns).text);
	(void)fputc_unlocked('\n', out);
}

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

void ss_text_write_frozen(const struct ss_process *process, bool color, FILE *out)
{
	if (!process->frozen)
		return;
	ss_style_write(SS_STYLE_WARN, color, out);
	(void)fputs_unlocked("frozen by the cgroup ", out);
	ss_escape_write(process->frozen, NULL, out);
	(void)fputs_unlocked(": no thread runs until it is thawed\n", out);
	ss_style_write(SS_STYLE_NONE, color, out);
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

void ss_text_write_problem(const char *problem, bool color, FILE *out)
{
	if (!problem)
		return;
	ss_style_write(SS_STYLE_WARN, color, out);
	ss_escape_write(problem, NULL, out);
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_NONE, color, out);
}

void ss_text_write_advice(const struct ss_format_options *options, FILE *out)
{
	if (!options->advice)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_FAINT, options->color, out);
	ss_escape_write(options->advice, NULL, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputc_unlocked('\n', out);
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

/*
 * What the threads of a group wait for: one line for each distinct wait, with the number of
 * threads if it is more than one.
 */

enum { LINES_MAX = 4 }; /* of one group, without -v */

/* Threads with the same wait, apart from the remaining time. */
struct wait_line {
	struct ss_wait wait;
	char *text; /* of the wait without it; owned */
	size_t count;
};

struct list {
	struct wait_line *items;
	size_t count;
};

static void list_deinit(struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].text);
	free(list->items);
}

static int compare_waits(const void *a, const void *b)
{
	const struct wait_line *x = a;
	const struct wait_line *y = b;
	int order = strcmp(x->text, y->text);

	if (order)
		return order;
	return strcmp(x->wait.syscall ? x->wait.syscall : "",
		      y->wait.syscall ? y->wait.syscall : "");
}

static int compare_counts(const void *a, const void *b)
{
	const struct wait_line *x = a;
	const struct wait_line *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return compare_waits(a, b);
}

static void omit_address(struct ss_wait *wait)
{
	wait->address = 0;
	wait->symbol = NULL;
}

/* Merges equal waits and sorts them, the most frequent first. */
static void merge(struct list *list)
{
	size_t merged = 0;

	if (list->count > 1)
		qsort(list->items, list->count, sizeof(*list->items), compare_waits);
	for (size_t i = 0; i < list->count; i++) {
		struct wait_line *item = &list->items[i];
		if (merged && compare_waits(&list->items[merged - 1], item) == 0) {
			struct wait_line *same = &list->items[merged - 1];
			if (same->wait.left_ns != item->wait.left_ns)
				same->wait.left_ns = -1;
			if (same->wait.address != item->wait.address)
				omit_address(&same->wait);
			same->count += item->count;
			free(item->text);
		} else {
			list->items[merged++] = *item;
		}
	}
	list->count = merged;
	if (merged > 1)
		qsort(list->items, merged, sizeof(*list->items), compare_counts);
}

static void write_line(const struct wait_line *line, size_t members, const char *indent,
		       const struct ss_format_options *options, FILE *out)
{
	(void)fputs_unlocked(indent, out);
	if (line->count < members)
		(void)fprintf(out, "%s ", ss_quantity_count(line->count).text);
	(void)fputs_unlocked(line->count > 1 ? "wait for " : "waits for ", out);
	ss_wait_text_write(&line->wait, options->color, out);
	if (line->wait.syscall)
		(void)fprintf(out, " [%s]", line->wait.syscall);
	ss_wait_text_write_chain(&line->wait, "\n    ", out);
	(void)fputc_unlocked('\n', out);
}

static void write_rest(const struct wait_line *items, size_t count, const char *indent,
		       FILE *out)
{
	size_t threads = 0;

	for (size_t i = 0; i < count; i++)
		threads += items[i].count;
	(void)fprintf(out, "%s... and %s for other things (-v lists them)\n", indent,
		      ss_quantity_count(threads).text);
}

struct ss_error *ss_text_write_waits_of(const struct ss_wait *const *waits, size_t count,
					const char *indent,
					const struct ss_format_options *options,
					FILE *out)
{
	__attribute__((cleanup(list_deinit))) struct list list = {
		.items = calloc(count + 1, sizeof(struct wait_line))
	};

	if (!list.items)
		return ss_error_no_memory();
	for (size_t i = 0; i < count; i++) {
		const struct ss_wait *wait = waits[i];
		struct wait_line *line = &list.items[list.count];
		if (!wait)
			continue;
		*line = (struct wait_line){ *wait, ss_wait_text_new_merged(wait), 1 };
		if (!line->text)
			return ss_error_no_memory();
		list.count++;
	}
	merge(&list);
	size_t shown = options->verbose || list.count <= LINES_MAX ? list.count :
								     LINES_MAX - 1;
	for (size_t i = 0; i < shown; i++)
		write_line(&list.items[i], count, indent, options, out);
	if (shown < list.count)
		write_rest(list.items + shown, list.count - shown, indent, out);
	return NULL;
}

struct ss_error *ss_text_write_waits(const struct ss_task *const *threads, size_t count,
				     const char *indent,
				     const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ const struct ss_wait **waits =
		calloc(count + 1, sizeof(const struct ss_wait *));

	if (!waits)
		return ss_error_no_memory();
	for (size_t i = 0; i < count; i++)
		waits[i] = threads[i]->wait;
	return ss_text_write_waits_of(waits, count, indent, options, out);
}

/*
 * Locks of applications that threads wait for, and which threads probably hold them.
 */

enum { LOCKS_MAX = 3, SUSPECTS_MAX = 3 }; /* without -v */

static void write_name(const char *name, FILE *out)
{
	ss_escape_write(name, NULL, out);
}

static void write_only_suspect(const struct ss_snapshot *snapshot,
			       const struct ss_application_lock *lock,
			       const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, lock->suspects[0]);

	ss_text_write_thread(thread->tid, thread->name, options, out);
	(void)fputs_unlocked(", the only other thread in ", out);
	write_name(lock->common_function, out);
	if (thread->wait) {
		(void)fputs_unlocked("\n    which waits for ", out);
		ss_wait_text_write(thread->wait, options->color, out);
	} else if (thread->state == 'R') {
		(void)fputs_unlocked("\n    which runs", out);
	}
}

static void write_list(const struct ss_snapshot *snapshot, const size_t *threads,
		       size_t count, size_t total,
		       const struct ss_format_options *options, FILE *out)
{
	size_t shown = options->verbose ? count : SS_MIN(count, (size_t)SUSPECTS_MAX);

	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, threads[i]);
		ss_text_write_thread(thread->tid, thread->name, options, out);
	}
	if (shown < total)
		(void)fprintf(out, " and %zu more", total - shown);
}

/* They may hold the lock of a transaction. */
static void write_clients(const struct ss_snapshot *snapshot,
			  const struct ss_application_lock *lock,
			  const struct ss_format_options *options, FILE *out)
{
	size_t total = lock->client_suspects_total;

	if (total == 0)
		return;
	(void)fprintf(out, "  or by %s%zu thread%s in ", total > 1 ? "one of " : "",
		      total, total > 1 ? "s" : "");
	write_name(lock->client_function, out);
	(void)fputs_unlocked(total > 1 ? " that wait for their clients" :
					 " that waits for its client",
			     out);
	write_list(snapshot, lock->client_suspects, lock->client_suspect_count, total,
		   options, out);
	(void)fputc_unlocked('\n', out);
}

static void write_suspects(const struct ss_snapshot *snapshot,
			   const struct ss_application_lock *lock,
			   const struct ss_format_options *options, FILE *out)
{
	if (lock->suspects_total == 0)
		return;
	(void)fputs_unlocked("  probably held by ", out);
	if (lock->suspects_total == 1) {
		write_only_suspect(snapshot, lock, options, out);
	} else {
		(void)fprintf(out, "one of %zu other threads in ", lock->suspects_total);
		write_name(lock->common_function, out);
		write_list(snapshot, lock->suspects, lock->suspect_count,
			   lock->suspects_total, options, out);
	}
	(void)fputc_unlocked('\n', out);
	write_clients(snapshot, lock, options, out);
}

static void write_lock(const struct ss_snapshot *snapshot,
		       const struct ss_application_lock *lock,
		       const struct ss_format_options *options, FILE *out)
{
	(void)fprintf(out, "%zu thread%s for an application lock: ", lock->waiting,
		      lock->waiting == 1 ? " waits" : "s wait");
	ss_style_write(SS_STYLE_WARN, options->color, out);
	write_name(lock->function, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (lock->words) {
		(void)fputs_unlocked(" (", out);
		write_name(lock->words, out);
		(void)fputc_unlocked(')', out);
	}
	(void)fputc_unlocked('\n', out);
	write_suspects(snapshot, lock, options, out);
}

void ss_text_write_application_locks(const struct ss_snapshot *snapshot,
				     const struct ss_format_options *options, FILE *out)
{
	size_t count = ss_snapshot_application_lock_count(snapshot);
	size_t shown = options->verbose ? count : SS_MIN(count, (size_t)LOCKS_MAX);

	if (count)
		(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < shown; i++)
		write_lock(snapshot, ss_snapshot_application_lock(snapshot, i), options,
			   out);
	if (shown < count)
		(void)fprintf(out, "... and %zu more such lock%s (-v lists them)\n",
			      count - shown, count - shown == 1 ? "" : "s");
}
