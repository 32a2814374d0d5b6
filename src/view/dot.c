/*
 * The wait-for graph for Graphviz: threads that wait for other threads, and those for
 * which they wait. A circle is red, a thread at the end of chains bold.
 */
#include <stdint.h>

#include "view/escape.h"
#include "view/render.h"

enum { STYLE_NONE = 0, STYLE_DEADLOCK = 1, STYLE_BLOCKER = 2, STYLE_SHOWN = 4 };

/* A quote would end a string of Graphviz, a backslash begins an escape of its own. */
static void write_text(const char *text, FILE *out)
{
	static const struct ss_substitution substitution = { .from = "\"", .to = "'" };
	char *escaped = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&escaped, &size);

	if (!memory)
		return;
	ss_escape_write(text, &substitution, memory);
	if (fclose(memory) == 0) {
		for (const char *c = escaped; *c; c++) {
			if (*c == '\\')
				(void)fputc_unlocked('\\', out);
			(void)fputc_unlocked(*c, out);
		}
	}
	free(escaped);
}

static size_t find_owner(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread)
{
	size_t low = 0;
	size_t high = ss_snapshot_thread_count(snapshot);

	if (!thread->wait || !thread->wait->owner_tid || thread->wait->owner_pid)
		return SIZE_MAX;
	while (low < high) { /* they are sorted */
		size_t middle = low + (high - low) / 2;
		if (ss_snapshot_thread(snapshot, middle)->tid < thread->wait->owner_tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ss_snapshot_thread_count(snapshot) &&
			       ss_snapshot_thread(snapshot, low)->tid ==
				       thread->wait->owner_tid ?
		       low :
		       SIZE_MAX;
}

static size_t index_of(const struct ss_snapshot *snapshot, const struct ss_thread *thread)
{
	return (size_t)(thread - ss_snapshot_thread(snapshot, 0));
}

static void mark(const struct ss_snapshot *snapshot, uint8_t *styles)
{
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		size_t owner = find_owner(snapshot, ss_snapshot_thread(snapshot, i));
		if (owner == SIZE_MAX)
			continue;
		styles[i] |= STYLE_SHOWN;
		styles[owner] |= STYLE_SHOWN;
	}
	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++) {
		const struct ss_deadlock *deadlock = ss_snapshot_deadlock(snapshot, i);
		for (size_t j = 0; j < deadlock->count; j++)
			styles[deadlock->threads[j]] |= STYLE_DEADLOCK;
	}
	for (size_t i = 0; i < ss_snapshot_blocker_count(snapshot); i++)
		styles[ss_snapshot_blocker(snapshot, i)->thread] |= STYLE_BLOCKER;
}

static void write_node(const struct ss_thread *thread, uint8_t style, FILE *out)
{
	(void)fprintf(out, "\tt%d [label=\"%d\\n", thread->tid, thread->tid);
	write_text(thread->name, out);
	if (style & STYLE_BLOCKER) {
		(void)fputs_unlocked("\\n", out);
		write_text(thread->wait		? thread->wait->text :
			   thread->state == 'R' ? "runs" :
						  "",
			   out);
		if (thread->wait && thread->wait->beyond) {
			(void)fputs_unlocked("\\n", out);
			write_text(thread->wait->beyond, out);
		}
	}
	(void)fputc_unlocked('"', out);
	if (style & STYLE_DEADLOCK)
		(void)fputs_unlocked(", color=red, fontcolor=red", out);
	if (style & STYLE_BLOCKER)
		(void)fputs_unlocked(", style=bold", out);
	(void)fputs_unlocked("];\n", out);
}

static void write_edge(const struct ss_thread *thread, const struct ss_thread *owner,
		       bool deadlock, FILE *out)
{
	(void)fprintf(out, "\tt%d -> t%d [label=\"%s", thread->tid, owner->tid,
		      ss_wait_kind_name(thread->wait->kind));
	if (thread->wait->address && thread->wait->kind != SS_WAIT_JOIN)
		(void)fprintf(out, "\\n0x%jx", (uintmax_t)thread->wait->address);
	(void)fputs_unlocked("\", tooltip=\"", out);
	write_text(thread->wait->text, out);
	(void)fputs_unlocked(deadlock ? "\", color=red];\n" : "\"];\n", out);
}

static void write_edges(const struct ss_snapshot *snapshot, const uint8_t *styles,
			FILE *out)
{
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		size_t owner = find_owner(snapshot, thread);
		if (owner == SIZE_MAX)
			continue;
		write_edge(thread, ss_snapshot_thread(snapshot, owner),
			   styles[i] & styles[owner] & STYLE_DEADLOCK, out);
	}
}

/* Circles through other processes: what the edges above have not. */
static void write_circle(const struct ss_snapshot *snapshot,
			 const struct ss_circle *circle, const uint8_t *styles, FILE *out)
{
	for (size_t i = 0; i < circle->count; i++) {
		const struct ss_circle_member *from = &circle->members[i];
		const struct ss_circle_member *to =
			&circle->members[(i + 1) % circle->count];
		bool own = from->snapshot == snapshot;
		if (!own || !(styles[index_of(snapshot, from->thread)] & STYLE_SHOWN))
			write_node(from->thread, STYLE_DEADLOCK, out);
		if (!own || to->snapshot != snapshot)
			write_edge(from->thread, to->thread, true, out);
	}
}

static struct ss_error *render_dot(const struct ss_snapshot *snapshot,
				   const struct ss_render_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t count = ss_snapshot_thread_count(snapshot);
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
			write_node(ss_snapshot_thread(snapshot, i), styles[i], out);
	}
	write_edges(snapshot, styles, out);
	for (size_t i = 0; i < ss_snapshot_circle_count(snapshot); i++)
		write_circle(snapshot, ss_snapshot_circle(snapshot, i), styles, out);
	(void)fputs_unlocked("}\n", out);
	return NULL;
}

const struct ss_renderer ss_renderer_dot = {
	.name = "dot",
	.summary = "who waits for whom, for Graphviz",
	.render = render_dot,
};
