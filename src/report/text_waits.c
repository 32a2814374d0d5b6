/*
 * What the threads of a group wait for: one line for each distinct wait, with the number of
 * threads if it is more than one.
 */
#include <stdlib.h>
#include <string.h>

#include "report/escape.h"
#include "report/quantity.h"
#include "report/style.h"
#include "report/text.h"
#include "report/wait_text.h"

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
