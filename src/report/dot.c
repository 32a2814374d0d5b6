/*
 * The wait-for graph for Graphviz: threads that wait for other threads, and the owners they
 * wait for; locks of the application, and which threads may hold them. Cycles are red; a thread
 * at the end of wait chains is bold.
 */
#include <stdint.h>

#include "base/text_stream.h"
#include "data/snapshot.h"
#include "report/format.h"
#include "report/print.h"
#include "report/wait_text.h"

enum { SUSPECTS_MAX = 4 }; /* that are shown one by one */

#define PROBABLY "style=dashed, label=\"probably held by\""

enum { STYLE_NONE = 0, STYLE_DEADLOCK = 1, STYLE_BLOCKER = 2, STYLE_SHOWN = 4 };

/* In a Graphviz string a quote ends it, and a backslash begins an escape. */
static void write_text(const char *text, FILE *out)
{
	static const struct ss_substitution substitution = { .from = "\"", .to = "'" };
	struct ss_text_stream memory;

	if (!text || !ss_text_stream_open(&memory))
		return;
	ss_escape_write(text, &substitution, memory.out);
	_cleanup_free_ char *escaped = ss_text_stream_close(&memory);
	for (const char *c = escaped; c && *c; c++) {
		if (*c == '\\')
			(void)fputc_unlocked('\\', out);
		(void)fputc_unlocked(*c, out);
	}
}

static void write_wait(const struct ss_wait *wait, FILE *out)
{
	_cleanup_free_ char *text = ss_wait_text_new(wait);

	write_text(text, out);
}

/* The thread of the same process that a thread waits for, or NULL. */
static const struct ss_task *find_owner(const struct ss_snapshot *snapshot,
					const struct ss_task *thread)
{
	const struct ss_wait *wait = thread->wait;

	return wait && wait->owner_tid && !wait->owner_pid ?
		       ss_snapshot_find_thread(snapshot, wait->owner_tid) :
		       NULL;
}

static size_t index_of(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	return (size_t)(thread - ss_snapshot_task(snapshot, SS_TASK_THREAD, 0));
}

/* Those that were selected, and those that they lead to. */
static size_t count_threads(const struct ss_snapshot *snapshot)
{
	return ss_snapshot_task_count(snapshot, SS_TASK_THREAD) + snapshot->not_shown;
}

static void mark(const struct ss_snapshot *snapshot, uint8_t *styles)
{
	for (size_t i = 0; i < count_threads(snapshot); i++) {
		const struct ss_task *owner = find_owner(
			snapshot, ss_snapshot_task(snapshot, SS_TASK_THREAD, i));
		if (!owner)
			continue;
		styles[i] |= STYLE_SHOWN;
		styles[index_of(snapshot, owner)] |= STYLE_SHOWN;
	}
	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++) {
		const struct ss_deadlock *deadlock = ss_snapshot_deadlock(snapshot, i);
		for (size_t j = 0; j < deadlock->count; j++)
			styles[deadlock->threads[j]] |= STYLE_DEADLOCK;
	}
	for (size_t i = 0; i < ss_snapshot_blocker_count(snapshot); i++)
		styles[ss_snapshot_blocker(snapshot, i)->thread] |= STYLE_BLOCKER;
}

static void write_node(const struct ss_task *thread, uint8_t style, FILE *out)
{
	(void)fprintf(out, "\tt%d [label=\"%d\\n", thread->tid, thread->tid);
	write_text(thread->name, out);
	if (style & STYLE_BLOCKER) {
		(void)fputs_unlocked("\\n", out);
		if (thread->wait)
			write_wait(thread->wait, out);
		else
			(void)fputs_unlocked(thread->state == 'R' ? "runs" : "", out);
		if (thread->wait && thread->wait->chain_length) {
			_cleanup_free_ char *chain = ss_wait_text_new_chain(thread->wait);
			(void)fputs_unlocked("\\n", out);
			write_text(chain, out);
		}
	}
	(void)fputc_unlocked('"', out);
	if (style & STYLE_DEADLOCK)
		(void)fputs_unlocked(", color=red, fontcolor=red", out);
	if (style & STYLE_BLOCKER)
		(void)fputs_unlocked(", style=bold", out);
	(void)fputs_unlocked("];\n", out);
}

static void write_edge(const struct ss_task *thread, const struct ss_task *owner,
		       bool deadlock, FILE *out)
{
	_cleanup_free_ char *lock = ss_wait_text_new_lock(thread->wait);

	(void)fprintf(out, "\tt%d -> t%d [label=\"", thread->tid, owner->tid);
	write_text(lock ? lock : ss_wait_kind_name(thread->wait->kind), out);
	(void)fputs_unlocked("\", tooltip=\"", out);
	write_wait(thread->wait, out);
	(void)fputs_unlocked(deadlock ? "\", color=red];\n" : "\"];\n", out);
}

static void write_edges(const struct ss_snapshot *snapshot, const uint8_t *styles,
			FILE *out)
{
	for (size_t i = 0; i < count_threads(snapshot); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		const struct ss_task *owner = find_owner(snapshot, thread);
		if (owner)
			write_edge(thread, owner,
				   styles[i] & styles[index_of(snapshot, owner)] &
					   STYLE_DEADLOCK,
				   out);
	}
}

/* Writes cycles through several processes, which the other edges do not show. */
static void write_cycle(const struct ss_snapshot *snapshot, const struct ss_cycle *cycle,
			const uint8_t *styles, FILE *out)
{
	for (size_t i = 0; i < cycle->count; i++) {
		const struct ss_thread_ref *from = &cycle->members[i];
		const struct ss_thread_ref *to = &cycle->members[(i + 1) % cycle->count];
		bool own = from->snapshot == snapshot;
		if (!own || !(styles[index_of(snapshot, from->thread)] & STYLE_SHOWN))
			write_node(from->thread, STYLE_DEADLOCK, out);
		if (!own || to->snapshot != snapshot)
			write_edge(from->thread, to->thread, true, out);
	}
}

/* "31 threads" -> the lock -> the threads that may hold it; many are one box. */
static void write_application_lock(const struct ss_snapshot *snapshot, size_t number,
				   const uint8_t *styles, FILE *out)
{
	const struct ss_application_lock *lock =
		ss_snapshot_application_lock(snapshot, number);

	(void)fprintf(out, "\tlock%zu [shape=ellipse, label=\"", number);
	write_text(lock->function, out);
	if (lock->words) {
		(void)fputs_unlocked("\\n", out);
		write_text(lock->words, out);
	}
	(void)fprintf(out,
		      "\"];\n\twaiters%zu [label=\"%zu thread%s\"];\n"
		      "\twaiters%zu -> lock%zu;\n",
		      number, lock->waiting, lock->waiting == 1 ? "" : "s", number,
		      number);
	if (lock->suspects_total > SUSPECTS_MAX) {
		(void)fprintf(out, "\tsuspects%zu [label=\"one of %zu threads in ",
			      number, lock->suspects_total);
		write_text(lock->common_function, out);
		(void)fprintf(out, "\"];\n\tlock%zu -> suspects%zu [" PROBABLY "];\n",
			      number, number);
		return;
	}
	for (size_t i = 0; i < lock->suspect_count; i++) {
		size_t index = lock->suspects[i];
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, index);
		if (!(styles[index] & STYLE_SHOWN))
			write_node(thread, STYLE_BLOCKER, out);
		(void)fprintf(out, "\tlock%zu -> t%d [" PROBABLY "];\n", number,
			      thread->tid);
	}
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t count = count_threads(snapshot);
	_cleanup_free_ uint8_t *styles = calloc(count + 1, sizeof(*styles));

	(void)options;
	if (!styles)
		return ss_error_no_memory();
	mark(snapshot, styles);
	(void)fputs_unlocked("digraph stacksnap {\n\tlabel=\"", out);
	write_text(process->name, out);
	(void)fprintf(out, ", pid %d\";\n\tnode [shape=box];\n", process->pid);
	for (size_t i = 0; i < count; i++) {
		if (styles[i] & STYLE_SHOWN)
			write_node(ss_snapshot_task(snapshot, SS_TASK_THREAD, i),
				   styles[i], out);
	}
	write_edges(snapshot, styles, out);
	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++)
		write_cycle(snapshot, ss_snapshot_cycle(snapshot, i), styles, out);
	for (size_t i = 0; i < ss_snapshot_application_lock_count(snapshot); i++)
		write_application_lock(snapshot, i, styles, out);
	(void)fputs_unlocked("}\n", out);
	return NULL;
}

const struct ss_format ss_format_dot = {
	.name = "dot",
	.description = "wait-for graph for Graphviz",
	.write_snapshot = write_snapshot,
};
