/*
 * What the threads of a group wait for: one line for each distinct wait, with the number of
 * threads if it is more than one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"
#include "report/print.h"
#include "report/text.h"
#include "report/wait_text.h"

enum { LINES_MAX = 4 }; /* of one group, without -v */

void ss_wait_lines_deinit(struct ss_wait_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->items[i].text);
	ss_vector_free(lines);
}

bool ss_wait_lines_add(struct ss_wait_lines *lines, unsigned class,
		       const struct ss_wait *wait, const struct ss_task *thread)
{
	_cleanup_free_ char *text = ss_wait_text_new_merged(wait);
	struct ss_wait_line *line = text ? ss_vector_push(lines) : NULL;

	if (line)
		*line = (struct ss_wait_line){ class, *wait, take_ptr(text), thread, 1 };
	return line;
}

static int compare_waits(const struct ss_wait_line *x, const struct ss_wait_line *y)
{
	return SS_COMPARE(x->class, y->class)	?:
		       strcmp(x->text, y->text) ?:
		       strcmp(x->wait.syscall ? x->wait.syscall : "",
			      y->wait.syscall ? y->wait.syscall : "");
}

static int compare_lines(const void *a, const void *b)
{
	const struct ss_wait_line *x = a;
	const struct ss_wait_line *y = b;

	return compare_waits(x, y) ?: SS_COMPARE(x->thread, y->thread);
}

static int compare_counts(const void *a, const void *b)
{
	const struct ss_wait_line *x = a;
	const struct ss_wait_line *y = b;

	return SS_COMPARE(x->class, y->class)	      ?:
		       SS_COMPARE(y->count, x->count) ?:
							compare_waits(x, y);
}

static void omit_address(struct ss_wait *wait)
{
	wait->address = 0;
	wait->symbol = NULL;
}

void ss_wait_lines_merge(struct ss_wait_lines *lines)
{
	size_t merged = 0;

	if (lines->count > 1)
		qsort(lines->items, lines->count, sizeof(*lines->items), compare_lines);
	for (size_t i = 0; i < lines->count; i++) {
		struct ss_wait_line *item = &lines->items[i];
		struct ss_wait_line *same = merged ? &lines->items[merged - 1] : NULL;
		if (!same || compare_waits(same, item) != 0) {
			lines->items[merged++] = *item;
			continue;
		}
		if (same->wait.left_ns != item->wait.left_ns)
			same->wait.left_ns = -1;
		if (same->wait.address != item->wait.address)
			omit_address(&same->wait);
		same->count += item->count;
		free(item->text);
	}
	lines->count = merged;
	if (merged > 1)
		qsort(lines->items, merged, sizeof(*lines->items), compare_counts);
}

static void write_line(const struct ss_wait_line *line, size_t members,
		       const char *indent, const struct ss_format_options *options,
		       FILE *out)
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

static void write_rest(const struct ss_wait_line *items, size_t count, const char *indent,
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
	__attribute__((cleanup(ss_wait_lines_deinit))) struct ss_wait_lines list = {};

	for (size_t i = 0; i < count; i++) {
		if (waits[i] && !ss_wait_lines_add(&list, 0, waits[i], NULL))
			return ss_error_no_memory();
	}
	ss_wait_lines_merge(&list);
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
