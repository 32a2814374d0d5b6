/*
 * What the threads of a snapshot wait for, one line for each wait.
 */
#include <stdlib.h>
#include <string.h>

#include "output/escape.h"
#include "output/group.h"
#include "output/quantity.h"
#include "output/top.h"
#include "output/wait_text.h"

/* Threads with the same wait. */
struct line {
	enum ss_group_class class;
	char *text; /* of the wait, owned */
	const struct ss_thread *thread;
	size_t count;
};

struct lines {
	struct line *items;
	size_t count;
};

static void lines_deinit(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->items[i].text);
	free(lines->items);
}

static int compare_texts(const void *a, const void *b)
{
	const struct line *x = a;
	const struct line *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	int order = strcmp(x->text, y->text);
	if (order)
		return order;
	return (x->thread->tid > y->thread->tid) - (x->thread->tid < y->thread->tid);
}

static int compare_counts(const void *a, const void *b)
{
	const struct line *x = a;
	const struct line *y = b;

	if (x->class == y->class && x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return compare_texts(a, b);
}

static void merge(struct lines *lines)
{
	size_t merged = 0;

	qsort(lines->items, lines->count, sizeof(*lines->items), compare_texts);
	for (size_t i = 0; i < lines->count; i++) {
		struct line *item = &lines->items[i];
		struct line *last = merged ? &lines->items[merged - 1] : NULL;
		if (last && last->class == item->class &&
		    strcmp(last->text, item->text) == 0) {
			last->count += item->count;
			free(item->text);
		} else {
			lines->items[merged++] = *item;
		}
	}
	lines->count = merged;
	qsort(lines->items, lines->count, sizeof(*lines->items), compare_counts);
}

static struct ss_error *collect(const struct ss_snapshot *snapshot, bool all,
				struct lines *ret)
{
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, false);

	ret->items = calloc(ss_snapshot_thread_count(snapshot) + 1, sizeof(*ret->items));
	if (!grouping || !ret->items)
		return ss_error_no_memory();
	for (size_t i = 0; i < grouping->count; i++) {
		const struct ss_group *group = &grouping->groups[i];
		const struct ss_thread *thread =
			ss_snapshot_thread(snapshot, group->members[0]);
		if (!thread->wait || thread->state == 'R' ||
		    (group->class == SS_GROUP_IDLE && !all))
			continue;
		struct line *line = &ret->items[ret->count];
		*line = (struct line){ .class = group->class,
				       .text = ss_wait_text_new_merged(thread->wait),
				       .thread = thread,
				       .count = 1 };
		if (!line->text)
			return ss_error_no_memory();
		ret->count++;
	}
	return NULL;
}

static void write_line(const struct line *line, FILE *out)
{
	(void)fprintf(out, "%5zu  %-9s ", line->count,
		      line->class == SS_GROUP_DEADLOCK ? "deadlock" :
		      line->class == SS_GROUP_BLOCKED  ? "lock" :
		      line->class == SS_GROUP_IDLE     ? "idle" :
							 "");
	ss_escape_write(line->thread->name, NULL, out);
	(void)fprintf(out, " %d", line->thread->tid);
	if (line->count > 1)
		(void)fprintf(out, " and %zu more wait for ", line->count - 1);
	else
		(void)fputs(" waits for ", out);
	ss_escape_write(line->text, NULL, out);
	(void)fputc('\n', out);
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	__attribute__((cleanup(lines_deinit))) struct lines lines = {};
	struct ss_error *error = collect(snapshot, options->all, &lines);

	if (error)
		return error;
	merge(&lines);
	for (size_t i = 0; i < lines.count; i++)
		write_line(&lines.items[i], out);
	return NULL;
}

const struct ss_format ss_format_top_waits = {
	.name = "waits",
	.description = "one line for each wait",
	.explains = true,
	.write_snapshot = write_snapshot,
};
