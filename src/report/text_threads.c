/*
 * The line with the threads or goroutines of a group. Names that differ only in a trailing number are
 * merged; consecutive ids become a range.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/escape.h"
#include "report/names.h"
#include "report/quantity.h"
#include "report/style.h"
#include "report/text.h"
#include "report/wait_text.h"
#include "report/profile.h"
#include "data/snapshot.h"

enum { ITEMS_MAX = 12 }; /* ids and ranges of a group without -v */

struct listing {
	const struct ss_task *const *tasks; /* sorted by stem of their name, then by id */
	size_t count;
	size_t items; /* written so far */
	size_t max_items;
	FILE *out;
};

static size_t stem_size(const char *name)
{
	size_t size = strlen(name);

	while (size > 0 && name[size - 1] >= '0' && name[size - 1] <= '9')
		size--;
	return size;
}

static int compare_stems(const struct ss_task *a, const struct ss_task *b)
{
	size_t size = stem_size(a->name);
	size_t other = stem_size(b->name);
	int order = memcmp(a->name, b->name, SS_MIN(size, other));

	return order ? order : (size > other) - (size < other);
}

static int compare_threads(const void *a, const void *b)
{
	const struct ss_task *t = *(const struct ss_task *const *)a;
	const struct ss_task *u = *(const struct ss_task *const *)b;
	int order = compare_stems(t, u);

	return order ? order : (t->id > u->id) - (t->id < u->id);
}

/* Returns the number of threads, from first on, whose names have the same stem. */
static size_t stem_run(const struct listing *list, size_t first)
{
	size_t end = first + 1;

	while (end < list->count &&
	       compare_stems(list->tasks[first], list->tasks[end]) == 0)
		end++;
	return end - first;
}

static void write_stem(const struct listing *list, size_t first, size_t count)
{
	const char *name = list->tasks[first]->name;
	bool same = true;

	for (size_t i = 1; i < count; i++)
		same &= strcmp(name, list->tasks[first + i]->name) == 0;
	if (same) {
		ss_escape_write(name, NULL, list->out);
		return;
	}
	_cleanup_free_ char *stem = strndup(name, stem_size(name));
	ss_escape_write(stem ? stem : name, NULL, list->out);
	(void)fputc_unlocked('*', list->out);
}

/* The id in the thread's own pid namespace, if it is known. */
static uint64_t inner_id(const struct ss_task *task)
{
	return task->inner_tid ? (uint64_t)task->inner_tid : task->id;
}

static bool follows(const struct ss_task *task, const struct ss_task *before)
{
	return task->id == before->id + 1 && inner_id(task) == inner_id(before) + 1;
}

/* "9-12", or "9-12[1-4]" if they have other ids in their own pid namespace. */
static void write_range(uint64_t first, size_t length, FILE *out)
{
	(void)fprintf(out, "%" PRIu64, first);
	if (length > 1)
		(void)fprintf(out, "%c%" PRIu64, length > 2 ? '-' : ',',
			      first + length - 1);
}

static void write_run(const struct ss_task *first, size_t length, FILE *out)
{
	write_range(first->id, length, out);
	if (inner_id(first) == first->id)
		return;
	(void)fputc_unlocked('[', out);
	write_range(inner_id(first), length, out);
	(void)fputc_unlocked(']', out);
}

/* Writes ids and ranges of threads with one stem until the list is full. Returns the
   number of threads written. */
static size_t write_ids(struct listing *list, size_t first, size_t count)
{
	size_t written = 0;

	while (written < count && list->items < list->max_items) {
		const struct ss_task *const *run = &list->tasks[first + written];
		size_t length = 1;
		while (written + length < count && follows(run[length], run[length - 1]))
			length++;
		(void)fputc_unlocked(written ? ',' : ' ', list->out);
		write_run(run[0], length, list->out);
		written += length;
		list->items++;
	}
	return written;
}

static void write_list(struct listing *list)
{
	size_t written = 0;

	for (size_t i = 0, run; i < list->count && written == i; i += run) {
		run = stem_run(list, i);
		if (list->items >= list->max_items)
			break;
		if (*list->tasks[i]->name) {
			(void)fputs_unlocked(i ? "; " : " ", list->out);
			write_stem(list, i, run);
		}
		written += write_ids(list, i, run);
	}
	if (written < list->count)
		(void)fprintf(list->out, " and %s more (-v lists them)",
			      ss_quantity_count(list->count - written).text);
}

void ss_text_write_states(const size_t *counts, size_t all, const char *unit, FILE *out)
{
	for (size_t state = 0; state < SS_STATE_COUNTS; state++) {
		if (counts[state] == 0)
			continue;
		(void)fputs_unlocked(", ", out);
		if (counts[state] < all) {
			if (unit)
				(void)fputs_unlocked(
					ss_quantity_things(counts[state], unit).text,
					out);
			else
				(void)fputs_unlocked(
					ss_quantity_count(counts[state]).text, out);
			(void)fputc_unlocked(' ', out);
		}
		(void)fputs_unlocked(ss_state_name((char)state), out);
	}
}

static void write_states(const struct ss_group *group, FILE *out)
{
	size_t counts[SS_STATE_COUNTS] = {};

	for (size_t i = 0; i < group->count; i++)
		counts[group->members[i]->state & 0x7f]++;
	ss_text_write_states(counts, group->count, NULL, out);
}

static void write_pause(const struct ss_snapshot *snapshot, const struct ss_group *group,
			FILE *out)
{
	uint64_t longest = 0;
	size_t torn = 0;

	if (ss_snapshot_process(snapshot)->mode == SS_MODE_CORE)
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

static void write_number(const struct ss_group *group, FILE *out)
{
	if (group->has_main)
		(void)fputs_unlocked("main thread", out);
	if (group->has_main && group->count > 1)
		(void)fputs_unlocked(" and ", out);
	size_t others = group->count - (group->has_main ? 1 : 0);
	if (others == 0)
		return;
	(void)fprintf(out, "%s%s thread%s", ss_quantity_count(others).text,
		      group->has_main ? " more" : "", others == 1 ? "" : "s");
}

void ss_text_write_list(const struct ss_task *const *tasks, size_t count,
			const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ const struct ss_task **sorted =
		calloc(count, sizeof(const struct ss_task *));
	struct listing list = { .tasks = sorted ? sorted : tasks,
				.count = count,
				.max_items = options->verbose ? SIZE_MAX : ITEMS_MAX,
				.out = out };

	if (sorted) {
		memcpy(sorted, tasks, count * sizeof(const struct ss_task *));
		qsort(sorted, count, sizeof(const struct ss_task *), compare_threads);
	}
	(void)fputc_unlocked(':', out);
	write_list(&list);
	(void)fputc_unlocked('\n', out);
}

void ss_text_write_threads(const struct ss_snapshot *snapshot,
			   const struct ss_group *group,
			   const struct ss_format_options *options, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	write_number(group, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	write_states(group, out);
	write_pause(snapshot, group, out);
	ss_text_write_list(group->members, group->count, options, out);
}

/*
 * Deadlocks, and threads that other threads wait for.
 */

enum {
	DEADLOCKS_MAX = 8, /* without -v */
	MEMBERS_MAX = 16,
	BLOCKERS_MAX = 3,
	USER_FRAMES = 2, /* frames shown for each waiting thread */
};

/* Returns the index of the first frame of the program itself: not in the module that waits,
   if possible, and not in code of libraries. */
static size_t first_user_frame(const struct ss_snapshot *snapshot,
			       const struct ss_task *thread)
{
	const struct ss_module *inner = NULL;
	size_t first = 0;

	for (size_t i = 0; i < thread->frame_count && thread->wait; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		inner = i == 0 ? frame->module : inner;
		if (frame->module == inner)
			continue;
		first = i;
		break;
	}
	for (size_t i = first; i < thread->frame_count && thread->wait; i++) {
		const char *symbol = ss_snapshot_frame(snapshot, thread, i)->symbol;
		if (!symbol || !ss_label_is_of_library(symbol))
			return i;
	}
	return first;
}

size_t ss_text_find_call(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t *ret_program)
{
	size_t called = thread->frame_count;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind == SS_FRAME_NATIVE || !frame->symbol)
			continue;
		if (!ss_frame_is_of_library(frame)) {
			*ret_program = i;
			return called < i ? called : i;
		}
		called = i;
	}
	/* A thread of the library, whose innermost function tells more. */
	for (size_t i = 0; i < called; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind != SS_FRAME_NATIVE && frame->symbol)
			called = i;
	}
	*ret_program = called;
	return called;
}

size_t ss_text_find_wait(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t *ret_program)
{
	const struct ss_wait *wait = thread->wait;
	const bool called = wait && wait->kind != SS_WAIT_STOPPED &&
			    wait->kind != SS_WAIT_PTRACE &&
			    wait->kind != SS_WAIT_PAGE_FAULT;

	return called ? ss_text_find_call(snapshot, thread, ret_program) :
			thread->frame_count;
}

/* file is NULL if unknown. */
static void write_function(const char *words, const struct ss_frame *frame,
			   const char *file, uint32_t line,
			   const struct ss_format_options *options, FILE *out)
{
	(void)fputs_unlocked(words, out);
	ss_escape_write_owned(ss_label_new(frame, options->raw), NULL, out);
	if (line && !options->raw)
		ss_text_write_source(file, line, options->verbose, out);
	(void)fputc_unlocked('\n', out);
}

/* Writes what the program called, and functions of the program from there on, all in its
   own language. */
static void write_calls(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			size_t first, size_t program,
			const struct ss_format_options *options, FILE *out)
{
	size_t shown = 0;

	if (first < program) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, first);
		write_function("    in ", frame, frame->file, frame->line, options, out);
	}
	for (size_t i = program; i < thread->frame_count && shown < USER_FRAMES; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind == SS_FRAME_NATIVE || !frame->symbol)
			continue;
		write_function(i == first ? "    in " : "    called from ", frame,
			       frame->file, frame->line, options, out);
		shown++;
	}
}

void ss_text_write_where(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 const struct ss_format_options *options, FILE *out)
{
	size_t program = 0;
	size_t first = ss_text_find_call(snapshot, thread, &program);

	if (first < thread->frame_count) {
		write_calls(snapshot, thread, first, program, options, out);
		return;
	}
	first = first_user_frame(snapshot, thread);
	for (size_t i = first; i < thread->frame_count && i < first + USER_FRAMES; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		write_function(i == first ? "    in " : "    called from ", frame,
			       frame->file, frame->line, options, out);
	}
}

/* Writes the lock that the thread owns and its predecessor in the cycle waits for, and the
   frames that refer to the lock. */
static void write_owned_lock(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread, const struct ss_wait *wait,
			     const struct ss_format_options *options, FILE *out)
{
	if (!ss_wait_text_write_lock(wait, "    holds ", out))
		return;
	(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < wait->owner_frame_count; i++) {
		const struct ss_owner_frame *owner = &wait->owner_frames[i];
		const struct ss_frame *frame =
			ss_snapshot_frame(snapshot, thread, owner->frame);
		write_function(i == 0 ? "    referred to by " : "    and by ", frame,
			       owner->file ? owner->file : frame->file,
			       owner->file ? owner->line : frame->line, options, out);
	}
}

static void write_member(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 const struct ss_task *before,
			 const struct ss_format_options *options, FILE *out)
{
	(void)fputs_unlocked("  ", out);
	ss_text_write_thread(thread->tid, thread->name, options, out);
	(void)fputs_unlocked(" waits for ", out);
	ss_wait_text_write(thread->wait, options->color, out);
	(void)fputc_unlocked('\n', out);
	ss_text_write_where(snapshot, thread, options, out);
	write_owned_lock(snapshot, thread, before->wait, options, out);
}

static const struct ss_task *member(const struct ss_snapshot *snapshot,
				    const struct ss_deadlock *deadlock, size_t index)
{
	return ss_snapshot_task(snapshot, SS_TASK_THREAD,
				deadlock->threads[index % deadlock->count]);
}

/* Only the thread that took such a lock unlocks it. */
static bool is_of_libc(const struct ss_snapshot *snapshot,
		       const struct ss_deadlock *deadlock)
{
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, deadlock->threads[0]);

	return thread->wait->lock == SS_LOCK_LIBC;
}

/* What a cycle is called. A normal mutex may be unlocked by a thread that does not hold it,
   if there is another one (POSIX leaves it undefined; glibc does not check). */
static void write_heading(const struct ss_snapshot *snapshot,
			  const struct ss_deadlock *deadlock, bool lasting,
			  const struct ss_format_options *options, FILE *out)
{
	bool alone = deadlock->count == 1;
	const char *word = "DEADLOCK";

	if (deadlock->timed)
		word = "Contention with a time limit";
	else if (alone && ss_snapshot_task_count(snapshot, SS_TASK_THREAD) > 1 &&
		 !is_of_libc(snapshot, deadlock))
		word = "Would be a self-deadlock unless another thread unlocks it";
	else if (!lasting)
		word = "Contention";
	ss_style_write(lasting && !deadlock->timed ? SS_STYLE_WARN : SS_STYLE_STRONG,
		       options->color, out);
	if (alone)
		(void)fprintf(out, "%s: a thread waits for a lock that it holds", word);
	else
		(void)fprintf(out, "%s: %zu threads wait for each other in a cycle", word,
			      deadlock->count);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

static void write_deadlock(const struct ss_snapshot *snapshot,
			   const struct ss_deadlock *deadlock, bool lasting,
			   const struct ss_format_options *options, FILE *out)
{
	size_t shown = options->verbose ? deadlock->count :
					  SS_MIN(deadlock->count, (size_t)MEMBERS_MAX);

	(void)fputc_unlocked('\n', out);
	write_heading(snapshot, deadlock, lasting, options, out);
	if (deadlock->behind)
		(void)fprintf(out, "; %zu more wait%s for them", deadlock->behind,
			      deadlock->behind == 1 ? "s" : "");
	(void)fputs_unlocked(":\n", out);
	for (size_t i = 0; i < shown; i++)
		write_member(snapshot, member(snapshot, deadlock, i),
			     member(snapshot, deadlock, i + deadlock->count - 1), options,
			     out);
	if (shown < deadlock->count)
		(void)fprintf(out, "  ... and %zu more threads (-v lists them)\n",
			      deadlock->count - shown);
}

static void write_cycle(const struct ss_cycle *cycle,
			const struct ss_format_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_WARN, options->color, out,
		       "DEADLOCK: %zu threads of several processes wait for each "
		       "other in a cycle",
		       cycle->count);
	(void)fputs_unlocked(":\n", out);
	for (size_t i = 0; i < SS_MIN(cycle->count, (size_t)MEMBERS_MAX); i++)
		write_member(cycle->members[i].snapshot, cycle->members[i].thread,
			     cycle->members[(i + cycle->count - 1) % cycle->count].thread,
			     options, out);
}

static void write_blocker(const struct ss_snapshot *snapshot,
			  const struct ss_blocker *blocker,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, blocker->thread);

	(void)fprintf(out, "%zu thread%s, through %zu lock%s, for thread ",
		      blocker->waiting, blocker->waiting == 1 ? " waits" : "s wait",
		      blocker->locks, blocker->locks == 1 ? "" : "s");
	ss_text_write_thread(thread->tid, thread->name, options, out);
	if (thread->wait) {
		(void)fputs_unlocked(", which waits for ", out);
		ss_wait_text_write(thread->wait, false, out);
		ss_wait_text_write_chain(thread->wait, "; ", out);
	} else {
		(void)fputs_unlocked(thread->state == 'R' ? ", which runs" : "", out);
	}
	(void)fputc_unlocked('\n', out);
	ss_text_write_where(snapshot, thread, options, out);
}

static void write_more(size_t count, const char *what, FILE *out)
{
	if (count)
		(void)fprintf(out, "... and %zu more %s%s (-v lists them)\n", count, what,
			      count == 1 ? "" : "s");
}

void ss_text_write_deadlocks(const struct ss_snapshot *snapshot, bool lasting,
			     const struct ss_format_options *options, FILE *out)
{
	size_t deadlocks = ss_snapshot_deadlock_count(snapshot);
	size_t blockers = ss_snapshot_blocker_count(snapshot);
	size_t most = options->verbose ? SIZE_MAX : DEADLOCKS_MAX;

	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++)
		write_cycle(ss_snapshot_cycle(snapshot, i), options, out);
	for (size_t i = 0; i < SS_MIN(deadlocks, most); i++)
		write_deadlock(snapshot, ss_snapshot_deadlock(snapshot, i), lasting,
			       options, out);
	if (deadlocks > most)
		write_more(deadlocks - most, "deadlock", out);
	most = options->verbose ? SIZE_MAX : BLOCKERS_MAX;
	if (blockers)
		(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < SS_MIN(blockers, most); i++)
		write_blocker(snapshot, ss_snapshot_blocker(snapshot, i), options, out);
	if (blockers > most)
		write_more(blockers - most, "such thread", out);
	ss_text_write_application_locks(snapshot, options, out);
}
