/*
 * One line for each different stack, outermost frame first, with the number of
 * threads that have it: what flame graph scripts read. A stack that is not whole
 * begins with its end in brackets. In names ';' becomes ':'; in those of the process
 * and its threads white space becomes '_'.
 */
#include <stdlib.h>
#include <string.h>

#include "view/label.h"
#include "view/render.h"

static const struct ss_substitution in_names = { ";: \t\r\n", "::____" };
static const struct ss_substitution in_frames = { ";", ":" };

struct line {
	const struct ss_thread *thread; /* one that has it */
	size_t count;
	char *text; /* owned */
};

static int compare_threads(const void *a, const void *b)
{
	const struct ss_thread *t = ((const struct line *)a)->thread;
	const struct ss_thread *u = ((const struct line *)b)->thread;

	if (t->stack_id != u->stack_id)
		return t->stack_id < u->stack_id ? -1 : 1;
	if (t->end != u->end)
		return t->end < u->end ? -1 : 1;
	return strcmp(t->name, u->name);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Sorts lines and joins neighbours that compare equal; the new count. */
static size_t merge(struct line *lines, size_t count,
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

static void write_stack(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread,
			const struct ss_render_options *options, FILE *out)
{
	ss_escape_write(ss_snapshot_process(snapshot)->name, &in_names, out);
	(void)fputc_unlocked(';', out);
	ss_escape_write(thread->name, &in_names, out);
	if (thread->end != SS_END_ROOT)
		(void)fprintf(out, ";[%s]", ss_end_name(thread->end));
	for (size_t i = thread->frame_count; i-- > 0;) {
		(void)fputc_unlocked(';', out);
		ss_label_write(ss_snapshot_frame(snapshot, thread, i), options->raw,
			       &in_frames, out);
	}
}

static char *stack_text(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread,
			const struct ss_render_options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return NULL;
	write_stack(snapshot, thread, options, memory);
	if (fclose(memory) == 0)
		return text;
	free(text);
	return NULL;
}

static struct ss_error *write_lines(struct line *lines, size_t *count,
				    const struct ss_snapshot *snapshot,
				    const struct ss_render_options *options, FILE *out)
{
	*count = merge(lines, *count, compare_threads);
	for (size_t i = 0; i < *count; i++) {
		lines[i].text = stack_text(snapshot, lines[i].thread, options);
		if (!lines[i].text)
			return ss_error_no_memory();
	}
	*count = merge(lines, *count, compare_texts);
	for (size_t i = 0; i < *count; i++)
		(void)fprintf(out, "%s %zu\n", lines[i].text, lines[i].count);
	return NULL;
}

static struct ss_error *render_folded(const struct ss_snapshot *snapshot,
				      const struct ss_render_options *options, FILE *out)
{
	size_t count = ss_snapshot_thread_count(snapshot);
	_cleanup_free_ struct line *lines = calloc(count + 1, sizeof(*lines));

	if (!lines)
		return ss_error_no_memory();
	for (size_t i = 0; i < count; i++) {
		lines[i].thread = ss_snapshot_thread(snapshot, i);
		lines[i].count = 1;
	}
	struct ss_error *error = write_lines(lines, &count, snapshot, options, out);
	for (size_t i = 0; i < count; i++)
		free(lines[i].text);
	return error;
}

const struct ss_renderer ss_renderer_folded = {
	.name = "folded",
	.summary = "process;thread;outermost;...;innermost COUNT, for flame graphs",
	.render = render_folded,
};
