/*
 * The file format of speedscope (https://www.speedscope.app/file-format-schema.json): one
 * "sampled" profile per thread, the most active first. The weight of a stack is the time
 * for which it was seen.
 */

#include "base/search.h"
#include "report/json.h"
#include "report/format.h"

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

	return SS_COMPARE(y->activity, x->activity) ?: SS_COMPARE(x->thread, y->thread);
}

static void write_frames(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->functions.count; i++) {
		const struct ss_profile_function *f = ss_profile_function_at(profile, i);
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "name", f->name);
		if (f->module != SS_ID_NONE)
			ss_json_text(json, "file",
				     profile->modules.items[f->module].path);
		else if (f->file)
			ss_json_text(json, "file", f->file);
		ss_json_close(json, '}');
	}
	for (size_t i = 0; i < profile->probes.count; i++) {
		const struct ss_profile_probe *probe = ss_profile_probe_at(profile, i);
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "name", probe->name);
		if (probe->module != SS_ID_NONE)
			ss_json_text(json, "file",
				     profile->modules.items[probe->module].path);
		ss_json_close(json, '}');
	}
}

/* Outermost first. */
static void write_stack(struct ss_json *json, const struct ss_profile *profile,
			uint32_t call, uint32_t *path)
{
	uint32_t node = profile->node_of.items[call];
	size_t depth = 0;

	for (; node != 0; node = ss_profile_node_at(profile, node)->parent)
		path[depth++] = ss_profile_node_at(profile, node)->function;
	ss_json_open(json, NULL, '[');
	while (depth-- > 0)
		ss_json_unsigned(json, NULL, path[depth]);
	ss_json_close(json, ']');
}

/* Divides the time of a thread into pieces with one stack each, and writes their stacks or
   their lengths. Call 0: the thread was not sampled, or the sample was not selected. */
struct pieces {
	const struct ss_profile *profile;
	bool lengths;	/* else the stacks */
	uint32_t *path; /* scratch, for the deepest stack */
	struct ss_json *json;
};

static void put_piece(struct pieces *pieces, uint32_t call, uint64_t length_ns)
{
	if (length_ns == 0)
		return;
	if (pieces->lengths)
		ss_json_unsigned(pieces->json, NULL, length_ns);
	else
		write_stack(pieces->json, pieces->profile, call, pieces->path);
}

/* A longer gap between ticks is shown as time without samples. */
enum { GAP_PERIODS = 8 };

/* The time that a sample at this tick stands for. */
static uint64_t seen_ns(const struct ss_profile_recording *recording, uint32_t tick)
{
	const struct ss_profile_run one = { .tick = tick, .count = 1 };
	uint64_t step =
		ss_profile_run_end(recording, &one) - recording->ticks.items[tick];
	uint64_t period = recording->period_ns;

	return period && step / period >= GAP_PERIODS ? period : step;
}

/* now: the end of what has been written. */
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

/* The time of the thread from its first run on, without gaps. */
static void put_runs(struct pieces *pieces, const struct ss_profile_thread *thread)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(pieces->profile, thread);
	uint64_t now = recording->ticks.items[thread->runs.items[0].tick];

	for (size_t i = 0; i < thread->runs.count; i++)
		put_run(pieces, recording, &thread->runs.items[i], &now);
}

static void write_samples(struct ss_json *json, const struct ss_profile *profile,
			  const struct ss_profile_thread *thread, uint32_t *path)
{
	struct pieces stacks = { .profile = profile, .path = path, .json = json };
	struct pieces lengths = { .profile = profile, .lengths = true, .json = json };

	ss_json_open(json, "samples", '[');
	put_runs(&stacks, thread);
	ss_json_close(json, ']');
	ss_json_open(json, "weights", '[');
	put_runs(&lengths, thread);
	ss_json_close(json, ']');
}

static void write_name(struct ss_json *json, const struct ss_profile *profile,
		       const struct ss_profile_thread *thread)
{
	const struct ss_profile_process *process =
		&profile->processes.items[thread->process];
	_cleanup_free_ char *name = NULL;
	int size = thread->task ? asprintf(&name, "%s %s (%s %d)", thread->name,
					   thread->task, process->name, process->pid) :
				  asprintf(&name, "%s %d (%s %d)", thread->name,
					   thread->tid, process->name, process->pid);

	if (size < 0)
		name = NULL;
	ss_json_text(json, "name", name ? name : "thread");
}

static void write_thread(struct ss_json *json, const struct ss_profile *profile,
			 const struct ss_profile_thread *thread, uint32_t *path)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(profile, thread);
	const struct ss_profile_run *runs = thread->runs.items;
	uint64_t start = recording->ticks.items[runs[0].tick];
	uint64_t end = ss_profile_run_end(recording, &runs[thread->runs.count - 1]);

	ss_json_open(json, NULL, '{');
	ss_json_text(json, "type", "sampled");
	write_name(json, profile, thread);
	ss_json_text(json, "unit", "nanoseconds");
	ss_json_unsigned(json, "startValue", start);
	ss_json_unsigned(json, "endValue", end);
	write_samples(json, profile, thread, path);
	ss_json_close(json, '}');
}

/* A scope of a trace that is open. */
struct open_scope {
	uint32_t function; /* index in the shared frames */
	uint64_t end_ns;
};

struct scopes {
	struct ss_json *json;
	SS_VECTOR(struct open_scope) open; /* outermost first */
	uint64_t now_ns;		   /* of the last event: they must not go back */
};

static void write_change(struct scopes *scopes, const char *type, uint32_t function,
			 uint64_t time_ns)
{
	scopes->now_ns = SS_MAX(scopes->now_ns, time_ns);
	ss_json_open(scopes->json, NULL, '{');
	ss_json_text(scopes->json, "type", type);
	ss_json_unsigned(scopes->json, "at", scopes->now_ns);
	ss_json_unsigned(scopes->json, "frame", function);
	ss_json_close(scopes->json, '}');
}

static void close_scopes(struct scopes *scopes, uint64_t until_ns)
{
	while (scopes->open.count) {
		const struct open_scope *last =
			&scopes->open.items[scopes->open.count - 1];
		if (last->end_ns > until_ns)
			break;
		write_change(scopes, "C", last->function, last->end_ns);
		scopes->open.count--;
	}
}

/* What is entered in a scope ends with it at the latest. False without memory. */
static bool open_scope(struct scopes *scopes, uint32_t function, uint64_t begin_ns,
		       uint64_t duration_ns)
{
	uint64_t end_ns = begin_ns + duration_ns;

	close_scopes(scopes, begin_ns);
	if (scopes->open.count)
		end_ns =
			SS_MIN(end_ns, scopes->open.items[scopes->open.count - 1].end_ns);
	struct open_scope *scope = ss_vector_push(&scopes->open);
	if (!scope)
		return false;
	write_change(scopes, "O", function, begin_ns);
	*scope = (struct open_scope){ function, end_ns };
	return true;
}

/* A thread of a trace: its scopes, as events; a hit is one without a duration. False without
   memory. */
static bool write_scopes(struct ss_json *json, const struct ss_profile *profile,
			 const struct ss_profile_thread *thread)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(profile, thread);
	uint64_t start = recording->ticks.items[thread->runs.items[0].tick];
	struct scopes scopes = { .json = json, .now_ns = start };
	bool whole = true;

	ss_json_open(json, NULL, '{');
	ss_json_text(json, "type", "evented");
	write_name(json, profile, thread);
	ss_json_text(json, "unit", "nanoseconds");
	ss_json_unsigned(json, "startValue", start);
	ss_json_open(json, "events", '[');
	for (size_t i = 0; whole && i < thread->runs.count; i++) {
		const struct ss_profile_run *run = &thread->runs.items[i];
		const struct ss_profile_event *event = ss_profile_event_of(profile, run);
		if (event)
			whole = open_scope(
				&scopes,
				(uint32_t)profile->functions.count + event->probe,
				recording->ticks.items[run->tick], event->duration_ns);
	}
	close_scopes(&scopes, UINT64_MAX);
	ss_vector_free(&scopes.open);
	ss_json_close(json, ']');
	ss_json_unsigned(json, "endValue", scopes.now_ns);
	ss_json_close(json, '}');
	return whole;
}

static struct ss_error *write_profile(const struct ss_profile *profile,
				      const struct ss_format_options *options, FILE *out)
{
	size_t count = profile->threads.count;
	_cleanup_free_ struct ranked *order = calloc(count + 1, sizeof(*order));
	_cleanup_free_ uint32_t *path = calloc(profile->nodes.count, sizeof(*path));
	struct ss_json json = { .out = out };
	bool whole = true;

	(void)options;
	if (!order || !path)
		return ss_error_no_memory();
	for (uint32_t i = 0; i < count; i++)
		order[i] = (struct ranked){ i, activity(&profile->threads.items[i]) };
	qsort(order, count, sizeof(*order), compare);
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "$schema",
		     "https://www.speedscope.app/file-format-schema.json");
	ss_json_text(&json, "exporter", "stacksnap");
	ss_json_unsigned(&json, "activeProfileIndex", 0);
	ss_json_open(&json, "shared", '{');
	ss_json_open(&json, "frames", '[');
	write_frames(&json, profile);
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	ss_json_open(&json, "profiles", '[');
	for (size_t i = 0; i < count; i++) {
		const struct ss_profile_thread *thread =
			&profile->threads.items[order[i].thread];
		if (thread->runs.count && thread->runs.items[0].event)
			whole = whole && write_scopes(&json, profile, thread);
		else if (thread->runs.count)
			write_thread(&json, profile, thread, path);
	}
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return whole ? NULL : ss_error_no_memory();
}

const struct ss_format ss_format_speedscope = {
	.name = "speedscope",
	.description = "for speedscope.app, one profile per thread",
	.write_profile = write_profile,
};
