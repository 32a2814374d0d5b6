/*
 * A hang report for people: the verdict, deadlocks and blockers, then the threads by what
 * they did, those that need attention first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"
#include "report/text.h"
#include "data/snapshot.h"
#include "diagnose/progress.h"

enum {
	THREADS_MAX = 10, /* of each class, without -v */
	EVENTS_MAX = 4,	  /* functions */
};

struct hang_report {
	const struct ss_snapshot *snapshot;
	const struct ss_progress *progress;
	const struct ss_format_options *options;
	const struct ss_grouping *grouping;
	const size_t *groups; /* by thread: its group, of those with equal stacks */
	struct ss_languages languages;
	FILE *out;
};

enum class {
	STUCK,
	BLOCKED,
	BUSY,
	WAITS,
	MOVES,
	WOKEN,
	UNKNOWN,
	IDLE,
	RUNTIME,
	CLASS_COUNT
};

static const char *const class_names[] = {
	[STUCK] = "stuck: no progress, blocked on a wait that is not idle",
	[BLOCKED] = "blocked: no progress, waiting for a lock of the application",
	[BUSY] = "busy",
	[WAITS] = "waiting: did not run",
	[MOVES] = "moving",
	[WOKEN] = "woken: found in the same wait again",
	[UNKNOWN] = "unknown: the kernel has no counters",
	[IDLE] = "idle: did not run",
	[RUNTIME] = "of the runtime",
};

/* Where nothing is stuck, such threads may be what holds up the program. */
static bool is_held_up(const struct hang_report *report, size_t index)
{
	return report->progress->verdict < SS_VERDICT_STUCK &&
	       ss_group_is_held_up(&report->grouping->groups[report->groups[index]],
				   report->languages.kinds);
}

static enum class class_of(const struct hang_report *report, size_t index)
{
	const struct ss_thread_progress *thread =
		ss_progress_thread(report->progress, index);
	static const enum class classes[] = {
		[SS_MOVEMENT_UNKNOWN] = UNKNOWN, [SS_MOVEMENT_NONE] = IDLE,
		[SS_MOVEMENT_WOKEN] = WOKEN,	 [SS_MOVEMENT_BUSY] = BUSY,
		[SS_MOVEMENT_MOVES] = MOVES,
	};

	if (thread->stuck)
		return STUCK;
	if (thread->blocked)
		return BLOCKED;
	if (thread->movement != SS_MOVEMENT_BUSY &&
	    ss_task_is_of_runtime(report->snapshot,
				  ss_snapshot_task(report->snapshot, SS_TASK_THREAD, index),
				  &report->languages))
		return RUNTIME;
	if (thread->movement == SS_MOVEMENT_NONE && is_held_up(report, index))
		return WAITS;
	return classes[thread->movement];
}

static void write_share(const struct hang_report *report, uint64_t run_ns)
{
	uint64_t elapsed_ns = report->progress->elapsed_ns;

	if (elapsed_ns)
		(void)fprintf(report->out, " (%" PRIu64 " %%)",
			      run_ns * 100 / elapsed_ns);
}

static void write_one_activity(const struct hang_report *report,
			       const struct ss_thread_progress *thread)
{
	FILE *out = report->out;

	if (thread->movement == SS_MOVEMENT_NONE)
		return;
	(void)fprintf(out, ": ran %s", ss_quantity_time(thread->run_ns).text);
	write_share(report, thread->run_ns);
	if (thread->ready_ns > thread->run_ns)
		(void)fprintf(out, ", was runnable for %s",
			      ss_quantity_time(thread->ready_ns).text);
	(void)fprintf(out, ", %" PRIu64 " voluntary and %" PRIu64 " forced switches",
		      thread->voluntary, thread->forced);
	const struct ss_wait *wait =
		ss_snapshot_task(report->snapshot, SS_TASK_THREAD, thread->thread)->wait;
	if (thread->stuck && thread->movement == SS_MOVEMENT_WOKEN && wait && wait->timed)
		(void)fputs_unlocked(", waits again after each time limit", out);
	if (thread->movement == SS_MOVEMENT_BUSY && thread->within &&
	    thread->samples > 1) {
		(void)fprintf(out, ", within ");
		ss_escape_write(thread->within, NULL, out);
		(void)fprintf(out, " in all %u samples", thread->samples);
	}
}

static void write_activity(const void *data, const struct ss_bundle *row)
{
	const struct hang_report *report = data;
	uint64_t run_ns = 0;
	uint64_t switches = 0;

	if (row->count == 1) {
		write_one_activity(report,
				   ss_progress_thread(report->progress, *row->items));
		return;
	}
	for (size_t i = 0; i < row->count; i++) {
		const struct ss_thread_progress *thread =
			ss_progress_thread(report->progress, row->items[i]);
		run_ns += thread->run_ns;
		switches += thread->voluntary + thread->forced;
	}
	if (switches)
		(void)fprintf(report->out, ", ran %s in total, %s",
			      ss_quantity_time(run_ns).text,
			      ss_quantity_things(switches, "context switch").text);
}

static void write_place(const void *data, size_t index)
{
	const struct hang_report *report = data;
	const struct ss_task *thread =
		ss_snapshot_task(report->snapshot, SS_TASK_THREAD, index);
	const struct ss_thread_progress *progress =
		ss_progress_thread(report->progress, index);
	size_t program = 0;

	if (progress->movement == SS_MOVEMENT_BUSY && progress->seen)
		ss_text_write_where(progress->seen_in, progress->seen, report->options,
				    report->out);
	else if (progress->stuck || progress->blocked ||
		 progress->movement == SS_MOVEMENT_BUSY ||
		 progress->movement == SS_MOVEMENT_NONE ||
		 ss_text_find_call(report->snapshot, thread, &program) <
			 thread->frame_count)
		ss_text_write_where(report->snapshot, thread, report->options,
				    report->out);
}

/* Threads that do not go on, with equal stacks, are one. */
static struct ss_bundle_key key_of(const struct hang_report *report, enum class class,
				   size_t index)
{
	const struct ss_snapshot *snapshot = report->snapshot;
	bool goes_on = class == BUSY || class == MOVES;

	return (struct ss_bundle_key){
		.stack = goes_on ? ss_snapshot_task_count(snapshot, SS_TASK_THREAD) +
					   index :
				   report->groups[index],
		.lock = ss_bundle_lock(
			ss_snapshot_task(snapshot, SS_TASK_THREAD, index)->wait),
	};
}

/* A function that waits for a lock as well as for work; where a runtime executes the
   program, the function that the program called, and where it did. */
struct event {
	const char *function;
	bool of_library;
	const char *file; /* or NULL */
	uint32_t line;
	size_t threads;
};

static struct event event_of(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread)
{
	size_t program = 0;
	size_t called = ss_text_find_call(snapshot, thread, &program);
	struct event event = { .function = thread->wait->purpose_function };

	if (called < thread->frame_count) {
		const struct ss_frame *caller =
			ss_snapshot_frame(snapshot, thread, program);
		event.function = ss_snapshot_frame(snapshot, thread, called)->symbol;
		event.of_library = called != program;
		event.file = caller->file;
		event.line = caller->line;
	}
	return event;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void count_event(struct event events[EVENTS_MAX],
			const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	const struct ss_wait *wait = thread->wait;

	/* The description is part of the wait. */
	if (!wait || wait->purpose != SS_PURPOSE_EVENT || wait->purpose_words)
		return;
	const struct event event = event_of(snapshot, thread);
	for (size_t i = 0; i < EVENTS_MAX; i++) {
		if (events[i].threads == 0)
			events[i] = event;
		else if (events[i].line != event.line ||
			 !is_same_text(events[i].function, event.function) ||
			 !is_same_text(events[i].file, event.file))
			continue;
		events[i].threads++;
		return;
	}
}

/* "idle" may not be true for those whose function does not tell what they wait for. */
static void write_events(const struct hang_report *report)
{
	struct event events[EVENTS_MAX] = {};

	for (size_t i = 0; report->languages.kinds &&
			   i < ss_snapshot_task_count(report->snapshot, SS_TASK_THREAD);
	     i++) {
		if (class_of(report, i) == IDLE)
			count_event(
				events, report->snapshot,
				ss_snapshot_task(report->snapshot, SS_TASK_THREAD, i));
	}
	for (size_t i = 0; i < EVENTS_MAX && events[i].threads; i++) {
		(void)fprintf(report->out, "  %zu of them wait%s in ", events[i].threads,
			      events[i].threads == 1 ? "s" : "");
		ss_text_write_call(events[i].function, events[i].of_library,
				   events[i].file, events[i].line,
				   report->options->verbose, report->out);
		(void)fputs_unlocked(": a lock, a condition or work\n", report->out);
	}
}

static void write_title(const void *data, unsigned class, size_t count, bool folded)
{
	const struct hang_report *report = data;

	(void)fprintf(report->out, "\n%zu thread%s ", count, count == 1 ? "" : "s");
	ss_style_print(class <= BLOCKED ? SS_STYLE_WARN : SS_STYLE_STRONG,
		       report->options->color, report->out, "%s", class_names[class]);
	(void)fputs_unlocked(folded ? "; -a lists them\n" : "\n", report->out);
	if (class == IDLE)
		write_events(report);
}

static struct ss_error *write_classes(const struct hang_report *report)
{
	const size_t count = ss_snapshot_task_count(report->snapshot, SS_TASK_THREAD);
	_cleanup_free_ struct ss_text_item *items = calloc(count + 1, sizeof(*items));
	const struct ss_text_list list = { .items = items,
					   .count = count,
					   .write_title = write_title,
					   .write_activity = write_activity,
					   .write_place = write_place,
					   .data = report,
					   .most = THREADS_MAX,
					   .options = report->options,
					   .out = report->out };
	struct ss_error *error = items ? NULL : ss_error_no_memory();

	for (size_t i = 0; items && i < count; i++) {
		const struct ss_task *thread =
			ss_snapshot_task(report->snapshot, SS_TASK_THREAD, i);
		enum class class = class_of(report, i);
		items[i] = (struct ss_text_item){ .part = class,
						  .key = key_of(report, class, i),
						  .task = thread,
						  .wait = thread->wait };
	}
	/* Threads that did nothing are listed if all did nothing. */
	for (enum class class = 0; class < CLASS_COUNT && !error; class ++)
		error = ss_text_write_part(&list, class,
					   class == RUNTIME ? SIZE_MAX :
					   class == IDLE    ? count :
							      0);
	return error;
}

static void write_sums(const struct hang_report *report)
{
	size_t count = ss_snapshot_task_count(report->snapshot, SS_TASK_THREAD);
	uint64_t run_ns = 0;
	uint64_t switches = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ss_thread_progress *thread =
			ss_progress_thread(report->progress, i);
		run_ns += thread->run_ns;
		switches += thread->voluntary + thread->forced;
	}
	(void)fprintf(report->out, "observed for %s, %zu thread%s, CPU time %s",
		      ss_quantity_time(report->progress->elapsed_ns).text, count,
		      count == 1 ? "" : "s", ss_quantity_time(run_ns).text);
	write_share(report, run_ns);
	(void)fprintf(report->out, ", %s\n",
		      ss_quantity_things(switches, "context switch").text);
}

/* Whether a thread waits for another process. */
static bool waits_for_others(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_wait *wait =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->wait;
		if (wait && wait->closed && !wait->within_process)
			return true;
	}
	return false;
}

static void write_verdict(const struct hang_report *report)
{
	const struct ss_process *process = ss_snapshot_process(report->snapshot);
	enum ss_verdict verdict = report->progress->verdict;

	ss_escape_write(process->name, NULL, report->out);
	(void)fprintf(report->out, ", pid %d: ", process->pid);
	ss_style_print(verdict >= SS_VERDICT_BLOCKED ? SS_STYLE_WARN : SS_STYLE_STRONG,
		       report->options->color, report->out, "%s",
		       ss_verdict_name(verdict));
	if (report->progress->closed)
		(void)fprintf(report->out, ": every thread waits for another one%s",
			      waits_for_others(report->snapshot) ?
				      ", or for a process that waits for it" :
				      " of the process");
	(void)fputc_unlocked('\n', report->out);
}

static struct ss_error *write_idle(const struct ss_snapshot *snapshot,
				   const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshots one = { .items = &snapshot,
					  .count = 1,
					  .kind = SS_SNAPSHOTS_ONE };
	_cleanup_(ss_merged_cleanup) struct ss_merged *threads =
		ss_merged_new(&one, SS_TASK_THREAD, true);

	return threads ? ss_text_write_tasks(&one, threads, true, options, out) :
			 ss_error_no_memory();
}

struct ss_error *ss_text_write_hang(const struct ss_snapshot *snapshot,
				    const struct ss_progress *progress,
				    const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, true);
	_cleanup_free_ size_t *groups =
		grouping ? ss_grouping_numbers(grouping, snapshot) : NULL;
	const struct hang_report report = {
		.snapshot = snapshot,
		.progress = progress,
		.options = options,
		.grouping = grouping,
		.groups = groups,
		.languages = ss_snapshot_languages(snapshot),
		.out = out,
	};

	if (!groups)
		return ss_error_no_memory();
	write_verdict(&report);
	write_sums(&report);
	ss_text_write_frozen(ss_snapshot_process(snapshot), options->color, out);
	ss_text_write_deadlocks(snapshot, progress, options, out);
	ss_text_write_task_cycles(snapshot, options, out);
	/* What an idle process waits for is all that can be told of it. */
	const enum ss_verdict verdict = progress->verdict;
	const bool idle = verdict == SS_VERDICT_IDLE;
	struct ss_error *error =
		idle ? write_idle(snapshot, options, out) :
		       ss_text_write_kind(snapshot, SS_TASK_GOROUTINE, options, out);
	/* What tasks of asyncio wait for tells more than what the thread of their event loop does. */
	if (!error && !idle && verdict < SS_VERDICT_STUCK)
		error = ss_text_write_kind(snapshot, SS_TASK_ASYNCIO, options, out);
	if (!error && !idle)
		error = write_classes(&report);
	if (!error && verdict >= SS_VERDICT_STUCK)
		error = ss_text_write_kind(snapshot, SS_TASK_ASYNCIO, options, out);
	if (!error)
		ss_text_write_advice(options, out);
	return error;
}
