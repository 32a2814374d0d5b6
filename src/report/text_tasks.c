/*
 * Tasks, threads among them, in groups that do the same in the same calls; of several snapshots, in how
 * many of them; of two, what became of them. Goroutines on a thread are listed with the thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/snapshot.h"
#include "report//diff.h"
#include "report/group.h"
#include "report/names.h"
#include "report/print.h"
#include "report/text.h"
#include "base/bytes.h"

/* Groups --------------------------------------------------------------------- */

enum { NAMES_MAX = 12 }; /* of a group without -v */

static void write_name(const struct ss_task *task, FILE *out)
{
	ss_escape_write(task->name, NULL, out);
}

static void write_left_out(size_t count, FILE *out)
{
	(void)fprintf(out, " and %s more (-v lists them)", ss_quantity_count(count).text);
}

static void write_names(const struct ss_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const size_t count = (*group->members)->greenlet ? 1 : group->count;
	const size_t shown = SS_MIN(count, ss_text_most(options, NAMES_MAX));

	/* Greenlets are named after their outermost function, which is the same in a group. */
	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		write_name(group->members[i], out);
	}
	if (shown < count)
		write_left_out(count - shown, out);
	(void)fputc_unlocked('\n', out);
}

/* ", for about 12 min" */
static void write_since(const struct ss_group *group, FILE *out)
{
	uint64_t shortest = UINT64_MAX;
	uint64_t longest = 0;

	for (size_t i = 0; i < group->count; i++) {
		shortest = SS_MIN(shortest, group->members[i]->waiting_ns);
		longest = SS_MAX(longest, group->members[i]->waiting_ns);
	}
	if (longest == 0)
		return;
	(void)fprintf(out, "%s%s",
		      shortest == longest ? ", for about " : ", for up to about ",
		      ss_quantity_time(longest).text);
}

/* " of libfirst.so": which of several runtimes of Go runs it. */
static void write_runtime(const struct ss_task *task, bool several, FILE *out)
{
	if (!several || !task->runtime)
		return;
	(void)fputs_unlocked(" of ", out);
	ss_escape_write(ss_path_base(task->runtime), NULL, out);
}

static const char *reason_of(const struct ss_task *task, const char *unknown)
{
	return task->object	 ? task->object :
	       task->wait_reason ? task->wait_reason :
				   unknown;
}

/* ", held by task refund" */
static void write_holder(const struct ss_snapshot *snapshot, const struct ss_group *group,
			 FILE *out)
{
	const struct ss_task *task = *group->members;

	for (size_t i = 0; i < group->count; i++) {
		if (group->members[i]->awaited_count != 1 ||
		    group->members[i]->awaited[0] != *task->awaited)
			return;
	}
	const struct ss_task *holder =
		ss_snapshot_task(snapshot, task->kind, *task->awaited);
	(void)fputs_unlocked(", held by ", out);
	if (holder == task && group->count == 1) {
		(void)fputs_unlocked("itself", out);
	} else {
		(void)fputs_unlocked("task ", out);
		write_name(holder, out);
	}
}

/* "waiting for Future", "waiting for tasks Task-2, Task-3", "waiting for other tasks" */
static void write_awaited(const struct ss_snapshot *snapshot,
			  const struct ss_group *group,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *task = *group->members;
	const size_t shown =
		SS_MIN(task->awaited_count, ss_text_most(options, NAMES_MAX));

	if (task->awaited_count == 0 || task->object) {
		(void)fputs_unlocked("waiting for ", out);
		ss_escape_write(reason_of(task, "a future"), NULL, out);
		write_holder(snapshot, group, out);
		return;
	}
	if (group->count > 1) {
		(void)fputs_unlocked("waiting for other tasks", out);
		return;
	}
	(void)fputs_unlocked(task->awaited_count == 1 ? "waiting for task " :
							"waiting for tasks ",
			     out);
	for (size_t i = 0; i < shown; i++) {
		if (i)
			(void)fputs_unlocked(", ", out);
		write_name(ss_snapshot_task(snapshot, task->kind, task->awaited[i]), out);
	}
	if (shown < task->awaited_count)
		write_left_out(task->awaited_count - shown, out);
}

static void write_state(const struct ss_snapshot *snapshot, const struct ss_group *group,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *first = *group->members;
	const bool waits = first->status == SS_STATUS_WAITING;

	if (first->kind == SS_TASK_ASYNCIO && waits && !first->greenlet)
		write_awaited(snapshot, group, options, out);
	else
		ss_escape_write(ss_task_words(first), NULL, out);
	if (first->lock_function) {
		(void)fputs_unlocked(", waits for an application lock: ", out);
		ss_escape_write(first->lock_function, NULL, out);
	}
	if (first->holder)
		(void)fprintf(out, ", probably held by goroutine %" PRIu64,
			      first->holder);
	if (first->changed)
		(void)fputs_unlocked(", ran while it was read", out);
	if (first->tid && !first->on_thread)
		(void)fprintf(out,
			      first->greenlet ? ", of thread %d" :
			      first->kind == SS_TASK_ASYNCIO &&
					      first->status != SS_STATUS_RUNNING ?
						", event loop of thread %d" :
						", on thread %d",
			      first->tid);
}

/* ", was runnable", ", was waiting for Future": what it did in another snapshot, if that differs. */
static void write_was(const struct ss_task *was, const struct ss_task *is, FILE *out)
{
	const char *reason = reason_of(was, "");

	if (was->status == is->status && strcmp(reason, reason_of(is, "")) == 0)
		return;
	(void)fprintf(out, ", was %s", ss_task_status_name(was->status));
	if (*reason) {
		(void)fputs_unlocked(" for ", out);
		ss_escape_write(reason, NULL, out);
	}
}

/* How the tasks of a kind are written. */
struct text {
	enum ss_task_kind kind;
	bool several; /* goroutines of several runtimes of Go */
	const struct ss_snapshots *snapshots;
	const struct ss_merged *merged;	    /* of these; or NULL */
	const struct ss_merged *goroutines; /* on its threads; or NULL */
	bool changes;  /* what became of the groups of the first snapshot */
	bool language; /* a runtime executes the program */
	const struct ss_format_options *options;
	FILE *out;
};

static size_t groups_to_show(const struct text *text)
{
	return ss_text_most(text->options, text->options->groups[text->kind]);
}

/* "main thread and 3 more threads", "12 goroutines" */
static void write_number(const struct text *text, const struct ss_group *group)
{
	const char *noun = (*group->members)->greenlet ? "greenlet" :
							 ss_task_noun(text->kind);
	const size_t others = group->count - (group->has_main ? 1 : 0);
	FILE *out = text->out;

	if (group->has_main)
		(void)fprintf(out, "main %s%s", noun, others ? " and " : "");
	if (group->has_main && others)
		(void)fprintf(out, "%s more %s%s", ss_quantity_count(others).text, noun,
			      others == 1 ? "" : "s");
	else if (others)
		(void)fputs_unlocked(ss_quantity_things(others, noun).text, out);
}

/* ", sleeping", or ", 3 running, 9 sleeping"; in a series ", 3 times running" */
static void write_states(const struct text *text, const struct ss_merged_group *item)
{
	const bool times = text->snapshots->kind == SS_SNAPSHOTS_SERIES;

	for (size_t state = 0; state < SS_STATE_COUNTS; state++) {
		const size_t count = item->states[state];
		if (count == 0)
			continue;
		(void)fputs_unlocked(", ", text->out);
		if (count < item->times)
			(void)fprintf(text->out, "%s ",
				      times ? ss_quantity_things(count, "time").text :
					      ss_quantity_count(count).text);
		(void)fputs_unlocked(ss_state_name((char)state), text->out);
	}
}

static void write_pause(const struct text *text, const struct ss_group *group)
{
	FILE *out = text->out;
	uint64_t longest = 0;
	size_t torn = 0;

	if (text->snapshots->kind != SS_SNAPSHOTS_ONE ||
	    ss_snapshot_process(*text->snapshots->items)->mode == SS_MODE_CORE)
		return;
	for (size_t i = 0; i < group->count; i++) {
		const struct ss_task *thread = group->members[i];
		longest = SS_MAX(longest, thread->stopped_ns);
		torn += thread->consistent || thread->frame_count == 0 ? 0 : 1;
	}
	(void)fputs_unlocked(longest ? ", paused " : ", not paused", out);
	if (longest)
		(void)fputs_unlocked(ss_quantity_time(longest).text, out);
	if (torn)
		(void)fprintf(out, ", %zu changed while being read", torn);
}

/* What the tasks of a group do. was: the first member in another snapshot; or NULL. */
static void write_activity(const struct text *text, const struct ss_snapshot *snapshot,
			   const struct ss_group *group, const struct ss_task *was)
{
	write_runtime(*group->members, text->several, text->out);
	(void)fputs_unlocked(", ", text->out);
	write_state(snapshot, group, text->options, text->out);
	write_since(group, text->out);
	if (was)
		write_was(was, *group->members, text->out);
}

static void write_members(const struct text *text, const struct ss_group *group)
{
	if (text->kind == SS_TASK_ASYNCIO)
		write_names(group, text->options, text->out);
	else
		ss_text_write_list(group->members, group->count, text->options,
				   text->out);
}

static void begin_group(const struct text *text)
{
	(void)fputc_unlocked('\n', text->out);
	ss_style_write(SS_STYLE_STRONG, text->options->color, text->out);
}

/* The goroutines that threads run. */
static void write_goroutines(const struct text *text, const struct ss_snapshot *snapshot,
			     const struct ss_group *group)
{
	const struct ss_merged *merged = text->goroutines;
	const struct ss_format_options *options = text->options;
	FILE *out = text->out;

	for (size_t i = 0; i < group->count && merged && merged->read; i++) {
		pid_t tid = group->members[i]->tid;
		const struct ss_task *goroutine =
			ss_grouping_find(*merged->groupings, tid);
		if (!goroutine)
			continue;
		const struct ss_group only = { .members = &goroutine, .count = 1 };
		(void)fprintf(out, "  goroutine %" PRIu64, goroutine->id);
		write_runtime(goroutine, merged->several, out);
		if (group->count > 1)
			(void)fprintf(out, " on thread %d", tid);
		(void)fputs_unlocked(", ", out);
		write_state(snapshot, &only, options, out);
		write_since(&only, out);
		(void)fputc_unlocked('\n', out);
	}
}

/* Where threads wait, in the language of the program: "  waits in Queue.get, called at worker.py:41". */
static void write_place(const struct text *text, const struct ss_snapshot *snapshot,
			const struct ss_task *thread, size_t count)
{
	size_t program = 0;
	size_t called = ss_text_find_wait(snapshot, thread, &program);

	if (called >= thread->frame_count || text->options->raw)
		return;
	const struct ss_frame *caller = ss_snapshot_frame(snapshot, thread, program);
	(void)fputs_unlocked(count == 1 ? "  waits in " : "  wait in ", text->out);
	ss_text_write_call(ss_snapshot_frame(snapshot, thread, called)->symbol,
			   called != program, caller->file, caller->line,
			   text->options->verbose, text->out);
	(void)fputc_unlocked('\n', text->out);
}

static void write_stack(const struct text *text, const struct ss_snapshot *snapshot,
			const struct ss_group *group)
{
	const struct ss_task *first = *group->members;

	if (group->like_previous)
		(void)fputs_unlocked("  the same native frames; functions of the "
				     "interpreted program are not known\n",
				     text->out);
	else if (first->frame_count > 0 || text->kind != SS_TASK_GOROUTINE)
		ss_text_write_frames(snapshot, first, text->options, text->out);
}

/* "grown from 20, of which 18 remain: ", "as many as before, of which 3 remain: " */
static void write_change(const struct ss_merged_group *group, FILE *out)
{
	const size_t before = group->presence.before;
	const size_t after = group->presence.after;
	bool as_many = before && before == after && group->same < before;

	(void)fputs_unlocked(as_many ? "as many as before" : ss_merged_change(group),
			     out);
	if (before && after) {
		if (before != after)
			(void)fprintf(out, " from %s", ss_quantity_count(before).text);
		if (group->same < before)
			(void)fprintf(out, ", of which %s%s",
				      ss_quantity_count(group->same).text,
				      group->same == 1 ? " remains" : " remain");
	}
	(void)fputs_unlocked(": ", out);
}

/* "in all snapshots, 20 to 24: ", or "in 8 of 10 snapshots, at most 24: "; the numbers only if they
   differ. Of threads "in 8 of 10 snapshots, 12 times: ". */
static void write_presence(const struct text *text, const struct ss_merged_group *item)
{
	const struct ss_presence *presence = &item->presence;
	FILE *out = text->out;

	(void)fputs_unlocked("in ", out);
	if (presence->snapshots == text->merged->read)
		(void)fputs_unlocked("all", out);
	else
		(void)fprintf(out, "%s of %s",
			      ss_quantity_count(presence->snapshots).text,
			      ss_quantity_count(text->merged->read).text);
	(void)fputs_unlocked(" snapshots", out);
	if (text->kind == SS_TASK_THREAD) {
		if (item->times != presence->snapshots)
			(void)fprintf(out, ", %s",
				      ss_quantity_things(item->times, "time").text);
	} else if (presence->most > SS_MAX(presence->least, (size_t)1)) {
		(void)fprintf(out, presence->least ? ", %s to " : ", at most ",
			      ss_quantity_count(presence->least).text);
		(void)fputs_unlocked(ss_quantity_count(presence->most).text, out);
	}
	(void)fputs_unlocked(": ", out);
}

/* The threads of a group of several snapshots, to be freed; NULL without memory. */
static const struct ss_task **list_members(const struct ss_merged_group *item)
{
	const struct ss_task **tasks =
		calloc(item->members.count + 1, sizeof(const struct ss_task *));

	for (size_t i = 0; tasks && i < item->members.count; i++)
		tasks[i] = item->members.items[i].task;
	return tasks;
}

/* "main thread and 3 more threads, sleeping, paused 0.31 ms: worker-* 4711-4714"
   "in 8 of 10 snapshots, 12 times: 2 threads, running: worker-* 11,12"
   "9 threads in 8 of 11 processes, sleeping: postgres 4711-4719"
   "in all snapshots, 20 to 24: 24 goroutines, chan receive: 1-24" */
static void write_header(const struct text *text, const struct ss_merged_group *item,
			 const struct ss_snapshot *snapshot, const struct ss_group *group)
{
	const enum ss_snapshots_kind kind = text->snapshots->kind;

	begin_group(text);
	if (text->changes)
		write_change(item, text->out);
	else if (kind == SS_SNAPSHOTS_SERIES)
		write_presence(text, item);
	write_number(text, group);
	if (kind == SS_SNAPSHOTS_PROCESSES)
		(void)fprintf(text->out, " in %s of %s processes",
			      ss_quantity_count(item->presence.snapshots).text,
			      ss_quantity_count(text->snapshots->count).text);
	ss_style_write(SS_STYLE_NONE, text->options->color, text->out);
	if (text->kind == SS_TASK_THREAD) {
		write_states(text, item);
		write_pause(text, group);
	} else {
		write_activity(text, snapshot, group, NULL);
	}
	if (text->kind == SS_TASK_GOROUTINE && kind == SS_SNAPSHOTS_ONE &&
	    (*group->members)->endless)
		(void)fputs_unlocked(", for ever", text->out);
	write_members(text, group);
}

static struct ss_error *write_group(const struct text *text,
				    const struct ss_merged_group *item)
{
	const enum ss_snapshots_kind kind = text->snapshots->kind;
	const struct ss_snapshot *snapshot = text->snapshots->items[item->presence.last];
	/* Of the last snapshot that has some. */
	struct ss_group last = { .members = item->tasks.items,
				 .count = item->tasks.count };
	struct ss_group listed = last;
	struct ss_group shown = text->kind == SS_TASK_THREAD ? *item->group : last;
	_cleanup_free_ const struct ss_task **threads = NULL;
	struct ss_error *error = NULL;

	if (kind == SS_SNAPSHOTS_ONE) {
		listed = last = *item->group;
	} else if (text->kind == SS_TASK_THREAD) {
		threads = list_members(item);
		if (!threads)
			return ss_error_no_memory();
		listed = (struct ss_group){ .members = threads,
					    .count = item->members.count };
	}
	write_header(text, item, snapshot, &listed);
	if (text->kind == SS_TASK_THREAD) {
		const struct ss_group *waiting =
			kind == SS_SNAPSHOTS_PROCESSES ? &listed : &last;
		error = ss_text_write_waits(waiting->members, waiting->count, "  ",
					    text->options, text->out);
		write_place(text, snapshot, *shown.members, waiting->count);
		write_goroutines(text, snapshot, &last);
	}
	/* The group before it in its snapshot may be elsewhere in the text. */
	shown.like_previous &= kind == SS_SNAPSHOTS_ONE;
	if (!error)
		write_stack(text, snapshot, &shown);
	return error;
}

/* What is not written: tasks and groups. */
struct left_out {
	size_t count;
	size_t groups;
	size_t incomplete; /* threads whose stack is */
	size_t of_runtime; /* tasks, not in count */
};

static void leave_out(struct left_out *left, const struct text *text,
		      const struct ss_merged_group *item)
{
	const bool one = text->snapshots->kind == SS_SNAPSHOTS_ONE;
	const size_t count = text->kind == SS_TASK_THREAD ? item->times :
							    item->tasks.count;

	if (item->class == SS_GROUP_RUNTIME &&
	    text->snapshots->kind != SS_SNAPSHOTS_SERIES) {
		left->of_runtime += count;
		return;
	}
	left->count += count;
	left->groups += !one || !item->group->like_previous;
	if (!ss_end_is_outermost((*item->group->members)->end))
		left->incomplete += count;
}

/* "12 more goroutines in 3 groups; --goroutines=all shows them" */
static void write_left(const struct text *text, const struct left_out *left)
{
	FILE *out = text->out;

	if (left->groups == 0)
		return;
	(void)fprintf(out, "\n%s more %s%s in %s; --%ss=all shows %s\n",
		      ss_quantity_count(left->count).text, ss_task_noun(text->kind),
		      left->count == 1 ? "" : "s",
		      ss_quantity_things(left->groups, "group").text,
		      ss_task_noun(text->kind), left->count == 1 ? "it" : "them");
}

/* Whether a group is only counted: one of the runtime; of threads one that is idle, but the first group
   is always shown: usually that of the main thread. In a comparison one that has not changed. */
static bool is_hidden(const struct text *text, size_t index)
{
	enum { IDLE_GROUPS_SHOWN = 3 };
	const struct ss_merged_group *item = &text->merged->items[index];

	if (text->changes)
		return item->presence.before == item->presence.after;
	if (item->class != SS_GROUP_IDLE || text->kind != SS_TASK_THREAD)
		return item->class == SS_GROUP_RUNTIME;
	/* If all of a program of another language, or of all processes, is idle, or all of a few
	   groups, that is what the user wants to see. */
	return text->language || text->snapshots->kind == SS_SNAPSHOTS_PROCESSES ||
			       text->merged->own_count <= IDLE_GROUPS_SHOWN ?
		       text->merged->items[0].class <
			       (text->language ? SS_GROUP_OTHER : SS_GROUP_IDLE) :
		       index > 0;
}

static struct left_out find_hidden(const struct text *text)
{
	const struct ss_format_options *options = text->options;
	const enum ss_snapshots_kind kind = text->snapshots->kind;
	const struct left_out nothing = {};
	struct left_out hidden = {};

	if (options->all || options->verbose ||
	    (options->no_group && kind == SS_SNAPSHOTS_ONE) ||
	    (text->kind != SS_TASK_THREAD && groups_to_show(text) == SIZE_MAX))
		return nothing;
	for (size_t i = 0; i < text->merged->own_count; i++) {
		if (is_hidden(text, i))
			leave_out(&hidden, text, &text->merged->items[i]);
	}
	/* A single thread, or stack of a series, is not worth the remark that it is left out. */
	const size_t count = hidden.of_runtime +
			     (kind == SS_SNAPSHOTS_SERIES ? hidden.groups : hidden.count);
	return text->kind == SS_TASK_THREAD && count <= 1 ? nothing : hidden;
}

/* "38 idle threads in 6 groups", "unchanged: 3 goroutines in 2 groups", "5 threads of the runtime" */
static void write_hidden_count(const struct text *text, const struct left_out *hidden)
{
	const char *noun = ss_task_noun(text->kind);
	FILE *out = text->out;

	if (hidden->count == 0)
		(void)fprintf(out, "%s of the runtime",
			      ss_quantity_things(hidden->of_runtime, noun).text);
	else if (text->changes)
		(void)fprintf(out, "unchanged: %s",
			      ss_quantity_things(hidden->count, noun).text);
	else if (text->snapshots->kind == SS_SNAPSHOTS_SERIES)
		(void)fprintf(out, "%s of idle threads",
			      ss_quantity_things(hidden->groups, "stack").text);
	else
		(void)fputs_unlocked(
			ss_quantity_things(hidden->count, "idle thread").text, out);
}

/* "38 idle threads in 6 groups and 5 threads of the runtime; -a shows them" */
static void write_hidden(const struct text *text, const struct left_out *hidden)
{
	const bool series = text->snapshots->kind == SS_SNAPSHOTS_SERIES;
	FILE *out = text->out;

	if (hidden->count + hidden->of_runtime == 0)
		return;
	begin_group(text);
	write_hidden_count(text, hidden);
	ss_style_write(SS_STYLE_NONE, text->options->color, out);
	if (hidden->count && text->kind == SS_TASK_THREAD && series)
		(void)fprintf(out, ", %s",
			      ss_quantity_things(hidden->count, "time").text);
	else if (hidden->count)
		(void)fprintf(
			out, " in %s",
			ss_quantity_things(SS_MAX(hidden->groups, (size_t)1), "group")
				.text);
	if (!series && hidden->incomplete)
		(void)fprintf(out, ", %s with %s",
			      ss_quantity_count(hidden->incomplete).text,
			      hidden->incomplete == 1 ? "an incomplete stack" :
							"incomplete stacks");
	if (hidden->count && hidden->of_runtime)
		(void)fprintf(
			out, " and %s of the runtime",
			ss_quantity_things(hidden->of_runtime, ss_task_noun(text->kind))
				.text);
	(void)fprintf(out, "; -a shows %s\n",
		      hidden->count + hidden->of_runtime == 1 ? "it" : "them");
}

/* "; 3 more could not be read"; any: others are before them in the line. */
static void write_more(size_t count, bool any, const char *prefix, const char *what,
		       FILE *out)
{
	if (count == 0)
		return;
	(void)fprintf(out, any ? "; %s" : "asyncio tasks: ", prefix);
	(void)fprintf(out, "%s%s %s", ss_quantity_count(count).text, any ? " more" : "",
		      what);
}

/* "25 asyncio tasks", "3 greenlets"; "28 tasks" of both */
static void write_count(const struct text *text, const struct ss_snapshot *snapshot,
			size_t count)
{
	const char *noun = ss_task_noun(text->kind);
	const size_t greenlets = ss_greenlet_count(snapshot);

	if (text->kind == SS_TASK_ASYNCIO && greenlets == 0)
		noun = "asyncio task";
	else if (text->kind == SS_TASK_ASYNCIO &&
		 greenlets == ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO))
		noun = "greenlet";

	ss_style_print(SS_STYLE_STRONG, text->options->color, text->out, "%s",
		       ss_quantity_things(count, noun).text);
}

/* "25 goroutines, 3 on threads, the others in 14 groups" */
static void write_one_summary(const struct text *text, const struct ss_snapshot *snapshot,
			      size_t count)
{
	const size_t own = text->merged->own_count;
	const size_t on_threads = text->merged->count - own;
	FILE *out = text->out;

	if (count)
		write_count(text, snapshot, count);
	if (on_threads)
		(void)fprintf(out, ", %s%s", ss_quantity_count(on_threads).text,
			      on_threads == 1 ? " on a thread" : " on threads");
	if (own)
		(void)fprintf(out, "%s%s", on_threads ? ", the others in " : " in ",
			      ss_quantity_things(own, "group").text);
}

/* "25 asyncio tasks, 20 in the first snapshot; 14 groups" */
static void write_series_summary(const struct text *text,
				 const struct ss_snapshot *snapshot, size_t before,
				 size_t after)
{
	FILE *out = text->out;

	write_count(text, snapshot, after);
	if (before != after)
		(void)fprintf(out, ", %s in the first snapshot",
			      ss_quantity_count(before).text);
	(void)fprintf(out, "%s%s",
		      text->kind == SS_TASK_GOROUTINE ? "; those on no thread: " : "; ",
		      ss_quantity_things(text->merged->own_count, "group").text);
}

static void write_summary(const struct text *text)
{
	const struct ss_merged *merged = text->merged;
	const struct ss_snapshots *snapshots = text->snapshots;
	const bool one = snapshots->kind == SS_SNAPSHOTS_ONE;
	const char *prefix = one ? "" : "up to ";
	size_t before =
		ss_snapshot_task_count(snapshots->items[merged->first_read], text->kind);
	const struct ss_snapshot *last = snapshots->items[merged->last_read];
	size_t after = ss_snapshot_task_count(last, text->kind);
	size_t missing = one ? 0 : snapshots->count - merged->read;
	FILE *out = text->out;

	(void)fputc_unlocked('\n', out);
	if (one)
		write_one_summary(text, last, after);
	else
		write_series_summary(text, last, before, after);
	write_more(merged->changed, !one || after, prefix,
		   one && merged->changed == 1 ? "ran while it was read" :
						 "ran while they were read",
		   out);
	write_more(merged->unread, !one || after + merged->changed, prefix,
		   "could not be read", out);
	if (missing)
		(void)fprintf(out, "; not read in %s of %s",
			      ss_quantity_count(missing).text,
			      ss_quantity_things(snapshots->count, "snapshot").text);
	(void)fputc_unlocked('\n', out);
}

static void write_problem(const char *problem, const struct ss_format_options *options,
			  FILE *out)
{
	if (!problem)
		return;
	(void)fputc_unlocked('\n', out);
	ss_text_write_problem(problem, options->color, out);
}

/* What precedes the groups of the tasks of a runtime. Returns whether there are some. */
static bool write_task_heading(const struct text *text)
{
	const struct ss_merged *merged = text->merged;
	const bool one = text->snapshots->kind == SS_SNAPSHOTS_ONE;
	const char *denial = text->changes ? ss_merged_denial(merged) : NULL;

	if (text->options->groups[text->kind] == 0 && !one)
		return false;
	write_problem(merged->problem, text->options, text->out);
	write_problem(denial, text->options, text->out);
	if (denial || (merged->read == 0 && !one) ||
	    merged->count + merged->changed + merged->unread == 0)
		return false;
	write_summary(text);
	return true;
}

static bool has_language(const struct ss_snapshots *snapshots)
{
	const struct ss_languages languages =
		ss_snapshot_languages(snapshots->items[snapshots->count - 1]);

	return languages.kinds || languages.go;
}

struct ss_error *ss_text_write_groups(const struct ss_snapshots *snapshots,
				      const struct ss_merged *merged,
				      const struct ss_merged *goroutines, bool changes,
				      const struct ss_format_options *options, FILE *out)
{
	const struct text text = { .kind = merged->kind,
				   .several = merged->several,
				   .snapshots = snapshots,
				   .merged = merged,
				   .goroutines = goroutines,
				   .changes = changes,
				   .language = has_language(snapshots),
				   .options = options,
				   .out = out };
	const bool threads = merged->kind == SS_TASK_THREAD;
	const size_t most = threads ? SIZE_MAX : groups_to_show(&text);
	struct ss_error *error = NULL;
	struct left_out left = {};
	size_t shown = 0;

	if (!threads && !write_task_heading(&text))
		return NULL;
	const struct left_out hidden = find_hidden(&text);
	for (size_t i = 0; i < merged->own_count && !error; i++) {
		if (hidden.count + hidden.of_runtime && is_hidden(&text, i))
			continue;
		if (shown++ < most)
			error = write_group(&text, &merged->items[i]);
		else
			leave_out(&left, &text, &merged->items[i]);
	}
	write_left(&text, &left);
	write_hidden(&text, &hidden);
	return error;
}

/* "3 goroutines made no progress, waiting for a lock of the application" */
static void write_blocked(const struct ss_merged *merged,
			  const struct ss_format_options *options, FILE *out)
{
	size_t count = 0;

	for (size_t i = 0; i < merged->own_count; i++) {
		const struct ss_merged_group *item = &merged->items[i];
		if ((*item->tasks.items)->blocked)
			count += item->tasks.count;
	}
	if (count == 0)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_WARN, options->color, out, "%s",
		       ss_quantity_things(count, ss_task_noun(SS_TASK_GOROUTINE)).text);
	(void)fputs_unlocked(" made no progress, waiting for a lock of the application\n",
			     out);
}

struct ss_error *ss_text_write_kind(const struct ss_snapshot *snapshot,
				    enum ss_task_kind kind,
				    const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshots one = { .items = &snapshot,
					  .count = 1,
					  .kind = SS_SNAPSHOTS_ONE };
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(&one, kind, true);

	if (!merged)
		return ss_error_no_memory();
	if (kind == SS_TASK_GOROUTINE)
		write_blocked(merged, options, out);
	return ss_text_write_groups(&one, merged, NULL, false, options, out);
}

/* Goroutines are the program, and so are tasks of asyncio, unless a thread is in their way. */
struct ss_error *ss_text_write_tasks(const struct ss_snapshots *snapshots,
				     const struct ss_merged *threads, bool merge,
				     const struct ss_format_options *options, FILE *out)
{
	const bool one = snapshots->kind == SS_SNAPSHOTS_ONE;
	const bool tasks_first = threads->own_count == 0 ||
				 threads->items[0].class >= SS_GROUP_OTHER;
	_cleanup_(ss_merged_cleanup) struct ss_merged *goroutines =
		ss_merged_new(snapshots, SS_TASK_GOROUTINE, merge);
	_cleanup_(ss_merged_cleanup) struct ss_merged *tasks =
		ss_merged_new(snapshots, SS_TASK_ASYNCIO, merge);

	if (!goroutines || !tasks)
		return ss_error_no_memory();
	struct ss_error *error =
		ss_text_write_groups(snapshots, goroutines, NULL, false, options, out);
	if (!error && tasks_first)
		error = ss_text_write_groups(snapshots, tasks, NULL, false, options, out);
	if (!error)
		error = ss_text_write_groups(snapshots, threads, one ? goroutines : NULL,
					     false, options, out);
	if (!error && !tasks_first)
		error = ss_text_write_groups(snapshots, tasks, NULL, false, options, out);
	return error;
}

/* Two snapshots -------------------------------------------------------------- */

struct comparison {
	const struct ss_diff_input *input;
	const struct ss_diff *diff;
	const struct ss_text_item *items;
	struct text text;
};

/* "25 tasks of asyncio: 20 unchanged, 3 moved, 2 new, 1 gone" */
static void write_counts(const struct comparison *comparison)
{
	const struct text *text = &comparison->text;

	(void)fputc_unlocked('\n', text->out);
	write_count(
		text, comparison->input->after.snapshot,
		ss_snapshot_task_count(comparison->input->after.snapshot, text->kind));
	for (size_t i = 0; i < SS_CHANGE_COUNT; i++)
		(void)fprintf(text->out, "%s%s %s", i ? ", " : ": ",
			      ss_quantity_count(comparison->diff->counts[i]).text,
			      ss_change_name((enum ss_change)i));
	(void)fputc_unlocked('\n', text->out);
}

/* affected: how many of the other snapshot may look as they do because of that. */
static void write_missing(const struct ss_snapshot *snapshot, const char *where,
			  size_t affected, const char *consequence, FILE *out)
{
	const struct ss_task_coverage *coverage =
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO);
	const size_t count = coverage->changed + coverage->unread;

	if (count == 0)
		return;
	(void)fprintf(out, "%s could not be read in the %s snapshot%s\n",
		      ss_quantity_things(count, "asyncio task").text, where,
		      affected ? consequence : "");
}

static unsigned part_of(const struct ss_task_change *change)
{
	return change->change;
}

static struct ss_error *write_bundle(const struct comparison *comparison,
				     const struct ss_bundle *bundle)
{
	const struct ss_task_change *first = &comparison->diff->items[bundle->items[0]];
	const struct ss_diff_input *input = comparison->input;
	const struct ss_snapshot *snapshot = first->after ? input->after.snapshot :
							    input->before.snapshot;
	const struct text *text = &comparison->text;
	_cleanup_free_ const struct ss_task **members =
		calloc(bundle->count, sizeof(const struct ss_task *));

	if (!members)
		return ss_error_no_memory();
	for (size_t i = 0; i < bundle->count; i++)
		members[i] = comparison->items[bundle->items[i]].task;
	const struct ss_group group = { .members = members, .count = bundle->count };
	begin_group(text);
	(void)fprintf(text->out, "%s: ", ss_change_name(first->change));
	write_number(text, &group);
	ss_style_write(SS_STYLE_NONE, text->options->color, text->out);
	write_activity(text, snapshot, &group, first->before);
	write_members(text, &group);
	/* One that runs has all but one coroutine on its thread. */
	if (first->change == SS_MOVED &&
	    first->common < SS_MAX(first->before->frame_count, first->after->frame_count))
		ss_text_write_move(input, first, text->options, text->out);
	else
		write_stack(text, snapshot, &group);
	return NULL;
}

static struct ss_error *write_changes(const struct comparison *comparison,
				      enum ss_change change)
{
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		ss_bundles_new(comparison->items, comparison->diff->count, change);
	const size_t most = groups_to_show(&comparison->text);
	struct ss_error *error = bundles ? NULL : ss_error_no_memory();
	struct left_out left = {};

	if (error)
		return error;
	for (size_t i = 0; i < bundles->count && !error; i++) {
		if (i < most) {
			error = write_bundle(comparison, &bundles->items[i]);
			continue;
		}
		left.count += bundles->items[i].count;
		left.groups++;
	}
	write_left(&comparison->text, &left);
	return error;
}

struct ss_error *ss_text_write_task_diff(const struct ss_diff_input *input,
					 const struct ss_diff *threads,
					 const struct ss_format_options *options,
					 FILE *out)
{
	const enum ss_task_kind kind = SS_TASK_ASYNCIO;
	const struct ss_snapshot *first = input->before.snapshot;
	const struct ss_snapshot *second = input->after.snapshot;
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
		ss_diff_new(input, kind, threads);
	_cleanup_free_ struct ss_text_item *items =
		diff ? ss_text_change_items(input, diff, part_of) : NULL;
	const struct comparison comparison = {
		.input = input,
		.diff = diff,
		.items = items,
		.text = { .kind = kind, .options = options, .out = out },
	};
	struct ss_error *error = items ? NULL : ss_error_no_memory();

	if (error || options->groups[kind] == 0)
		return error;
	write_problem(diff->problem, options, out);
	if (diff->problem)
		return NULL;
	if (diff->count > 0)
		write_counts(&comparison);
	write_missing(first, "first", diff->counts[SS_NEW],
		      ": some that are new may be older", out);
	write_missing(second, "second", diff->counts[SS_GONE],
		      ": some that are gone may still exist", out);
	for (size_t i = 0; i < SS_CHANGE_COUNT && !error; i++)
		error = write_changes(&comparison, (enum ss_change)i);
	return error;
}
