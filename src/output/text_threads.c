/*
 * The line with the threads of a group. Names that differ only in a trailing number are
 * merged; consecutive ids become a range.
 */
#include <stdlib.h>
#include <string.h>

#include "output/escape.h"
#include "output/quantity.h"
#include "output/state.h"
#include "output/style.h"
#include "output/text.h"

enum { ITEMS_MAX = 12 }; /* ids and ranges of a group without -v */

struct listing {
	const struct ss_thread **threads; /* sorted by stem of their name, then by id */
	size_t count;
	size_t items; /* written so far */
	size_t max_items;
	FILE *out;
};

static size_t stem_size(const char *name)
{
	size_t size = strlen(name);

	while (size > 0 && name[size - 1] >= '0' && name[size - 1] <= '9')
		size--;
	return size;
}

static int compare_stems(const struct ss_thread *a, const struct ss_thread *b)
{
	size_t size = stem_size(a->name);
	size_t other = stem_size(b->name);
	int order = memcmp(a->name, b->name, SS_MIN(size, other));

	return order ? order : (size > other) - (size < other);
}

static int compare_threads(const void *a, const void *b)
{
	const struct ss_thread *t = *(const struct ss_thread *const *)a;
	const struct ss_thread *u = *(const struct ss_thread *const *)b;
	int order = compare_stems(t, u);

	return order ? order : (t->tid > u->tid) - (t->tid < u->tid);
}

/* Returns the number of threads, from first on, whose names have the same stem. */
static size_t stem_run(const struct listing *list, size_t first)
{
	size_t end = first + 1;

	while (end < list->count &&
	       compare_stems(list->threads[first], list->threads[end]) == 0)
		end++;
	return end - first;
}

static void write_stem(const struct listing *list, size_t first, size_t count)
{
	const char *name = list->threads[first]->name;
	bool same = true;

	for (size_t i = 1; i < count; i++)
		same &= strcmp(name, list->threads[first + i]->name) == 0;
	if (same) {
		ss_escape_write(name, NULL, list->out);
		return;
	}
	_cleanup_free_ char *stem = strndup(name, stem_size(name));
	ss_escape_write(stem ? stem : name, NULL, list->out);
	(void)fputc_unlocked('*', list->out);
}

/* The id in the thread's own pid namespace, if it is known. */
static pid_t inner_id(const struct ss_thread *thread)
{
	return thread->inner_tid ? thread->inner_tid : thread->tid;
}

static bool follows(const struct ss_thread *thread, const struct ss_thread *before)
{
	return thread->tid == before->tid + 1 && inner_id(thread) == inner_id(before) + 1;
}

/* "9-12", or "9-12[1-4]" if they have other ids in their own pid namespace. */
static void write_range(pid_t first, size_t length, FILE *out)
{
	(void)fprintf(out, "%d", first);
	if (length > 1)
		(void)fprintf(out, "%c%d", length > 2 ? '-' : ',',
			      first + (pid_t)length - 1);
}

static void write_run(const struct ss_thread *first, size_t length, FILE *out)
{
	write_range(first->tid, length, out);
	if (inner_id(first) == first->tid)
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
		const struct ss_thread *const *run =
			(const struct ss_thread *const *)&list->threads[first + written];
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
		(void)fputs_unlocked(i ? "; " : " ", list->out);
		write_stem(list, i, run);
		written += write_ids(list, i, run);
	}
	if (written < list->count) {
		(void)fputs_unlocked(" and ", list->out);
		ss_quantity_write_count(list->count - written, list->out);
		(void)fputs_unlocked(" more (-v lists them)", list->out);
	}
}

/* "sleeping", or "3 running, 9 sleeping" */
static void write_states(const struct ss_snapshot *snapshot, const struct ss_group *group,
			 FILE *out)
{
	size_t counts[128] = {};
	const char *separator = ", ";

	for (size_t i = 0; i < group->count; i++)
		counts[ss_snapshot_thread(snapshot, group->members[i])->state & 0x7f]++;
	for (size_t state = 0; state < SS_ARRAY_SIZE(counts); state++) {
		if (counts[state] == 0)
			continue;
		(void)fputs_unlocked(separator, out);
		if (counts[state] < group->count) {
			ss_quantity_write_count(counts[state], out);
			(void)fputc_unlocked(' ', out);
		}
		(void)fputs_unlocked(ss_state_name((char)state), out);
	}
}

static void write_pause(const struct ss_snapshot *snapshot, const struct ss_group *group,
			FILE *out)
{
	uint64_t longest = 0;
	size_t torn = 0;

	if (ss_snapshot_process(snapshot)->mode == SS_MODE_CORE)
		return;
	for (size_t i = 0; i < group->count; i++) {
		const struct ss_thread *thread =
			ss_snapshot_thread(snapshot, group->members[i]);
		longest = SS_MAX(longest, thread->stopped_ns);
		torn += thread->consistent || thread->frame_count == 0 ? 0 : 1;
	}
	(void)fputs_unlocked(longest ? ", paused " : ", not paused", out);
	if (longest)
		ss_quantity_write_time(longest, out);
	if (torn)
		(void)fprintf(out, ", %zu changed while being read", torn);
}

static void write_number(const struct ss_group *group, FILE *out)
{
	if (group->has_main)
		(void)fputs_unlocked("main thread", out);
	if (group->has_main && group->count > 1)
		(void)fputs_unlocked(" and ", out);
	size_t others = group->count - (group->has_main ? 1 : 0);
	if (others == 0)
		return;
	ss_quantity_write_count(others, out);
	(void)fprintf(out, "%s thread%s", group->has_main ? " more" : "",
		      others == 1 ? "" : "s");
}

void ss_text_write_thread_list(const struct ss_thread **threads, size_t count,
			       const struct ss_format_options *options, FILE *out)
{
	struct listing list = { .threads = threads,
				.count = count,
				.max_items = options->verbose ? SIZE_MAX : ITEMS_MAX,
				.out = out };

	qsort(threads, count, sizeof(const struct ss_thread *), compare_threads);
	(void)fputc_unlocked(':', out);
	write_list(&list);
	(void)fputc_unlocked('\n', out);
}

struct ss_error *ss_text_write_threads(const struct ss_snapshot *snapshot,
				       const struct ss_group *group,
				       const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ const struct ss_thread **threads =
		calloc(group->count, sizeof(const struct ss_thread *));

	if (!threads)
		return ss_error_no_memory();
	for (size_t i = 0; i < group->count; i++)
		threads[i] = ss_snapshot_thread(snapshot, group->members[i]);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	write_number(group, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	write_states(snapshot, group, out);
	write_pause(snapshot, group, out);
	ss_text_write_thread_list(threads, group->count, options, out);
	return NULL;
}
