/*
 * The file format of speedscope (https://www.speedscope.app/file-format-schema.json): one
 * "sampled" profile for each thread, those that do most first. A stack weighs as long as
 * it was seen.
 */
#include <inttypes.h>
#include <string.h>

#include "report/jsontext.h"
#include "report/report.h"

static uint64_t activity(const struct ss_profile_thread *thread)
{
	uint64_t active = 0;

	for (size_t i = 0; i < thread->runs.count; i++) {
		if (thread->runs.items[i].state != 'S')
			active += thread->runs.items[i].count;
	}
	return active;
}

struct ranked {
	uint32_t thread;
	uint64_t activity;
};

static int compare(const void *a, const void *b)
{
	const struct ranked *x = a;
	const struct ranked *y = b;

	if (x->activity != y->activity)
		return x->activity < y->activity ? 1 : -1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void write_frames(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->functions.count; i++) {
		const struct ss_profile_function *f = ss_profile_function_at(profile, i);
		(void)fputs_unlocked(i ? ",{" : "{", out); /* ferror() later */
		ss_json_write_member("name", f->name, out);
		if (f->module != SS_NUMBER_NOT) {
			(void)fputc_unlocked(',', out);
			ss_json_write_member("file",
					     profile->modules.items[f->module].path, out);
		}
		(void)fputc_unlocked('}', out);
	}
}

/* Outermost first. */
static void write_stack(const struct ss_profile *profile, uint32_t call, uint32_t *path,
			FILE *out)
{
	uint32_t node = profile->node_of.items[call];
	size_t depth = 0;

	for (; node != 0; node = ss_profile_node_at(profile, node)->parent)
		path[depth++] = ss_profile_node_at(profile, node)->function;
	(void)fputc_unlocked('[', out);
	while (depth-- > 0)
		(void)fprintf(out, depth ? "%" PRIu32 "," : "%" PRIu32, path[depth]);
	(void)fputc_unlocked(']', out);
}

/* Writes parts of a thread's time, each with one stack, into one of the two lists. Call
   0: nobody looked, or it was not selected. */
struct pieces {
	const struct ss_profile *profile;
	bool lengths; /* or the stacks */
	bool any;
	uint32_t *path; /* room for the deepest stack */
	FILE *out;
};

static void put_piece(struct pieces *pieces, uint32_t call, uint64_t length_ns)
{
	if (length_ns == 0)
		return;
	(void)fputs_unlocked(pieces->any ? "," : "", pieces->out);
	pieces->any = true;
	if (pieces->lengths)
		(void)fprintf(pieces->out, "%" PRIu64, length_ns);
	else
		write_stack(pieces->profile, call, pieces->path, pieces->out);
}

/* Where so many ticks were missed that nobody knows what the thread did meanwhile. */
enum { GAP_PERIODS = 8 };

/* How long a tick stands for what was seen at it. */
static uint64_t seen_ns(const struct ss_profile_recording *recording, uint32_t tick)
{
	const struct ss_profile_run one = { .tick = tick, .count = 1 };
	uint64_t step =
		ss_profile_run_end(recording, &one) - recording->ticks.items[tick];
	uint64_t period = recording->period_ns;

	return period && step / period >= GAP_PERIODS ? period : step;
}

/* now: until when everything is written. */
static void put_run(struct pieces *pieces, const struct ss_profile_recording *recording,
		    const struct ss_profile_run *run, uint64_t *now)
{
	uint64_t length_ns = 0;

	for (uint32_t i = 0; i < run->count; i++) {
		uint64_t time = recording->ticks.items[run->tick + i];
		if (time > *now) {
			put_piece(pieces, run->call, length_ns);
			put_piece(pieces, 0, time - *now);
			length_ns = 0;
		}
		length_ns += seen_ns(recording, run->tick + i);
		*now = time + seen_ns(recording, run->tick + i);
	}
	put_piece(pieces, run->call, length_ns);
}

/* The thread's time from its first run on, without a hole. */
static void put_runs(struct pieces *pieces, const struct ss_profile_thread *thread)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(pieces->profile, thread);
	uint64_t now = recording->ticks.items[thread->runs.items[0].tick];

	for (size_t i = 0; i < thread->runs.count; i++)
		put_run(pieces, recording, &thread->runs.items[i], &now);
}

static void write_samples(const struct ss_profile *profile,
			  const struct ss_profile_thread *thread, uint32_t *path,
			  FILE *out)
{
	struct pieces stacks = { .profile = profile, .path = path, .out = out };
	struct pieces lengths = { .profile = profile, .lengths = true, .out = out };

	(void)fputs("\"samples\":[", out);
	put_runs(&stacks, thread);
	(void)fputs("],\"weights\":[", out);
	put_runs(&lengths, thread);
	(void)fputc(']', out);
}

static void write_name(const struct ss_profile *profile,
		       const struct ss_profile_thread *thread, FILE *out)
{
	const struct ss_profile_process *process =
		&profile->processes.items[thread->process];
	_cleanup_free_ char *name = NULL;
	int size = asprintf(&name, "%s %d (%s %d)", thread->name, thread->tid,
			    process->name, process->pid);

	if (size < 0)
		name = NULL;
	ss_json_write_member("name", name ? name : "thread", out);
}

static void write_thread(const struct ss_profile *profile,
			 const struct ss_profile_thread *thread, uint32_t *path,
			 FILE *out)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(profile, thread);
	const struct ss_profile_run *runs = thread->runs.items;
	uint64_t start = recording->ticks.items[runs[0].tick];
	uint64_t end = ss_profile_run_end(recording, &runs[thread->runs.count - 1]);

	(void)fputs("{\"type\":\"sampled\",", out);
	write_name(profile, thread, out);
	(void)fprintf(out,
		      ",\"unit\":\"nanoseconds\",\"startValue\":%" PRIu64
		      ",\"endValue\":%" PRIu64 ",",
		      start, end);
	write_samples(profile, thread, path, out);
	(void)fputc('}', out);
}

static struct ss_error *write_speedscope(const struct ss_profile *profile,
					 const struct ss_report_options *options,
					 FILE *out)
{
	size_t count = profile->threads.count;
	_cleanup_free_ struct ranked *order = calloc(count + 1, sizeof(*order));
	/* no path from a node to the root is longer than there are nodes */
	_cleanup_free_ uint32_t *path = calloc(profile->nodes.count, sizeof(*path));
	size_t written = 0;

	(void)options;
	if (!order || !path)
		return ss_error_no_memory();
	for (uint32_t i = 0; i < count; i++)
		order[i] = (struct ranked){ i, activity(&profile->threads.items[i]) };
	qsort(order, count, sizeof(*order), compare);
	(void)fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		    "\"exporter\":\"stacksnap\",\"activeProfileIndex\":0,\"shared\":{"
		    "\"frames\":[",
		    out);
	write_frames(profile, out);
	(void)fputs("]},\"profiles\":[", out);
	for (size_t i = 0; i < count; i++) {
		const struct ss_profile_thread *thread =
			&profile->threads.items[order[i].thread];
		if (thread->runs.count == 0)
			continue;
		(void)fputs(written++ ? "," : "", out);
		write_thread(profile, thread, path, out);
	}
	(void)fputs("]}\n", out);
	return NULL;
}

const struct ss_reporter ss_reporter_speedscope = {
	.name = "speedscope",
	.summary = "for speedscope.app, one profile for each thread",
	.write = write_speedscope,
};
