#include "report/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/search.h"
#include "base/text_stream.h"
#include "report/print.h"
#include "report/group.h"
#include "report/wait_text.h"
#include "report/profile_condense.h"

enum {
	PARTS = SS_TOP_WAITS + 1,
	HEADINGS = 2,
	ALL_MIN = 12 /* lines for several parts */
};

static const double percent = 100;

/* A thread, whose samples may be in two recordings. */
struct thread {
	pid_t tid;
	const char *name;
	char state; /* the last one */
	uint64_t cpu_ns;
	uint64_t last_ns; /* time of the last sample */
	const struct ss_profile_run *last;
	uint32_t function; /* or SS_ID_NONE */
};

struct function {
	uint32_t index; /* of the condensed profile */
	uint64_t self;
	uint64_t total;
};

struct top {
	struct ss_profile *profile;
	const struct ss_top_view *view;
	FILE *out;
	struct ss_condensed *condensed;
	struct ss_weights *weights;
	SS_VECTOR(struct thread) threads;
	SS_VECTOR(struct function) functions;
	uint64_t ticks;
	uint64_t missed;
	uint64_t begin_ns; /* since the profile's start */
	uint64_t end_ns;
};

static void top_deinit(struct top *top)
{
	ss_weights_free(top->weights);
	ss_condensed_free(top->condensed);
	ss_vector_free(&top->threads);
	ss_vector_free(&top->functions);
}

const char *ss_top_sort_name(size_t sort)
{
	static const char *const names[] = {
		[SS_TOP_OWN] = "own",
		[SS_TOP_TOTAL] = "total",
		[SS_TOP_STATE] = "state",
		[SS_TOP_NAME] = "name",
	};

	return sort < SS_ARRAY_SIZE(names) ? names[sort] : NULL;
}

static bool is_active(char state)
{
	return state == 'R' || state == 'D';
}

/* Collecting -------------------------------------------------------------- */

static void measure(struct top *top)
{
	top->begin_ns = UINT64_MAX;
	for (size_t i = 0; i < top->profile->recordings.count; i++) {
		const struct ss_profile_recording *r = &top->profile->recordings.items[i];
		if (!r->ticks.count)
			continue;
		top->ticks += r->ticks.count;
		top->missed += r->missed;
		top->begin_ns = SS_MIN(top->begin_ns, r->ticks.items[0]);
		top->end_ns = SS_MAX(top->end_ns,
				     r->ticks.items[r->ticks.count - 1] +
					     SS_MIN(r->period_ns, SS_NS_PER_SECOND));
	}
	if (!top->ticks)
		top->begin_ns = top->end_ns = 0;
}

static int compare_tids(const void *a, const void *b)
{
	const struct thread *x = a;
	const struct thread *y = b;

	return SS_COMPARE(x->tid, y->tid) ?: SS_COMPARE(x->last_ns, y->last_ns);
}

static bool add_thread(struct top *top, const struct ss_profile_thread *from)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(top->profile, from);
	const struct ss_profile_run *last = &from->runs.items[from->runs.count - 1];
	struct thread *thread = ss_vector_push(&top->threads);

	if (!thread)
		return false;
	*thread = (struct thread){
		.tid = from->tid,
		.name = from->name,
		.state = ss_profile_state(last),
		.last_ns = recording->ticks.items[SS_MIN((size_t)last->tick + last->count,
							 recording->ticks.count) -
						  1],
		.last = last,
		.function = SS_ID_NONE,
	};
	for (size_t i = 0; i < from->runs.count; i++)
		thread->cpu_ns += from->runs.items[i].cpu_ns;
	return true;
}

/* Those that are in the last tick. */
static bool collect_threads(struct top *top)
{
	uint64_t latest_ns = 0;
	size_t kept = 0;

	for (size_t i = 0; i < top->profile->threads.count; i++) {
		const struct ss_profile_thread *thread = &top->profile->threads.items[i];
		if (thread->runs.count && !add_thread(top, thread))
			return false;
	}
	if (top->threads.count > 1)
		qsort(top->threads.items, top->threads.count, sizeof(*top->threads.items),
		      compare_tids);
	for (size_t i = 0; i < top->threads.count; i++) {
		struct thread *thread = &top->threads.items[i];
		struct thread *before = kept ? &top->threads.items[kept - 1] : NULL;
		latest_ns = SS_MAX(latest_ns, thread->last_ns);
		if (before && before->tid == thread->tid) {
			thread->cpu_ns += before->cpu_ns;
			*before = *thread;
		} else {
			top->threads.items[kept++] = *thread;
		}
	}
	top->threads.count = kept;
	kept = 0;
	for (size_t i = 0; i < top->threads.count; i++) {
		if (top->threads.items[i].last_ns == latest_ns)
			top->threads.items[kept++] = top->threads.items[i];
	}
	top->threads.count = kept;
	return true;
}

/* The innermost call of a runtime on the stack, or SS_ID_NONE. */
static uint32_t runtime_function(const struct top *top, const struct ss_profile_run *run)
{
	const struct ss_profile *profile = &top->condensed->profile;
	uint32_t node = profile->node_of.items[run->call];

	for (; node; node = ss_profile_node_at(profile, node)->parent) {
		uint32_t function = ss_profile_node_at(profile, node)->function;
		if (ss_profile_function_at(profile, function)->kind != SS_FRAME_NATIVE)
			return function;
	}
	return SS_ID_NONE;
}

/* The function of each thread: the innermost one of its language, not of a library of it. */
static bool find_functions(struct top *top)
{
	_cleanup_(ss_hottest_cleanup) struct ss_hottest *hottest =
		ss_hottest_new(top->condensed);

	if (!hottest)
		return false;
	for (size_t i = 0; i < top->threads.count; i++) {
		struct thread *thread = &top->threads.items[i];
		thread->function = runtime_function(top, thread->last);
		if (thread->function != SS_ID_NONE)
			continue;
		ss_hottest_add(hottest, thread->last);
		if (!ss_hottest_take(hottest, &thread->function))
			thread->function = SS_ID_NONE;
	}
	return true;
}

static void empty_idle_runs(struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		for (size_t r = 0; r < profile->threads.items[i].runs.count; r++) {
			struct ss_profile_run *run =
				&profile->threads.items[i].runs.items[r];
			if (!is_active(run->state))
				run->count = 0;
		}
	}
}

static bool collect_functions(struct top *top)
{
	const struct ss_profile *profile = &top->condensed->profile;

	if (!top->view->idle)
		empty_idle_runs(top->profile);
	top->weights = ss_weights_new(profile, SS_SAMPLES_ALL);
	if (!top->weights)
		return false;
	for (size_t i = 0; i < profile->functions.count; i++) {
		const struct ss_weight *weight = &top->weights->functions[i];
		if (!weight->total || ss_profile_function_at(profile, i)->is_end)
			continue;
		struct function *function = ss_vector_push(&top->functions);
		if (!function)
			return false;
		*function = (struct function){ (uint32_t)i, weight->self, weight->total };
	}
	return true;
}

/* Selecting --------------------------------------------------------------- */

static const char *function_name(const struct top *top, uint32_t function)
{
	return function == SS_ID_NONE ?
		       "" :
		       ss_profile_function_at(&top->condensed->profile, function)->name;
}

static bool matches(const struct top *top, const char *text)
{
	const char *filter = top->view->filter;

	return !filter || !*filter || strcasestr(text, filter);
}

static bool shows_thread(const struct top *top, const struct thread *thread)
{
	char tid[16];

	(void)snprintf(tid, sizeof(tid), "%d", thread->tid);
	return (top->view->idle || is_active(thread->state) || thread->cpu_ns ||
		(top->view->filter && *top->view->filter)) &&
	       (matches(top, thread->name) || matches(top, tid) ||
		matches(top, function_name(top, thread->function)));
}

static void select_rows(struct top *top)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->functions.count; i++) {
		if (matches(top, function_name(top, top->functions.items[i].index)))
			top->functions.items[kept++] = top->functions.items[i];
	}
	top->functions.count = kept;
	kept = 0;
	for (size_t i = 0; i < top->threads.count; i++) {
		if (shows_thread(top, &top->threads.items[i]))
			top->threads.items[kept++] = top->threads.items[i];
	}
	top->threads.count = kept;
}

static int compare_functions(const void *a, const void *b, void *data)
{
	const struct function *x = a;
	const struct function *y = b;
	const struct top *top = data;
	enum ss_top_sort sort = top->view->sort;
	int order = 0;

	if (sort == SS_TOP_NAME)
		order = strcmp(function_name(top, x->index),
			       function_name(top, y->index));
	else if (sort == SS_TOP_TOTAL)
		order = SS_COMPARE(y->total, x->total);
	return order				      ?:
		       SS_COMPARE(y->self, x->self)   ?:
		       SS_COMPARE(y->total, x->total) ?:
							SS_COMPARE(x->index, y->index);
}

/* Threads that run come first. */
static int state_rank(char state)
{
	const char *order = "RDTtS";
	const char *at = state ? strchr(order, state) : NULL;

	return at ? (int)(at - order) : (int)strlen(order);
}

static int compare_threads(const void *a, const void *b, void *data)
{
	const struct thread *x = a;
	const struct thread *y = b;
	const struct top *top = data;
	int order = 0;

	if (top->view->sort == SS_TOP_NAME)
		order = strcmp(x->name, y->name);
	else if (top->view->sort == SS_TOP_STATE)
		order = state_rank(x->state) - state_rank(y->state);
	return order						   ?:
		       SS_COMPARE(y->cpu_ns, x->cpu_ns)		   ?:
		       state_rank(x->state) - state_rank(y->state) ?:
		       SS_COMPARE(x->tid, y->tid);
}

/* Writing ----------------------------------------------------------------- */

/* Writes one line of text, which is freed, as wide as the screen. Characters that take two
   columns count as one; a terminal cuts what is too long. */
static void write_cut(const struct top *top, char *text, enum ss_style style)
{
	_cleanup_free_ char *owned = text;
	size_t size = 0;
	size_t columns = 0;

	while (owned && owned[size]) {
		size_t step = ss_escape_safe_size(owned + size);
		if (top->view->columns && columns == top->view->columns)
			break;
		size += step ? step : 1;
		columns++;
	}
	ss_style_write(style, top->view->color && style, top->out);
	(void)fwrite(owned ? owned : "?", 1, owned ? size : 1, top->out);
	ss_style_write(SS_STYLE_NONE, top->view->color && style, top->out);
	(void)fputc('\n', top->out);
}

/* Writes the line that a function writes; without memory "?". */
static void print_line(const struct top *top,
		       void (*write)(const struct top *top, size_t index, FILE *out),
		       size_t index, enum ss_style style)
{
	struct ss_text_stream line;

	if (!ss_text_stream_open(&line)) {
		write_cut(top, NULL, style);
		return;
	}
	write(top, index, line.out);
	write_cut(top, ss_text_stream_close(&line), style);
}

static double cpu_percent(const struct top *top, uint64_t cpu_ns)
{
	uint64_t window_ns = top->end_ns - top->begin_ns;

	return window_ns ? percent * (double)cpu_ns / (double)window_ns : 0;
}

static void write_heading(const struct top *top, size_t index, FILE *out)
{
	const struct ss_profile_process *process =
		top->profile->processes.count ?
			&top->profile->processes
				 .items[top->profile->processes.count - 1] :
			NULL;
	size_t running = 0;
	uint64_t cpu_ns = 0;

	(void)index; /* there is one */
	for (size_t i = 0; i < top->threads.count; i++) {
		running += top->threads.items[i].state == 'R';
		cpu_ns += top->threads.items[i].cpu_ns;
	}
	ss_escape_write(process ? process->name : "?", NULL, out);
	(void)fprintf(out,
		      " %d: %s, %zu running, CPU %.0f %%; last %.1f s, %.0f samples/s",
		      process ? process->pid : 0,
		      ss_quantity_things(top->threads.count, "thread").text, running,
		      cpu_percent(top, cpu_ns),
		      (double)(top->end_ns - top->begin_ns) / (double)SS_NS_PER_SECOND,
		      top->end_ns > top->begin_ns ?
			      (double)top->ticks * (double)SS_NS_PER_SECOND /
				      (double)(top->end_ns - top->begin_ns) :
			      0.0);
	if (top->missed)
		(void)fprintf(out, ", %.0f %% missed",
			      percent * (double)top->missed /
				      (double)(top->missed + top->ticks));
}

/* "module: " is left out where the name contains it. */
static void write_name(const struct top *top, uint32_t function, FILE *out)
{
	const struct ss_format_options options = { .size = sizeof(options) };

	if (function != SS_ID_NONE)
		ss_text_profile_function(top->condensed, function,
					 &top->condensed->functions[function], &options,
					 out);
}

static void write_function(const struct top *top, size_t index, FILE *out)
{
	const struct function *function = &top->functions.items[index];
	double ticks = top->ticks ? (double)top->ticks : 1;

	(void)fprintf(out, "%7.1f %7.1f  ", percent * (double)function->self / ticks,
		      percent * (double)function->total / ticks);
	write_name(top, function->index, out);
}

static void write_thread(const struct top *top, size_t index, FILE *out)
{
	const struct thread *thread = &top->threads.items[index];

	(void)fprintf(out, "%7.1f  %c %8d  ", cpu_percent(top, thread->cpu_ns),
		      thread->state, thread->tid);
	long begin = ftell(out);
	ss_escape_write(thread->name, NULL, out);
	(void)fprintf(out, "%*s", (int)SS_MAX(18 - (ftell(out) - begin), 2L), "");
	write_name(top, thread->function, out);
}

/* The next line of the waits that is to be shown; NULL: none. */
static char *next_wait(const struct top *top, const char **at)
{
	while (**at) {
		size_t size = strcspn(*at, "\n");
		char *line = strndup(*at, size);
		*at += size + ((*at)[size] == '\n');
		if (!line || matches(top, line))
			return line;
		free(line);
	}
	return NULL;
}

static size_t count_waits(const struct top *top)
{
	const char *at = top->view->waits ? top->view->waits : "";
	size_t count = 0;

	for (char *line = next_wait(top, &at); line; line = next_wait(top, &at)) {
		count++;
		free(line);
	}
	return count;
}

static void write_waits(const struct top *top, size_t first, size_t end)
{
	const char *at = top->view->waits ? top->view->waits : "";
	size_t index = 0;

	for (char *line = next_wait(top, &at); line;
	     line = next_wait(top, &at), index++) {
		if (index >= first && index < end)
			write_cut(top, line, SS_STYLE_NONE);
		else
			free(line);
	}
}

static void write_title(const struct top *top, enum ss_top_part part)
{
	static const char *const titles[] = {
		[SS_TOP_FUNCTIONS] =
			"  OWN %  TOTAL %  FUNCTION (100 %: one thread all the time)",
		[SS_TOP_THREADS] = "  CPU %  S      TID  NAME              FUNCTION",
	};
	char text[128];

	if (part != SS_TOP_WAITS) {
		write_cut(top, strdup(titles[part]), SS_STYLE_STRONG);
		return;
	}
	if (!top->view->waits)
		(void)snprintf(text, sizeof(text), "WAITS (being read)");
	else if (top->view->waits_age_ns > 2 * SS_NS_PER_SECOND)
		(void)snprintf(text, sizeof(text), "COUNT  WAIT (%.0f s ago)",
			       (double)top->view->waits_age_ns /
				       (double)SS_NS_PER_SECOND);
	else
		(void)snprintf(text, sizeof(text), "COUNT  WAIT");
	write_cut(top, strdup(text), SS_STYLE_STRONG);
}

static void write_part(const struct top *top, enum ss_top_part part, size_t lines)
{
	size_t count = part == SS_TOP_FUNCTIONS ? top->functions.count :
		       part == SS_TOP_THREADS	? top->threads.count :
						  SIZE_MAX;
	size_t first = SS_MIN(top->view->skip, count);

	if (lines == 0)
		return;
	write_title(top, part);
	size_t end = first + SS_MIN(lines - 1, count - first);
	if (part == SS_TOP_WAITS)
		write_waits(top, first, end);
	for (size_t i = first; part != SS_TOP_WAITS && i < end; i++)
		print_line(top, part == SS_TOP_FUNCTIONS ? write_function : write_thread,
			   i, SS_STYLE_NONE);
}

/* Divides lines among the parts: what one does not need is for the others. */
static void divide(const struct top *top, size_t *ret)
{
	size_t needs[PARTS] = {
		[SS_TOP_FUNCTIONS] = top->functions.count + 1,
		[SS_TOP_THREADS] = top->threads.count + 1,
		[SS_TOP_WAITS] = count_waits(top) + 1,
	};
	size_t left = top->view->lines > HEADINGS - 1 ? top->view->lines - 1 : 0;
	size_t parts = PARTS - 1;

	if (!top->view->lines)
		left = (PARTS - 1) * ((size_t)top->view->rows + 1);
	for (size_t part = 1; part < PARTS; part++) {
		bool only = top->view->part != SS_TOP_ALL &&
			    (size_t)top->view->part != part;
		if (only || (top->view->lines && top->view->lines < ALL_MIN &&
			     top->view->part == SS_TOP_ALL && part != SS_TOP_FUNCTIONS))
			needs[part] = 0;
		if (!top->view->lines)
			needs[part] = SS_MIN(needs[part], (size_t)top->view->rows + 1);
	}
	/* The smallest need first. */
	for (bool done[PARTS] = {}; parts; parts--) {
		size_t least = 0;
		for (size_t part = 1; part < PARTS; part++) {
			if (!done[part] && (!least || needs[part] < needs[least]))
				least = part;
		}
		done[least] = true;
		ret[least] = SS_MIN(needs[least], left / parts);
		left -= ret[least];
	}
}

static void write_screen(struct top *top)
{
	size_t lines[PARTS] = {};

	print_line(top, write_heading, 0, SS_STYLE_STRONG);
	select_rows(top);
	if (top->functions.count > 1)
		qsort_r(top->functions.items, top->functions.count,
			sizeof(*top->functions.items), compare_functions, top);
	if (top->threads.count > 1)
		qsort_r(top->threads.items, top->threads.count,
			sizeof(*top->threads.items), compare_threads, top);
	divide(top, lines);
	if (top->view->filter && *top->view->filter && top->functions.count == 0 &&
	    top->threads.count == 0 && count_waits(top) == 0)
		write_cut(top, strdup("no function, thread or wait contains the filter"),
			  SS_STYLE_WARN);
	for (int part = SS_TOP_FUNCTIONS; part < PARTS; part++)
		write_part(top, (enum ss_top_part)part, lines[part]);
}

struct ss_error *ss_top_write(struct ss_profile *profile, const struct ss_top_view *view,
			      FILE *out)
{
	__attribute__((cleanup(top_deinit))) struct top top = { .profile = profile,
								.view = view,
								.out = out };

	measure(&top);
	top.condensed = ss_condensed_new(profile, false);
	if (!top.condensed || !collect_threads(&top) || !find_functions(&top) ||
	    !collect_functions(&top))
		return ss_error_no_memory();
	write_screen(&top);
	return NULL;
}

/*
 * What the threads of a snapshot wait for, one line for each wait.
 */

static struct ss_error *collect(const struct ss_snapshot *snapshot, bool all,
				struct ss_wait_lines *ret)
{
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, false);

	if (!grouping)
		return ss_error_no_memory();
	for (size_t i = 0; i < grouping->count; i++) {
		const struct ss_group *group = &grouping->groups[i];
		const struct ss_task *thread = *group->members;
		if (!thread->wait || thread->state == 'R' ||
		    (group->class == SS_GROUP_IDLE && !all))
			continue;
		struct ss_wait wait = *thread->wait;
		wait.syscall = NULL; /* it is not shown */
		if (!ss_wait_lines_add(ret, group->class, &wait, thread))
			return ss_error_no_memory();
	}
	return NULL;
}

static void write_line(const struct ss_wait_line *line, FILE *out)
{
	const bool said = line->class == SS_GROUP_DEADLOCK ||
			  line->class == SS_GROUP_BLOCKED || line->class == SS_GROUP_IDLE;

	(void)fprintf(out, "%5zu  %-13s ", line->count,
		      said ? ss_group_class_words(line->class) : "");
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
	__attribute__((cleanup(ss_wait_lines_deinit))) struct ss_wait_lines lines = {};
	struct ss_error *error = collect(snapshot, options->all, &lines);

	if (error)
		return error;
	ss_wait_lines_merge(&lines);
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
