/*
 * Who waits for whom in a snapshot: deadlocks, first and plainly, and what other threads
 * wait for.
 */
#include <inttypes.h>
#include <string.h>

#include "report/text.h"
#include "view/escape.h"
#include "view/label.h"
#include "view/style.h"

enum {
	DEADLOCKS_MAX = 8, /* unless all are wanted */
	MEMBERS_MAX = 16,
	NAMES_SHOWN = 3,
	USER_FRAMES = 2,     /* that are shown of where a thread wants a lock */
	FRAMES_LOOKED = 256, /* at, of each thread: -v shows any number of threads */
};

static void write_thread(const struct ss_profile_thread *thread,
			 const struct ss_report_options *options, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fprintf(out, "%d (", thread->tid);
	ss_escape_write(thread->name, NULL, out);
	(void)fputc(')', out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

/* Whose threads they are, where there is a choice. */
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

/* 0: there is none, or all that is known of it is why the stack ends there. */
static uint32_t caller_of(const struct ss_profile *profile, uint32_t call)
{
	uint32_t caller = ss_profile_call_at(profile, call)->parent;
	const struct ss_profile_function *f = caller ? function_of(profile, caller) :
						       NULL;

	return !f || (f->module == SS_NUMBER_NOT && f->name[0] == '[' &&
		      !strchr(f->name, '+')) ?
		       0 :
		       caller;
}

/* The innermost call of the program itself: outside of the module that waits, if there is
   such a one, and of what belongs to libraries. 0: there is none. */
static uint32_t find_user_call(const struct ss_profile *profile, uint32_t innermost)
{
	uint64_t module = innermost ? function_of(profile, innermost)->module : 0;
	uint32_t outside = innermost;
	int looked = 0;

	while (outside && looked++ < FRAMES_LOOKED &&
	       function_of(profile, outside)->module == module)
		outside = caller_of(profile, outside);
	if (!outside || looked > FRAMES_LOOKED)
		outside = innermost;
	for (uint32_t at = outside; at && looked++ < 2 * FRAMES_LOOKED;
	     at = caller_of(profile, at)) {
		if (!ss_label_is_of_library(function_of(profile, at)->name))
			return at;
	}
	return outside;
}

static void write_where(const struct ss_profile *profile,
			const struct ss_profile_thread *thread,
			const struct ss_report_options *options, FILE *out)
{
	size_t runs = thread->runs.count;
	uint32_t call = runs ? thread->runs.items[runs - 1].call : 0;

	call = find_user_call(profile, call);
	for (int i = 0; i < USER_FRAMES && call; i++) {
		const struct ss_profile_frame *frame = frame_of(profile, call);
		(void)fputs(i == 0 ? "    in " : "    called from ", out);
		ss_report_write_name(profile, frame->function, options, out);
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
			  uint32_t first, const struct ss_report_options *options,
			  FILE *out)
{
	uint32_t count = chains[first].size;
	uint32_t shown = options->verbose ? count : SS_MIN(count, (uint32_t)MEMBERS_MAX);
	uint32_t at = first;

	for (uint32_t i = 0; i < shown; i++, at = chains[at].next) {
		(void)fputs("  ", out);
		write_thread(&profile->threads.items[at], options, out);
		(void)fputs(" waits for ", out);
		ss_escape_write(profile->links.items[chains[at].link].text, NULL, out);
		(void)fputc('\n', out);
		write_where(profile, &profile->threads.items[at], options, out);
	}
	if (shown < count)
		(void)fprintf(out, "  ... and %u more threads (-v lists them)\n",
			      count - shown);
}

static void write_deadlock(const struct ss_profile *profile,
			   const struct ss_chain *chains, uint32_t first,
			   const struct ss_report_options *options, FILE *out)
{
	const struct ss_profile_thread *thread = &profile->threads.items[first];
	bool alone = chains[first].size == 1;

	(void)fputc('\n', out);
	ss_style_write(SS_STYLE_WARN, options->color, out);
	if (alone)
		(void)fputs("DEADLOCK: a thread", out);
	else
		(void)fprintf(out, "DEADLOCK of %u threads", chains[first].size);
	write_process(profile, thread, out);
	(void)fputs(alone ? " waits for itself" : ", each of which waits for the next",
		    out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (chains[first].behind)
		(void)fprintf(out, "; %u more wait%s behind", chains[first].behind,
			      chains[first].behind == 1 ? "s" : "");
	(void)fputs(":\n", out);
	write_members(profile, chains, first, options, out);
}

void ss_report_write_deadlocks(const struct ss_profile *profile,
			       const struct ss_chain *chains,
			       const struct ss_report_options *options, FILE *out)
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

/* Threads of one process that wait for the same. */
struct row {
	const struct ss_profile_link *const *links;
	size_t count;
};

static bool is_marked(const struct ss_profile_link *link, const struct ss_chain *chains)
{
	return link->in_circle && chains[link->thread].circle == SS_NUMBER_NOT;
}

struct order {
	const struct ss_profile *profile;
	const struct ss_chain *chains;
};

static int compare_wanted(const struct ss_profile_link *x,
			  const struct ss_profile_link *y, const struct order *order)
{
	uint32_t a = order->profile->threads.items[x->thread].process;
	uint32_t b = order->profile->threads.items[y->thread].process;

	if (a != b)
		return a < b ? -1 : 1;
	if (is_marked(x, order->chains) != is_marked(y, order->chains))
		return is_marked(x, order->chains) ? -1 : 1;
	return x->text == y->text ? 0 : strcmp(x->text, y->text); /* of a pool */
}

static int compare_links(const void *a, const void *b, void *data)
{
	const struct ss_profile_link *x = *(const struct ss_profile_link *const *)a;
	const struct ss_profile_link *y = *(const struct ss_profile_link *const *)b;
	int wanted = compare_wanted(x, y, data);

	if (wanted)
		return wanted;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->links[0]->thread < y->links[0]->thread ? -1 : 1;
}

/* Those that no deadlock says, brought together; how many rows that makes. */
static size_t arrange(const struct order *order, const struct ss_profile_link **links,
		      struct row *rows)
{
	const struct ss_profile *profile = order->profile;
	size_t count = 0;
	size_t made = 0;

	for (uint32_t i = 0; i < profile->links.count; i++) {
		const struct ss_profile_link *link = &profile->links.items[i];
		const struct ss_chain *chain = &order->chains[link->thread];
		if (!chain->member || chain->link != i)
			links[count++] = link;
	}
	qsort_r(links, count, sizeof(struct ss_profile_link *), compare_links,
		(void *)order);
	for (size_t i = 0; i < count; i++) {
		if (i && compare_wanted(links[i - 1], links[i], order) == 0)
			rows[made - 1].count++;
		else
			rows[made++] = (struct row){ links + i, 1 };
	}
	qsort(rows, made, sizeof(*rows), compare_rows);
	return made;
}

/* "  17 (a), 18 (b), 19 (c) and 2 more wait for mutex ..., held by 16 (d)" */
static void write_row(const struct order *order, const struct row *row,
		      const struct ss_report_options *options, FILE *out)
{
	const struct ss_profile *profile = order->profile;
	size_t shown = options->verbose || row->count <= NAMES_SHOWN ? row->count :
								       NAMES_SHOWN;

	for (size_t i = 0; i < shown; i++) {
		(void)fputs(i ? ", " : "  ", out);
		write_thread(&profile->threads.items[row->links[i]->thread], options,
			     out);
	}
	if (shown < row->count)
		(void)fprintf(out, " and %zu more", row->count - shown);
	write_process(profile, &profile->threads.items[row->links[0]->thread], out);
	(void)fputs(row->count > 1 ? " wait for " : " waits for ", out);
	ss_escape_write(row->links[0]->text, NULL, out);
	if (is_marked(row->links[0], order->chains))
		(void)fputs("; a DEADLOCK with threads that are not shown", out);
	(void)fputc('\n', out);
}

bool ss_report_write_links(const struct ss_profile *profile,
			   const struct ss_chain *chains,
			   const struct ss_report_options *options, FILE *out)
{
	const struct order order = { profile, chains };
	size_t most = profile->links.count + 1;
	_cleanup_free_ const struct ss_profile_link **links =
		calloc(most, sizeof(struct ss_profile_link *));
	_cleanup_free_ struct row *rows = calloc(most, sizeof(*rows));

	if (!links || !rows)
		return false;
	size_t count = arrange(&order, links, rows);
	if (count)
		ss_report_write_heading("Waits: what threads wait for, and who holds it",
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
