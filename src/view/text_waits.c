/*
 * What the threads of a group wait for: a line for each different thing, with the
 * number of threads where there are several.
 */
#include <stdlib.h>
#include <string.h>

#include "view/escape.h"
#include "view/quantity.h"
#include "view/style.h"
#include "view/text.h"

enum { LINES_MAX = 4 }; /* of one group, unless all are wanted */

/* Threads that wait for the same. */
struct same {
	const struct ss_wait *wait;
	size_t count;
};

static int compare_waits(const void *a, const void *b)
{
	const struct same *x = a;
	const struct same *y = b;

	int order = strcmp(x->wait->text, y->wait->text);

	if (order)
		return order;
	return strcmp(x->wait->syscall ? x->wait->syscall : "",
		      y->wait->syscall ? y->wait->syscall : "");
}

static int compare_counts(const void *a, const void *b)
{
	const struct same *x = a;
	const struct same *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return compare_waits(a, b);
}

/* Brings equal waits together, the most frequent first; how many different ones. */
static size_t merge(struct same *items, size_t count)
{
	size_t merged = 0;

	if (count > 1)
		qsort(items, count, sizeof(*items), compare_waits);
	for (size_t i = 0; i < count; i++) {
		if (merged && compare_waits(&items[merged - 1], &items[i]) == 0)
			items[merged - 1].count += items[i].count;
		else
			items[merged++] = items[i];
	}
	if (merged > 1)
		qsort(items, merged, sizeof(*items), compare_counts);
	return merged;
}

void ss_text_write_wait(const struct ss_wait *wait, bool color, FILE *out)
{
	static const char owner[] = "held by ";
	const char *from = NULL;

	for (const char *at = wait->text; color && (wait->owner_tid || wait->owner_pid) &&
					  (at = strstr(at, owner)) != NULL;)
		from = at += strlen(owner);
	if (!from) {
		ss_escape_write(wait->text, NULL, out);
		return;
	}
	_cleanup_free_ char *head = strndup(wait->text, (size_t)(from - wait->text));
	ss_escape_write(head ? head : "", NULL, out);
	ss_style_write(SS_STYLE_WARN, color, out);
	ss_escape_write(from, NULL, out);
	ss_style_write(SS_STYLE_NONE, color, out);
}

static void write_line(const struct same *same, size_t members,
		       const struct ss_render_options *options, FILE *out)
{
	(void)fputs_unlocked("  ", out);
	if (same->count < members) {
		ss_quantity_write_count(same->count, out);
		(void)fputc_unlocked(' ', out);
	}
	(void)fputs_unlocked(same->count > 1 ? "wait for " : "waits for ", out);
	ss_text_write_wait(same->wait, options->color, out);
	if (same->wait->syscall)
		(void)fprintf(out, " [%s]", same->wait->syscall);
	(void)fputc_unlocked('\n', out);
	if (!same->wait->beyond)
		return;
	(void)fputs_unlocked("    ", out);
	ss_escape_write(same->wait->beyond, NULL, out);
	(void)fputc_unlocked('\n', out);
}

static void write_rest(const struct same *items, size_t count, FILE *out)
{
	size_t threads = 0;

	for (size_t i = 0; i < count; i++)
		threads += items[i].count;
	(void)fputs_unlocked("  ... and ", out);
	ss_quantity_write_count(threads, out);
	(void)fputs_unlocked(" for other things (-v lists them)\n", out);
}

struct ss_error *ss_text_write_waits(const struct ss_snapshot *snapshot,
				     const struct ss_group *group,
				     const struct ss_render_options *options, FILE *out)
{
	_cleanup_free_ struct same *items = calloc(group->count, sizeof(*items));
	size_t count = 0;

	if (!items)
		return ss_error_no_memory();
	for (size_t i = 0; i < group->count; i++) {
		const struct ss_wait *wait =
			ss_snapshot_thread(snapshot, group->members[i])->wait;
		if (wait)
			items[count] = (struct same){ .wait = wait, .count = 1 };
		count += wait != NULL;
	}
	count = merge(items, count);
	size_t shown = options->verbose || count <= LINES_MAX ? count : LINES_MAX - 1;
	for (size_t i = 0; i < shown; i++)
		write_line(&items[i], group->count, options, out);
	if (shown < count)
		write_rest(items + shown, count - shown, out);
	return NULL;
}
