/*
 * Lists of tasks: the line with the threads or goroutines of a group, and threads in parts.
 */
#include "report/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "report/print.h"
#include "report/wait_text.h"

/*
 * Names that differ only in their last number are merged; consecutive ids become a range.
 */

enum { ITEMS_MAX = 12 }; /* ids and ranges of a group without -v */

struct listing {
	const struct ss_task *const *tasks; /* sorted by stem of their name, then by id */
	size_t count;
	size_t items; /* written so far */
	size_t max_items;
	FILE *out;
};

/* A name is split at its last number: "Thread-7 (fetch)" into "Thread-" and " (fetch)". */
struct stem {
	size_t size;	  /* of what is before the number */
	const char *rest; /* after it */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct stem stem_of(const char *name)
{
	size_t end = strlen(name);

	while (end > 0 && !is_digit(name[end - 1]))
		end--;
	size_t size = end;
	while (size > 0 && is_digit(name[size - 1]))
		size--;
	return end > 0 ? (struct stem){ size, name + end } :
			 (struct stem){ strlen(name), "" };
}

static int compare_stems(const struct ss_task *a, const struct ss_task *b)
{
	const struct stem x = stem_of(a->name);
	const struct stem y = stem_of(b->name);

	return memcmp(a->name, b->name, SS_MIN(x.size, y.size)) ?:
		       SS_COMPARE(x.size, y.size)		?:
								  strcmp(x.rest, y.rest);
}

static int compare_threads(const void *a, const void *b)
{
	const struct ss_task *t = *(const struct ss_task *const *)a;
	const struct ss_task *u = *(const struct ss_task *const *)b;

	return compare_stems(t, u) ?: SS_COMPARE(t->id, u->id);
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
	const struct stem stem = stem_of(name);
	_cleanup_free_ char *begin = strndup(name, stem.size);
	ss_escape_write(begin ? begin : name, NULL, list->out);
	(void)fputc_unlocked('*', list->out);
	ss_escape_write(stem.rest, NULL, list->out);
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

void ss_text_write_list(const struct ss_task *const *tasks, size_t count,
			const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ const struct ss_task **sorted =
		calloc(count, sizeof(const struct ss_task *));
	struct listing list = { .tasks = sorted ? sorted : tasks,
				.count = count,
				.max_items = ss_text_most(options, ITEMS_MAX),
				.out = out };

	if (sorted) {
		memcpy(sorted, tasks, count * sizeof(const struct ss_task *));
		qsort(sorted, count, sizeof(const struct ss_task *), compare_threads);
	}
	(void)fputc_unlocked(':', out);
	write_list(&list);
	(void)fputc_unlocked('\n', out);
}

/* Rows of tasks that do the same ------------------------------------------------ */

struct item {
	size_t number;
	struct ss_bundle_key key;
};

static int compare_keys(const struct ss_bundle_key *a, const struct ss_bundle_key *b)
{
	return SS_COMPARE(a->stack, b->stack) ?: SS_COMPARE(a->lock, b->lock);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a;
	const struct item *y = b;

	return compare_keys(&x->key, &y->key) ?: SS_COMPARE(x->number, y->number);
}

/* The largest first, then by their first item. */
static int compare_bundles(const void *a, const void *b)
{
	const struct ss_bundle *x = a;
	const struct ss_bundle *y = b;

	return SS_COMPARE(y->count, x->count) ?: SS_COMPARE(*x->items, *y->items);
}

struct ss_bundles *ss_bundles_new(const struct ss_text_item *all, size_t count,
				  unsigned part)
{
	_cleanup_free_ struct item *items = calloc(count + 1, sizeof(*items));
	size_t found = 0;
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		calloc(1, sizeof(*bundles));

	if (!items || !bundles)
		return NULL;
	bundles->items = calloc(count + 1, sizeof(*bundles->items));
	bundles->order = calloc(count + 1, sizeof(*bundles->order));
	if (!bundles->items || !bundles->order)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (all[i].part == part)
			items[found++] = (struct item){ i, all[i].key };
	}
	bundles->item_count = found;
	qsort(items, found, sizeof(*items), compare_items);
	for (size_t i = 0; i < found; i++) {
		if (i == 0 || compare_keys(&items[i].key, &items[i - 1].key) != 0)
			bundles->items[bundles->count++].items = &bundles->order[i];
		bundles->items[bundles->count - 1].count++;
		bundles->order[i] = items[i].number;
	}
	qsort(bundles->items, bundles->count, sizeof(*bundles->items), compare_bundles);
	return take_ptr(bundles);
}

void ss_bundles_free(struct ss_bundles *bundles)
{
	if (!bundles)
		return;
	free(bundles->items);
	free(bundles->order);
	free(bundles);
}

/* Parts ----------------------------------------------------------------------- */

static void write_wait(const struct ss_text_list *list, const struct ss_wait *wait)
{
	if (!wait)
		return;
	(void)fputs_unlocked("    waits for ", list->out);
	ss_wait_text_write(wait, list->options->color, list->out);
	ss_wait_text_write_chain(wait, "\n    ", list->out);
	(void)fputc_unlocked('\n', list->out);
}

/* "  4711 (worker), sleeping", what it waits for, and where. */
static void write_one(const struct ss_text_list *list, const struct ss_bundle *row)
{
	const struct ss_text_item *item = &list->items[*row->items];

	(void)fputs_unlocked("  ", list->out);
	ss_text_write_thread(item->task->tid, item->task->name, list->options, list->out);
	list->write_activity(list->data, row);
	(void)fputc_unlocked('\n', list->out);
	write_wait(list, item->wait);
}

/* "  12 threads, sleeping: worker-* 4711-4722", and their waits. */
static struct ss_error *write_several(const struct ss_text_list *list,
				      const struct ss_bundle *row)
{
	_cleanup_free_ const struct ss_task **threads =
		calloc(row->count, sizeof(const struct ss_task *));
	_cleanup_free_ const struct ss_wait **waits =
		calloc(row->count, sizeof(const struct ss_wait *));

	if (!threads || !waits)
		return ss_error_no_memory();
	for (size_t i = 0; i < row->count; i++) {
		threads[i] = list->items[row->items[i]].task;
		waits[i] = list->items[row->items[i]].wait;
	}
	(void)fprintf(list->out, "  %s", ss_quantity_things(row->count, "thread").text);
	list->write_activity(list->data, row);
	ss_text_write_list(threads, row->count, list->options, list->out);
	return ss_text_write_waits_of(waits, row->count, "    ", list->options,
				      list->out);
}

struct ss_error *ss_text_write_part(const struct ss_text_list *list, unsigned part,
				    size_t fold_below)
{
	const struct ss_format_options *options = list->options;
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *rows =
		ss_bundles_new(list->items, list->count, part);
	struct ss_error *error = rows ? NULL : ss_error_no_memory();
	size_t rest = 0;

	if (error || rows->item_count == 0)
		return error;
	bool folded = rows->item_count > 1 && rows->item_count < fold_below &&
		      !options->all && !options->verbose;
	list->write_title(list->data, part, rows->item_count, folded);
	for (size_t i = 0; i < rows->count && !folded && !error; i++) {
		const struct ss_bundle *row = &rows->items[i];
		if (i >= ss_text_most(options, list->most)) {
			rest += row->count;
			continue;
		}
		if (row->count == 1)
			write_one(list, row);
		else
			error = write_several(list, row);
		if (!error)
			list->write_place(list->data, *row->items);
	}
	if (rest && !error)
		(void)fprintf(list->out, "  ... and %zu more (-v lists them)\n", rest);
	return error;
}
