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

/*
 * Locks of applications that threads wait for, and which threads probably hold them.
 */

enum { LOCKS_MAX = 3, SUSPECTS_MAX = 3 }; /* without -v */

static void write_name(const char *name, FILE *out)
{
	ss_escape_write(name, NULL, out);
}

static void write_only_suspect(const struct ss_snapshot *snapshot,
			       const struct ss_application_lock *lock,
			       const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, lock->suspects[0]);

	ss_text_write_thread(thread->tid, thread->name, options, out);
	(void)fputs_unlocked(", the only other thread in ", out);
	write_name(lock->common_function, out);
	if (thread->wait) {
		(void)fputs_unlocked("\n    which waits for ", out);
		ss_wait_text_write(thread->wait, options->color, out);
	} else if (thread->state == 'R') {
		(void)fputs_unlocked("\n    which runs", out);
	}
}

static void write_list(const struct ss_snapshot *snapshot, const size_t *threads,
		       size_t count, size_t total,
		       const struct ss_format_options *options, FILE *out)
{
	size_t shown = options->verbose ? count : SS_MIN(count, (size_t)SUSPECTS_MAX);

	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, threads[i]);
		ss_text_write_thread(thread->tid, thread->name, options, out);
	}
	if (shown < total)
		(void)fprintf(out, " and %zu more", total - shown);
}

/* They may hold the lock of a transaction. */
static void write_clients(const struct ss_snapshot *snapshot,
			  const struct ss_application_lock *lock,
			  const struct ss_format_options *options, FILE *out)
{
	size_t total = lock->client_suspects_total;

	if (total == 0)
		return;
	(void)fprintf(out, "  or by %s%zu thread%s in ", total > 1 ? "one of " : "",
		      total, total > 1 ? "s" : "");
	write_name(lock->client_function, out);
	(void)fputs_unlocked(total > 1 ? " that wait for their clients" :
					 " that waits for its client",
			     out);
	write_list(snapshot, lock->client_suspects, lock->client_suspect_count, total,
		   options, out);
	(void)fputc_unlocked('\n', out);
}

static void write_suspects(const struct ss_snapshot *snapshot,
			   const struct ss_application_lock *lock,
			   const struct ss_format_options *options, FILE *out)
{
	if (lock->suspects_total == 0)
		return;
	(void)fputs_unlocked("  probably held by ", out);
	if (lock->suspects_total == 1) {
		write_only_suspect(snapshot, lock, options, out);
	} else {
		(void)fprintf(out, "one of %zu other threads in ", lock->suspects_total);
		write_name(lock->common_function, out);
		write_list(snapshot, lock->suspects, lock->suspect_count,
			   lock->suspects_total, options, out);
	}
	(void)fputc_unlocked('\n', out);
	write_clients(snapshot, lock, options, out);
}

static void write_lock(const struct ss_snapshot *snapshot,
		       const struct ss_application_lock *lock,
		       const struct ss_format_options *options, FILE *out)
{
	(void)fprintf(out, "%zu thread%s for an application lock: ", lock->waiting,
		      lock->waiting == 1 ? " waits" : "s wait");
	ss_style_write(SS_STYLE_WARN, options->color, out);
	write_name(lock->function, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (lock->words) {
		(void)fputs_unlocked(" (", out);
		write_name(lock->words, out);
		(void)fputc_unlocked(')', out);
	}
	(void)fputc_unlocked('\n', out);
	write_suspects(snapshot, lock, options, out);
}

void ss_text_write_application_locks(const struct ss_snapshot *snapshot,
				     const struct ss_format_options *options, FILE *out)
{
	size_t count = ss_snapshot_application_lock_count(snapshot);
	size_t shown = options->verbose ? count : SS_MIN(count, (size_t)LOCKS_MAX);

	if (count)
		(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < shown; i++)
		write_lock(snapshot, ss_snapshot_application_lock(snapshot, i), options,
			   out);
	if (shown < count)
		(void)fprintf(out, "... and %zu more such lock%s (-v lists them)\n",
			      count - shown, count - shown == 1 ? "" : "s");
}
