/*
 * A profile for people: the recordings, deadlocks, the hottest functions, states, threads,
 * waits, the call tree, and what is missing.
 */
#include "report/text.h"

#include <string.h>

#include "report/print.h"
#include "report/names.h"
#include "report/durations.h"
#include "report/profile.h"
#include "report/profile_condense.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"
#include "base/bytes.h"
#include "base/search.h"

/* What the parts of a profile as text share. */

/* A level is two columns. A function that is all its caller does stays on the caller's
   level, so that a chain of calls is not indented. */
enum { LEVELS_MAX = 60 };

struct branch {
	uint32_t node; /* SS_ID_NONE: the omitted siblings, see rest */
	unsigned level;
	uint64_t rest; /* samples of the omitted siblings */
};

struct tree {
	const struct ss_condensed *condensed;
	const struct ss_weights *weights;
	const struct ss_format_options *options;
	FILE *out;
	SS_VECTOR(struct branch) pending; /* a stack: the last is written next */
};

static bool is_shown(const struct tree *tree, uint32_t node)
{
	uint64_t total = tree->weights->nodes[node].total;

	return total > 0 &&
	       100.0 * (double)total >=
		       tree->options->threshold * (double)tree->weights->profile->weight;
}

static void write_node(const struct tree *tree, const struct branch *branch)
{
	const struct ss_weights *weights = tree->weights;
	const struct ss_profile_node *node =
		ss_profile_node_at(weights->profile, branch->node);

	ss_text_profile_share(weights->nodes[branch->node].total,
			      weights->profile->weight, tree->out);
	(void)fprintf(tree->out, "  %*s", 2 * (int)branch->level, "");
	ss_text_profile_function(tree->condensed, node->function,
				 &tree->condensed->nodes[branch->node], tree->options,
				 tree->out);
	(void)fputc('\n', tree->out);
}

/* The heaviest last, since the last is written first. */
static int compare_branches(const void *a, const void *b, void *data)
{
	const struct ss_weight *nodes = data;
	const struct branch *x = a;
	const struct branch *y = b;

	return SS_COMPARE(nodes[x->node].total, nodes[y->node].total) ?:
		       SS_COMPARE(y->node, x->node);
}

/* The omitted siblings come last, if together they exceed the threshold. False without
   memory. */
static bool push_rest(struct tree *tree, uint64_t rest)
{
	uint64_t samples = tree->weights->profile->weight;
	struct branch *branch;

	if (!rest || 100.0 * (double)rest < tree->options->threshold * (double)samples)
		return true;
	branch = ss_vector_push(&tree->pending);
	if (branch)
		*branch = (struct branch){ .node = SS_ID_NONE, .rest = rest };
	return branch;
}

static uint64_t omitted_samples(const struct tree *tree, uint32_t parent)
{
	const struct ss_weights *w = tree->weights;
	uint64_t rest = 0;

	for (uint32_t child = w->first[parent]; child != SS_ID_NONE;
	     child = w->next[child])
		rest += is_shown(tree, child) ? 0 : w->nodes[child].total;
	return rest;
}

static bool push_shown(struct tree *tree, uint32_t parent)
{
	const struct ss_weights *w = tree->weights;

	for (uint32_t child = w->first[parent]; child != SS_ID_NONE;
	     child = w->next[child]) {
		if (!is_shown(tree, child))
			continue;
		struct branch *branch = ss_vector_push(&tree->pending);
		if (!branch)
			return false;
		branch->node = child;
	}
	return true;
}

static bool push_children(struct tree *tree, const struct branch *parent)
{
	const struct ss_weights *w = tree->weights;
	uint64_t rest = omitted_samples(tree, parent->node);
	size_t begin = tree->pending.count;

	if (!push_rest(tree, rest))
		return false;
	size_t first = tree->pending.count;
	if (!push_shown(tree, parent->node))
		return false;
	size_t count = tree->pending.count - first;
	bool straight = count == 1 && rest == 0 && w->nodes[parent->node].self == 0;
	unsigned level = straight || parent->node == 0 ?
				 parent->level :
				 SS_MIN(parent->level + 1, (unsigned)LEVELS_MAX);
	for (size_t i = begin; i < tree->pending.count; i++)
		tree->pending.items[i].level = level;
	if (count)
		qsort_r(tree->pending.items + first, count, sizeof(struct branch),
			compare_branches, w->nodes);
	return true;
}

static void write_rest(const struct tree *tree, const struct branch *branch)
{
	ss_text_profile_share(branch->rest, tree->weights->profile->weight, tree->out);
	(void)fprintf(tree->out, "  %*s[below the threshold]\n", 2 * (int)branch->level,
		      "");
}

/* Writes the call tree, the heaviest branches first, without those below the threshold.
   weights are those of the condensed profile. */
static bool text_profile_tree(const struct ss_condensed *condensed,
			      const struct ss_weights *weights,
			      const struct ss_format_options *options, FILE *out)
{
	struct tree tree = {
		.condensed = condensed, .weights = weights, .options = options, .out = out
	};
	struct branch branch = {};
	bool whole = push_children(&tree, &branch);

	while (whole && tree.pending.count) {
		branch = tree.pending.items[--tree.pending.count];
		if (branch.node == SS_ID_NONE) {
			write_rest(&tree, &branch);
			continue;
		}
		write_node(&tree, &branch);
		whole = push_children(&tree, &branch);
	}
	ss_vector_free(&tree.pending);
	return whole;
}

enum { READY_MIN_NS = 1000 * 1000 };

struct row {
	uint32_t index;
	uint64_t samples;
	uint64_t running;
	uint64_t cpu_ns;
	uint64_t ready_ns;
};

static int compare(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	return SS_COMPARE(y->running, x->running)	  ?:
		       SS_COMPARE(y->samples, x->samples) ?:
							    SS_COMPARE(x->index, y->index);
}

struct breakdown {
	const struct ss_condensed *condensed;
	const struct ss_profile *profile;
	const struct ss_format_options *options;
	struct ss_hottest *hottest;
	FILE *out;
};

/* "; 60 % in net_real_write (mariadbd)": of the samples in the set, which is emptied. */
static void write_hottest(const struct breakdown *b, uint64_t samples)
{
	uint32_t function = 0;
	uint64_t count = ss_hottest_take(b->hottest, &function);

	if (!count || !samples)
		return;
	(void)fprintf(b->out, "; %.0f %% in ", 100.0 * (double)count / (double)samples);
	ss_text_profile_function(b->condensed, function,
				 &b->condensed->functions[function], b->options, b->out);
}

/* Counts the samples in a state, and adds them to the set of b->hottest. */
static uint64_t count_state(const struct breakdown *b, char state)
{
	uint64_t count = 0;

	for (size_t t = 0; t < b->profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &b->profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			const struct ss_profile_run *run = &thread->runs.items[r];
			if (run->state != state)
				continue;
			count += run->count;
			ss_hottest_add(b->hottest, run);
		}
	}
	return count;
}

static void count_thread(const struct ss_profile_thread *thread, struct row *row)
{
	for (size_t r = 0; r < thread->runs.count; r++) {
		const struct ss_profile_run *run = &thread->runs.items[r];
		row->samples += run->count;
		row->cpu_ns += run->cpu_ns;
		row->ready_ns += run->ready_ns;
		if (run->state == 'R')
			row->running += run->count;
	}
}

/* Of the samples of threads in state R, how many found them waiting for a CPU: a sample
   does not say it, so they are divided like the time that a thread ran and waited. In
   samples of CPUs all of them ran. */
static uint64_t count_waiting(const struct breakdown *b)
{
	double waiting = 0;

	for (size_t t = 0; t < b->profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &b->profile->threads.items[t];
		struct row row = {};
		count_thread(thread, &row);
		uint64_t time_ns = row.cpu_ns + row.ready_ns;
		if (time_ns &&
		    ss_profile_recording_of(b->profile, thread)->scope != SS_SCOPE_CPUS)
			waiting += (double)row.running * (double)row.ready_ns /
				   (double)time_ns;
	}
	return (uint64_t)(waiting + 0.5);
}

/* See ss_unsampled_add(). */
static void write_unsampled(const struct breakdown *b)
{
	uint64_t count = 0;

	for (size_t i = 0; i < b->profile->recordings.count; i++)
		count += b->profile->recordings.items[i].unsampled;
	if (!count)
		return;
	ss_text_profile_share(count, b->profile->samples, b->out);
	(void)fputs("     CPU time in no sample, [not sampled]: mostly thread switches, "
		    "which the CPU clock does not interrupt\n",
		    b->out);
}

static void write_waiting(const struct breakdown *b, uint64_t count)
{
	uint64_t waiting = SS_MIN(count_waiting(b), count);

	if (!waiting)
		return;
	ss_text_profile_share(count - waiting, b->profile->samples, b->out);
	(void)fputs("     on a CPU\n", b->out);
	ss_text_profile_share(waiting, b->profile->samples, b->out);
	(void)fputs("     waiting for a CPU\n", b->out);
}

static void write_states(const struct breakdown *b)
{
	uint64_t rest = b->profile->samples;

	ss_text_profile_heading("States", b->options, b->out);
	for (const char *state = SS_STATE_LETTERS; *state; state++) {
		uint64_t count = count_state(b, *state);
		rest -= count;
		if (!count)
			continue;
		ss_text_profile_share(count, b->profile->samples, b->out);
		(void)fprintf(b->out, "  %c  %s", *state, ss_state_name(*state));
		write_hottest(b, count);
		(void)fputc('\n', b->out);
		if (*state != 'R')
			continue;
		write_waiting(b, count);
		write_unsampled(b);
	}
	if (rest) {
		ss_text_profile_share(rest, b->profile->samples, b->out);
		(void)fputs("  ?  unknown\n", b->out);
	}
}

/* Where it runs, or, if it never ran, where it waits. */
static void write_thread_hottest(const struct breakdown *b, const struct row *row)
{
	const struct ss_profile_thread *thread = &b->profile->threads.items[row->index];

	for (size_t r = 0; r < thread->runs.count; r++) {
		if (!row->running || thread->runs.items[r].state == 'R')
			ss_hottest_add(b->hottest, &thread->runs.items[r]);
	}
	write_hottest(b, row->running ? row->running : row->samples);
}

static void write_thread(const struct breakdown *b, const struct row *row)
{
	const struct ss_profile *profile = b->profile;
	const struct ss_profile_thread *thread = &profile->threads.items[row->index];

	ss_text_profile_share(row->running, row->samples, b->out);
	(void)fprintf(b->out, " of %8llu  ", (unsigned long long)row->samples);
	ss_escape_write(thread->name, NULL, b->out);
	if (thread->task) {
		(void)fputc(' ', b->out);
		ss_escape_write(thread->task, NULL, b->out);
	} else {
		(void)fprintf(b->out, " %d", thread->tid);
	}
	if (profile->processes.count > 1) {
		const struct ss_profile_process *process =
			&profile->processes.items[thread->process];
		(void)fputs(" (", b->out);
		ss_escape_write(process->name, NULL, b->out);
		(void)fprintf(b->out, " %d)", process->pid);
	}
	if (row->cpu_ns)
		(void)fprintf(b->out, ", CPU time %s",
			      ss_quantity_time(row->cpu_ns).text);
	if (row->ready_ns >= READY_MIN_NS)
		(void)fprintf(b->out, ", waited for a CPU %s",
			      ss_quantity_time(row->ready_ns).text);
	write_thread_hottest(b, row);
	(void)fputc('\n', b->out);
}

static bool write_threads(const struct breakdown *b)
{
	size_t count = b->profile->threads.count;
	_cleanup_free_ struct row *rows = calloc(count + 1, sizeof(*rows));

	if (!rows)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		rows[i].index = i;
		count_thread(&b->profile->threads.items[i], &rows[i]);
	}
	qsort(rows, count, sizeof(*rows), compare);
	ss_text_profile_heading(
		"Threads, by the share of their samples in which they ran", b->options,
		b->out);
	for (size_t i = 0; i < count; i++) {
		if (i == b->options->rows && !b->options->verbose) {
			(void)fprintf(b->out, "  and %zu more (-v lists them)\n",
				      count - i);
			break;
		}
		write_thread(b, &rows[i]);
	}
	return true;
}

/* Writes the samples by state and by thread, each with its hottest function. */
static bool text_profile_threads(const struct ss_condensed *condensed,
				 const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_hottest_cleanup) struct ss_hottest *hottest =
		ss_hottest_new(condensed);
	const struct breakdown b = { condensed, &condensed->profile, options, hottest,
				     out };

	if (!hottest)
		return false;
	write_states(&b);
	return write_threads(&b);
}

/*
 * The traced functions of a profile: how often each was hit, and how long its scopes took.
 */

struct counts {
	uint64_t events;
	uint64_t left; /* scopes that ended without a return, */
	uint64_t open; /* or did not end */
};

static void write_probe(const struct ss_profile *profile,
			const struct ss_profile_probe *probe, const struct counts *counts,
			FILE *out)
{
	const char *path = probe->module == SS_ID_NONE ?
				   NULL :
				   profile->modules.items[probe->module].path;

	(void)fprintf(out, "  %s of ", ss_quantity_things(counts->events, "hit").text);
	ss_escape_write(probe->name, NULL, out);
	if (path) {
		(void)fputs(" (", out);
		ss_escape_write(ss_path_base(path), NULL, out);
		(void)fputc(')', out);
	}
	if (counts->left)
		(void)fprintf(out, ", %s left without a return",
			      ss_quantity_count(counts->left).text);
	if (counts->open)
		(void)fprintf(out, ", %s still open at the end",
			      ss_quantity_count(counts->open).text);
	(void)fputc('\n', out);
}

static struct counts *count_events(const struct ss_profile *profile)
{
	struct counts *counts = calloc(profile->probes.count + 1, sizeof(*counts));

	for (size_t i = 0; counts && i < profile->events.count; i++) {
		const struct ss_profile_event *event = &profile->events.items[i];
		counts[event->probe].events++;
		counts[event->probe].left += event->kind == SS_TRACE_LEFT;
		counts[event->probe].open += event->kind == SS_TRACE_OPEN ||
					     event->kind == SS_TRACE_ENTER;
	}
	return counts;
}

static void write_totals(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->traces.count; i++) {
		const struct ss_trace_summary *totals = &profile->traces.items[i].totals;
		(void)fputs("  ", out);
		if (profile->recordings.count > 1) {
			ss_escape_write(profile->recordings
						.items[profile->traces.items[i].recording]
						.file,
					NULL, out);
			(void)fputs(": ", out);
		}
		ss_trace_write_totals(totals, out);
	}
}

/* Writes the functions of traces, with the durations of their scopes. */
static bool text_profile_trace(const struct ss_profile *profile,
			       const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ struct counts *counts = count_events(profile);
	_cleanup_free_ struct ss_durations *durations = ss_profile_durations(profile);

	if (!counts || !durations)
		return false;
	if (profile->events.count == 0)
		return true;
	ss_text_profile_heading("Traced functions", options, out);
	for (size_t i = 0; i < profile->probes.count; i++) {
		if (!counts[i].events)
			continue;
		write_probe(profile, ss_profile_probe_at(profile, i), &counts[i], out);
		if (!durations[i].count)
			continue;
		(void)fputs("  ", out);
		ss_durations_write_line(&durations[i], out);
		ss_durations_write(&durations[i], out);
	}
	write_totals(profile, out);
	return true;
}

static void write_recording(const struct ss_profile_recording *recording, FILE *out)
{
	ss_escape_write(recording->file, NULL, out);
	if (recording->more)
		(void)fprintf(out, " and %s",
			      ss_quantity_things(recording->more, "later snapshot").text);
	(void)fprintf(out, ": %s", ss_quantity_date(recording->start_ns).text);
	if (recording->host && *recording->host) {
		(void)fputs(" on ", out);
		ss_escape_write(recording->host, NULL, out);
	}
	if (recording->machine && *recording->machine) {
		(void)fputs(" (", out);
		ss_escape_write(recording->machine, NULL, out);
		(void)fputc(')', out);
	}
	(void)fputs(", ", out);
	bool events = recording->scope == SS_SCOPE_EVENTS;
	(void)fputs_unlocked(
		ss_quantity_things(recording->ticks.count, events ? "hit" : "tick").text,
		out);
	if (recording->period_ns)
		(void)fprintf(out, " at %.4g Hz", 1e9 / (double)recording->period_ns);
	if (recording->missed)
		(void)fprintf(out, ", %s missed",
			      ss_quantity_count(recording->missed).text);
	if (recording->scope == SS_SCOPE_CPUS)
		(void)fputs(", threads on a CPU (perf events)", out);
	else if (recording->scope == SS_SCOPE_RUNNING)
		(void)fputs(", running threads, which were stopped: short bursts "
			    "are missing (no perf events)",
			    out);
	else if (events)
		(void)fputs(" of traced functions", out);
	(void)fputc('\n', out);
}

/* "12 threads, 30 goroutines and 4 tasks" */
static void write_profile_threads(const struct ss_profile *profile, FILE *out)
{
	const size_t tasks = profile->task_counts[SS_TASK_ASYNCIO];
	const size_t goroutines = profile->task_counts[SS_TASK_GOROUTINE];

	(void)fputs_unlocked(
		ss_quantity_things(profile->threads.count - tasks - goroutines, "thread")
			.text,
		out);
	if (goroutines)
		(void)fprintf(out, "%s%s", tasks ? ", " : " and ",
			      ss_quantity_things(goroutines, "goroutine").text);
	if (tasks)
		(void)fprintf(out, " and %s", ss_quantity_things(tasks, "task").text);
}

static void write_head(const struct ss_profile *profile,
		       const struct ss_format_options *options, FILE *out)
{
	for (size_t i = 0; i < profile->recordings.count; i++)
		write_recording(&profile->recordings.items[i], out);
	for (size_t i = 0; i < profile->processes.count; i++) {
		const struct ss_profile_process *p = &profile->processes.items[i];
		if (i == options->rows && !options->verbose) {
			(void)fprintf(out, "... and %zu more processes (-v lists them)\n",
				      profile->processes.count - i);
			break;
		}
		ss_escape_write(p->name, NULL, out);
		(void)fprintf(out, ", pid %d", p->pid);
		if (p->executable) {
			(void)fputs(", ", out);
			ss_escape_write(p->executable, NULL, out);
		}
		(void)fputc('\n', out);
	}
	(void)fprintf(out, "%s of ", ss_quantity_things(profile->samples, "sample").text);
	write_profile_threads(profile, out);
	(void)fputc('\n', out);
}

struct hot {
	uint32_t function;
	struct ss_weight weight;
};

static int compare_hot(const void *a, const void *b)
{
	const struct hot *x = a;
	const struct hot *y = b;

	return SS_COMPARE(y->weight.self, x->weight.self)	    ?:
		       SS_COMPARE(y->weight.total, x->weight.total) ?:
		       SS_COMPARE(x->function, y->function);
}

/* title, or NULL: of all samples */
static bool write_functions(const struct ss_condensed *condensed,
			    const struct ss_weights *weights, const char *title,
			    size_t rows, const struct ss_format_options *options,
			    FILE *out)
{
	const struct ss_profile *profile = weights->profile;
	size_t count = profile->functions.count;
	_cleanup_free_ struct hot *hot = calloc(count + 1, sizeof(*hot));
	char text[128] = "    self     total  function, by time in scopes";

	if (!hot)
		return false;
	for (uint32_t i = 0; i < count; i++)
		hot[i] = (struct hot){ i, weights->functions[i] };
	qsort(hot, count, sizeof(*hot), compare_hot);
	if (title)
		(void)snprintf(text, sizeof(text), "    self     total  function, of %s",
			       title);
	else if (!profile->by_time)
		text[strlen("    self     total  function")] = '\0';
	ss_text_profile_heading(text, options, out);
	for (size_t i = 0; i < count && (options->verbose || i < rows); i++) {
		if (!hot[i].weight.self && (!options->verbose || !hot[i].weight.total))
			break;
		ss_text_profile_share(hot[i].weight.self, weights->weight, out);
		(void)fputs("  ", out);
		ss_text_profile_share(hot[i].weight.total, weights->weight, out);
		(void)fputs("  ", out);
		ss_text_profile_function(condensed, hot[i].function,
					 &condensed->functions[hot[i].function], options,
					 out);
		(void)fputc('\n', out);
	}
	return true;
}

/* What runs comes first; the functions in which threads wait would hide it. */
static bool write_all_functions(const struct ss_condensed *condensed,
				const struct ss_weights *weights,
				const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_weights_cleanup) struct ss_weights *on_cpu =
		ss_weights_new(&condensed->profile, SS_SAMPLES_ON_CPU);
	_cleanup_(ss_weights_cleanup) struct ss_weights *waiting =
		ss_weights_new(&condensed->profile, SS_SAMPLES_WAITING);
	char title[128];

	if (!on_cpu || !waiting)
		return false;
	if (weights->profile->by_time || !on_cpu->weight || !waiting->weight)
		return write_functions(condensed, weights, NULL, options->rows, options,
				       out);
	(void)snprintf(title, sizeof(title), "%s on a CPU (%.1f %%)",
		       ss_quantity_things(on_cpu->weight, "sample").text,
		       100.0 * (double)on_cpu->weight / (double)weights->weight);
	if (!write_functions(condensed, on_cpu, title, options->rows, options, out))
		return false;
	(void)snprintf(title, sizeof(title), "%s that waited",
		       ss_quantity_things(waiting->weight, "sample").text);
	return write_functions(condensed, waiting, title, (options->rows + 1) / 2,
			       options, out);
}

/* Functions without a name in one module. */
struct nameless {
	uint64_t functions; /* whose start is known */
	uint64_t addresses; /* others */
	uint64_t samples;   /* with one of them, counted for each */
};

static void count_nameless(const struct ss_condensed *condensed,
			   const struct ss_weights *weights, struct nameless *ret)
{
	const struct ss_profile *profile = &condensed->profile;

	for (uint32_t i = 0; i < profile->functions.count; i++) {
		const struct ss_profile_function *function =
			ss_profile_function_at(profile, i);
		if (!function->place || function->module == SS_ID_NONE)
			continue;
		struct nameless *nameless = &ret[function->module];
		nameless->functions += function->has_start;
		nameless->addresses += condensed->functions[i].count;
		nameless->samples += weights->functions[i].total;
	}
}

static void write_nameless_module(const struct ss_module *module,
				  const struct nameless *nameless, FILE *out)
{
	(void)fputs("  ", out);
	if (nameless->functions)
		(void)fputs_unlocked(
			ss_quantity_things(nameless->functions, "function").text, out);
	if (nameless->functions && nameless->addresses)
		(void)fputs(", ", out);
	if (nameless->addresses)
		(void)fputs_unlocked(
			ss_quantity_things(nameless->addresses, "address").text, out);
	(void)fputs(" in ", out);
	ss_escape_write(module->path, NULL, out);
	(void)fputs(" [", out);
	ss_escape_write(module->build_id, NULL, out);
	(void)fputs("]\n", out);
}

/* Lists modules that were found but have no symbols: their debug files would help. False
   without memory. */
static bool write_nameless(const struct ss_condensed *condensed,
			   const struct ss_weights *weights,
			   const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile *profile = &condensed->profile;
	double least = options->threshold * (double)profile->weight / 100.0;
	_cleanup_free_ struct nameless *nameless =
		calloc(profile->modules.count + 1, sizeof(*nameless));
	bool any = false;

	if (!nameless)
		return false;
	count_nameless(condensed, weights, nameless);
	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_module *module = &profile->modules.items[i];
		if (nameless[i].functions + nameless[i].addresses == 0 ||
		    !module->build_id || module->problem ||
		    (double)nameless[i].samples < least)
			continue;
		if (!any)
			ss_text_profile_heading(
				"Modules without symbols (debug files have them: "
				"see --debug-dir, --debuginfod)",
				options, out);
		any = true;
		write_nameless_module(module, &nameless[i], out);
	}
	return true;
}

/* Lists modules whose names rest on less than a build-id. */
static void write_by_file(const struct ss_profile *profile,
			  const struct ss_format_options *options, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_module *module = &profile->modules.items[i];
		if (!module->by_file || options->raw)
			continue;
		if (!any)
			ss_text_profile_heading("Modules without build-id (names rely on "
						"the size, headers and "
						"symbols of the files)",
						options, out);
		any = true;
		(void)fputs("  ", out);
		ss_escape_write(module->path, NULL, out);
		(void)fputs(" [file ", out);
		ss_escape_write(module->file.hash, NULL, out);
		(void)fputs("]\n", out);
	}
}

static void write_notes(const struct ss_profile *profile,
			const struct ss_format_options *options, FILE *out)
{
	if (profile->notes.count)
		ss_text_profile_heading("Missing", options, out);
	for (size_t i = 0; i < profile->notes.count; i++) {
		ss_style_write(SS_STYLE_WARN, options->color, out);
		(void)fputs("  ", out);
		ss_escape_write(profile->notes.items[i], NULL, out);
		ss_style_write(SS_STYLE_NONE, options->color, out);
		(void)fputc('\n', out);
	}
}

static bool write_tables(const struct ss_profile *profile,
			 const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ struct ss_chain *chains = ss_chains_new(profile);
	_cleanup_(ss_condensed_cleanup) struct ss_condensed *condensed =
		ss_condensed_new(profile, options->verbose || options->raw);
	_cleanup_(ss_weights_cleanup) struct ss_weights *weights =
		condensed ? ss_weights_new(&condensed->profile, SS_SAMPLES_ALL) : NULL;

	if (!chains || !weights ||
	    !ss_text_profile_deadlocks(profile, chains, options, out) ||
	    !text_profile_trace(profile, options, out) ||
	    !write_all_functions(condensed, weights, options, out) ||
	    (!ss_profile_is_trace(profile) &&
	     !text_profile_threads(condensed, options, out)) ||
	    !ss_text_profile_other_waits(profile, chains, options, out) ||
	    !ss_text_profile_waits(profile, options, out))
		return false;
	ss_text_profile_heading("Calls", options, out);
	if (!text_profile_tree(condensed, weights, options, out))
		return false;
	return write_nameless(condensed, weights, options, out);
}

struct ss_error *ss_text_write_profile(const struct ss_profile *profile,
				       const struct ss_format_options *options, FILE *out)
{
	write_head(profile, options, out);
	if (profile->samples && !write_tables(profile, options, out))
		return ss_error_no_memory();
	write_by_file(profile, options, out);
	write_notes(profile, options, out);
	return NULL;
}
