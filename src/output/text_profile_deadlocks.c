/*
 * Waits in recorded snapshots: deadlocks, and what other threads wait for.
 */
#include <inttypes.h>
#include <string.h>

#include "output/text_profile.h"
#include "output/escape.h"
#include "profile/label.h"
#include "output/style.h"
#include "output/wait_text.h"

enum {
	DEADLOCKS_MAX = 8, /* without -v */
	MEMBERS_MAX = 16,
	NAMES_SHOWN = 3,
	USER_FRAMES = 2,  /* frames shown for each waiting thread */
	SEARCH_MAX = 256, /* frames searched per thread: -v has no limit of threads */
};

static void write_thread(const struct ss_profile_thread *thread,
			 const struct ss_format_options *options, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fprintf(out, "%d (", thread->tid);
	ss_escape_write(thread->name, NULL, out);
	(void)fputc(')', out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

/* Writes the process and recording of a thread if there are several. */
static void write_process(const struct ss_profile *profile,
			  const struct ss_profile_thread *thread, FILE *out)
{
	const struct ss_profile_process *process =
		&profile->processes.items[thread->process];

	if (profile->processes.count == 1)
		return;
	(void)fputs(" of ", out);
	ss_escape_write(process->name, NULL, out);
	(void)fprintf(out, " %d", process->pid);
	if (profile->recordings.count == 1)
		return;
	(void)fputs(" in ", out);
	ss_escape_write(ss_profile_recording_of(profile, thread)->file, NULL, out);
}

static const struct ss_profile_frame *frame_of(const struct ss_profile *profile,
					       uint32_t call)
{
	return ss_profile_frame_at(profile, ss_profile_call_at(profile, call)->frame);
}

static const struct ss_profile_function *function_of(const struct ss_profile *profile,
						     uint32_t call)
{
	return ss_profile_function_at(profile, frame_of(profile, call)->function);
}

/* Returns 0 if there is no caller. */
static uint32_t caller_of(const struct ss_profile *profile, uint32_t call)
{
	uint32_t caller = ss_profile_call_at(profile, call)->parent;
	const struct ss_profile_function *f = caller ? function_of(profile, caller) :
						       NULL;

	return f && !f->is_end && !f->is_origin ? caller : 0;
}

/* Returns the innermost call of the program itself: not in the module that waits, if
   possible, and not in code of libraries. 0: there is none. */
static uint32_t find_user_call(const struct ss_profile *profile, uint32_t innermost)
{
	uint64_t module = innermost ? function_of(profile, innermost)->module : 0;
	uint32_t outside = innermost;
	int visited = 0;

	while (outside && visited++ < SEARCH_MAX &&
	       function_of(profile, outside)->module == module)
		outside = caller_of(profile, outside);
	if (!outside || visited > SEARCH_MAX)
		outside = innermost;
	for (uint32_t at = outside; at && visited++ < 2 * SEARCH_MAX;
	     at = caller_of(profile, at)) {
		if (!ss_label_is_of_library(function_of(profile, at)->name))
			return at;
	}
	return outside;
}

static void write_where(const struct ss_profile *profile,
			const struct ss_profile_thread *thread,
			const struct ss_format_options *options, FILE *out)
{
	size_t runs = thread->runs.count;
	uint32_t call = runs ? thread->runs.items[runs - 1].call : 0;

	call = find_user_call(profile, call);
	for (int i = 0; i < USER_FRAMES && call; i++) {
		const struct ss_profile_frame *frame = frame_of(profile, call);
		(void)fputs(i == 0 ? "    in " : "    called from ", out);
		ss_text_profile_name(profile, frame->function, options, out);
		if (frame->file && frame->line) {
			(void)fputs(" at ", out);
			ss_escape_write(frame->file, NULL, out);
			(void)fprintf(out, ":%" PRIu64, frame->line);
		}
		(void)fputc('\n', out);
		call = caller_of(profile, call);
	}
}

static void write_members(const struct ss_profile *profile, const struct ss_chain *chains,
			  uint32_t first, const struct ss_format_options *options,
			  FILE *out)
{
	uint32_t count = chains[first].size;
	uint32_t shown = options->verbose ? count : SS_MIN(count, (uint32_t)MEMBERS_MAX);
	uint32_t at = first;

	for (uint32_t i = 0; i < shown; i++, at = chains[at].next) {
		(void)fputs("  ", out);
		write_thread(&profile->threads.items[at], options, out);
		(void)fputs(" waits for ", out);
		ss_wait_text_write(profile->edges.items[chains[at].edge].wait,
				   options->color, out);
		(void)fputc('\n', out);
		write_where(profile, &profile->threads.items[at], options, out);
	}
	if (shown < count)
		(void)fprintf(out, "  ... and %u more threads (-v lists them)\n",
			      count - shown);
}

static bool has_time_limit(const struct ss_profile *profile,
			   const struct ss_chain *chains, uint32_t first)
{
	uint32_t at = first;

	for (uint32_t i = 0; i < chains[first].size; i++, at = chains[at].next) {
		if (profile->edges.items[chains[at].edge].wait->timed)
			return true;
	}
	return false;
}

static bool has_other_thread(const struct ss_profile *profile, uint32_t thread)
{
	for (uint32_t i = 0; i < profile->threads.count; i++) {
		if (i != thread && profile->threads.items[i].process ==
					   profile->threads.items[thread].process)
			return true;
	}
	return false;
}

/* The words of a snapshot (text_deadlocks.c). */
static const char *cycle_word(const struct ss_profile *profile,
			      const struct ss_chain *chains, uint32_t first)
{
	if (has_time_limit(profile, chains, first))
		return "Contention with a time limit";
	if (chains[first].size == 1 && has_other_thread(profile, first))
		return "Would be a self-deadlock unless another thread unlocks it";
	return "DEADLOCK";
}

static void write_deadlock(const struct ss_profile *profile,
			   const struct ss_chain *chains, uint32_t first,
			   const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile_thread *thread = &profile->threads.items[first];
	bool alone = chains[first].size == 1;

	(void)fputc('\n', out);
	ss_style_write(SS_STYLE_WARN, options->color, out);
	(void)fputs(cycle_word(profile, chains, first), out);
	if (alone)
		(void)fputs(": a thread", out);
	else
		(void)fprintf(out, ": %u threads", chains[first].size);
	write_process(profile, thread, out);
	(void)fputs(alone ? " waits for a lock that it holds" :
			    " wait for each other in a cycle",
		    out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (chains[first].behind)
		(void)fprintf(out, "; %u more wait%s for them", chains[first].behind,
			      chains[first].behind == 1 ? "s" : "");
	(void)fputs(":\n", out);
	write_members(profile, chains, first, options, out);
}

void ss_text_profile_deadlocks(const struct ss_profile *profile,
			       const struct ss_chain *chains,
			       const struct ss_format_options *options, FILE *out)
{
	size_t count = 0;

	for (uint32_t i = 0; i < profile->threads.count; i++) {
		if (!chains[i].size)
			continue;
		if (count++ < DEADLOCKS_MAX || options->verbose)
			write_deadlock(profile, chains, i, options, out);
	}
	if (count > DEADLOCKS_MAX && !options->verbose)
		(void)fprintf(out, "... and %zu more deadlock%s (-v lists them)\n",
			      count - DEADLOCKS_MAX,
			      count == DEADLOCKS_MAX + 1 ? "" : "s");
}

/* A wait that is not part of a deadlock, and its text. */
struct item {
	const struct ss_profile_edge *edge;
	char *text; /* owned */
};

struct order {
	const struct ss_profile *profile;
	const struct ss_chain *chains;
	struct item *items;
	size_t count;
};

static void order_deinit(struct order *order)
{
	for (size_t i = 0; i < order->count; i++)
		free(order->items[i].text);
	free(order->items);
}

/* Threads of one process with the same wait. */
struct row {
	const struct item *items;
	size_t count;
};

static bool is_marked(const struct ss_profile_edge *edge, const struct ss_chain *chains)
{
	return edge->in_cycle && chains[edge->thread].cycle == SS_ID_NONE;
}

static int compare_waits(const struct item *x, const struct item *y,
			 const struct order *order)
{
	uint32_t a = order->profile->threads.items[x->edge->thread].process;
	uint32_t b = order->profile->threads.items[y->edge->thread].process;

	if (a != b)
		return a < b ? -1 : 1;
	if (is_marked(x->edge, order->chains) != is_marked(y->edge, order->chains))
		return is_marked(x->edge, order->chains) ? -1 : 1;
	return strcmp(x->text, y->text);
}

static int compare_items(const void *a, const void *b, void *data)
{
	const struct item *x = a;
	const struct item *y = b;
	int order = compare_waits(x, y, data);

	if (order)
		return order;
	return x->edge->thread < y->edge->thread ? -1 : x->edge->thread > y->edge->thread;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->items->edge->thread < y->items->edge->thread ? -1 : 1;
}

static bool list_items(struct order *order)
{
	const struct ss_profile *profile = order->profile;

	for (uint32_t i = 0; i < profile->edges.count; i++) {
		const struct ss_profile_edge *edge = &profile->edges.items[i];
		const struct ss_chain *chain = &order->chains[edge->thread];
		if (chain->member && chain->edge == i)
			continue;
		struct item item = { edge, ss_wait_text_new(edge->wait) };
		if (!item.text)
			return false;
		order->items[order->count++] = item;
	}
	return true;
}

/* Merges equal waits. Returns the number of rows. */
static size_t make_rows(struct order *order, struct row *rows)
{
	size_t count = 0;

	qsort_r(order->items, order->count, sizeof(*order->items), compare_items, order);
	for (size_t i = 0; i < order->count; i++) {
		const struct item *item = &order->items[i];
		if (i && compare_waits(item - 1, item, order) == 0)
			rows[count - 1].count++;
		else
			rows[count++] = (struct row){ item, 1 };
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	return count;
}

/* "  17 (a), 18 (b), 19 (c) and 2 more wait for mutex ..., held by 16 (d)" */
static void write_row(const struct order *order, const struct row *row,
		      const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile *profile = order->profile;
	size_t shown = options->verbose || row->count <= NAMES_SHOWN ? row->count :
								       NAMES_SHOWN;

	for (size_t i = 0; i < shown; i++) {
		(void)fputs(i ? ", " : "  ", out);
		write_thread(&profile->threads.items[row->items[i].edge->thread], options,
			     out);
	}
	if (shown < row->count)
		(void)fprintf(out, " and %zu more", row->count - shown);
	write_process(profile, &profile->threads.items[row->items->edge->thread], out);
	(void)fputs(row->count > 1 ? " wait for " : " waits for ", out);
	ss_wait_text_write(row->items->edge->wait, options->color, out);
	if (is_marked(row->items->edge, order->chains))
		(void)fputs("; a DEADLOCK with threads that are not shown", out);
	(void)fputc('\n', out);
}

bool ss_text_profile_other_waits(const struct ss_profile *profile,
				 const struct ss_chain *chains,
				 const struct ss_format_options *options, FILE *out)
{
	size_t most = profile->edges.count + 1;
	__attribute__((cleanup(order_deinit))) struct order order = {
		.profile = profile,
		.chains = chains,
		.items = calloc(most, sizeof(struct item)),
	};
	_cleanup_free_ struct row *rows = calloc(most, sizeof(*rows));

	if (!order.items || !rows || !list_items(&order))
		return false;
	size_t count = make_rows(&order, rows);
	if (count)
		ss_text_profile_heading("Waits: what threads wait for, and who holds it",
					options, out);
	for (size_t i = 0; i < count; i++) {
		if (i == options->rows && !options->verbose) {
			(void)fprintf(out, "  and %zu more (-v lists them)\n", count - i);
			break;
		}
		write_row(&order, &rows[i], options, out);
	}
	return true;
}
