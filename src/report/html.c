/*
 * One page that needs no other file. The data is JSON, compressed and in base64, so that
 * it cannot contain markup; the script of the page inserts names as text only.
 * The keys are private to the page: the format "json" is for other programs.
 */
#include <time.h>

#include "base/search.h"
#include "report/print.h"
#include "report/format.h"
#include "report/json.h"
#include "report/profile_waits.h"
#include "stacksnap/record.h"

/* The page, which embed.cmake makes from page/: the parts before and after the data. */
extern const char ss_page_before[];
extern const size_t ss_page_before_size;
extern const char ss_page_after[];
extern const size_t ss_page_after_size;

enum { US = 1000 };

static void write_title(struct ss_json *json, const struct ss_profile *profile)
{
	const struct ss_profile_process *process = profile->processes.items;
	_cleanup_free_ char *title = NULL;
	int size = profile->processes.count == 1 ?
			   asprintf(&title, "%s, pid %d", process->name, process->pid) :
			   asprintf(&title, "%zu processes", profile->processes.count);

	ss_json_text(json, "title", size < 0 ? "stacksnap" : title);
	if (size < 0)
		title = NULL;
}

static void write_start(struct ss_json *json, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm tm = {};
	char text[64] = "";

	if (localtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm);
	ss_json_text(json, "start", text);
}

/* Ticks as the time since the one before, which compresses better. */
static void write_recordings(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->recordings.count; i++) {
		const struct ss_profile_recording *r = &profile->recordings.items[i];
		uint64_t last = 0;
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "file", r->file);
		ss_json_text(json, "host", r->host);
		write_start(json, r->start_ns);
		ss_json_unsigned(json, "period", r->period_ns / US);
		ss_json_open(json, "ticks", '[');
		for (size_t t = 0; t < r->ticks.count; t++) {
			uint64_t now = r->ticks.items[t] / US;
			ss_json_unsigned(json, NULL, now - last);
			last = now;
		}
		ss_json_close(json, ']');
		ss_json_close(json, '}');
	}
}

static void write_lifetimes(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->lifetimes.count; i++) {
		const struct ss_profile_lifetime *l = &profile->lifetimes.items[i];
		ss_json_open(json, NULL, '{');
		ss_json_unsigned(json, "module", l->module);
		ss_json_unsigned(json, "process", l->process);
		ss_json_hex(json, "base", l->base);
		ss_json_signed(json, "from", l->from_ns / US);
		ss_json_signed_if(json, "to", l->to_ns != INT64_MAX, l->to_ns / US);
		ss_json_close(json, '}');
	}
}

/* Functions without a symbol, with their modules or areas. */
static void write_places(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->functions.count; i++) {
		const struct ss_profile_function *function =
			ss_profile_function_at(profile, i);
		const char *place = function->has_start ? NULL : function->place;
		if (!place)
			continue;
		ss_json_open(json, NULL, '[');
		ss_json_unsigned(json, NULL, i);
		ss_json_text(json, NULL, place);
		ss_json_close(json, ']');
	}
}

/* Functions of runtimes, with their languages and files. */
static void write_runtimes(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->functions.count; i++) {
		const struct ss_profile_function *function =
			ss_profile_function_at(profile, i);
		if (function->kind == SS_FRAME_NATIVE || function->kind == SS_FRAME_JIT)
			continue;
		ss_json_open(json, NULL, '[');
		ss_json_unsigned(json, NULL, i);
		ss_json_text(json, NULL,
			     ss_frame_kind_name((enum ss_frame_kind)function->kind));
		ss_json_text(json, NULL, function->file);
		ss_json_close(json, ']');
	}
}

static void write_functions(struct ss_json *json, const struct ss_profile *profile)
{
	ss_json_open(json, "name", '[');
	for (size_t i = 0; i < profile->functions.count; i++)
		ss_json_text(json, NULL, ss_profile_function_at(profile, i)->name);
	ss_json_close(json, ']');
	ss_json_open(json, "module", '[');
	for (size_t i = 0; i < profile->functions.count; i++) {
		uint64_t module = ss_profile_function_at(profile, i)->module;
		ss_json_signed(json, NULL, module == SS_ID_NONE ? -1 : (int64_t)module);
	}
	ss_json_close(json, ']');
	ss_json_open(json, "places", '[');
	write_places(json, profile);
	ss_json_close(json, ']');
	ss_json_open(json, "runtimes", '[');
	write_runtimes(json, profile);
	ss_json_close(json, ']');
}

/* A parent as the distance to it, which compresses better. Node 0 is the root. */
static void write_nodes(struct ss_json *json, const struct ss_profile *profile)
{
	ss_json_open(json, "parent", '[');
	ss_json_unsigned(json, NULL, 0);
	for (size_t i = 1; i < profile->nodes.count; i++)
		ss_json_unsigned(json, NULL, i - ss_profile_node_at(profile, i)->parent);
	ss_json_close(json, ']');
	ss_json_open(json, "function", '[');
	ss_json_unsigned(json, NULL, 0);
	for (size_t i = 1; i < profile->nodes.count; i++)
		ss_json_unsigned(json, NULL, ss_profile_node_at(profile, i)->function);
	ss_json_close(json, ']');
}

static bool has_lines(const struct ss_profile *profile)
{
	return ss_any(profile->frames.count, i, ss_profile_frame_at(profile, i)->file);
}

/* Files and lines; "" is the file of the frame before. */
static void write_frames(struct ss_json *json, const struct ss_profile *profile)
{
	const char *before = "";

	if (!has_lines(profile))
		return;
	ss_json_open(json, "file", '[');
	for (size_t i = 0; i < profile->frames.count; i++) {
		const char *file = ss_profile_frame_at(profile, i)->file;
		ss_json_text(json, NULL, file == before ? "" : file);
		before = file;
	}
	ss_json_close(json, ']');
	ss_json_open(json, "line", '[');
	for (size_t i = 0; i < profile->frames.count; i++)
		ss_json_unsigned(json, NULL, ss_profile_frame_at(profile, i)->line);
	ss_json_close(json, ']');
}

/* The distance to the caller, the distance to the node of the call before, and the frame:
   which lines a node consists of. */
static void write_calls(struct ss_json *json, const struct ss_profile *profile)
{
	if (!has_lines(profile))
		return;
	ss_json_open(json, "parent", '[');
	ss_json_unsigned(json, NULL, 0);
	for (size_t i = 1; i < profile->calls.count; i++)
		ss_json_unsigned(json, NULL, i - ss_profile_call_at(profile, i)->parent);
	ss_json_close(json, ']');
	ss_json_open(json, "node", '[');
	ss_json_unsigned(json, NULL, 0);
	for (size_t i = 1; i < profile->calls.count; i++)
		ss_json_signed(json, NULL,
			       (int64_t)profile->node_of.items[i] -
				       (int64_t)profile->node_of.items[i - 1]);
	ss_json_close(json, ']');
	ss_json_open(json, "frame", '[');
	ss_json_unsigned(json, NULL, 0);
	for (size_t i = 1; i < profile->calls.count; i++)
		ss_json_unsigned(json, NULL, ss_profile_call_at(profile, i)->frame);
	ss_json_close(json, ']');
}

/* The columns of the table of runs. */
enum run_column {
	RUN_THREAD, /* distance to the thread of the run before */
	RUN_TICK,   /* since the end of the thread's run before */
	RUN_COUNT,
	RUN_STACK,	/* call, or without lines node */
	RUN_WAIT,	/* system call + 1; 0: none */
	RUN_DETAIL,	/* one of waits_for + 1; 0: not known */
	RUN_LOCK,	/* one of locks + 1; 0: none */
	RUN_DESCRIPTOR, /* of the system call + 1; 0: it has none */
	RUN_FUNCTION,	/* that waits + 1; 0: none */
	/* thousandths of the time in state R for which the thread waited for a CPU */
	RUN_READY,
	RUN_DURATION, /* from here on of traces */
	RUN_WEIGHT,
	RUN_DEPTH,
	RUN_PROBE, /* + 1; 0: none */
	RUN_COLUMNS
};

static uint64_t thread_distance(const struct ss_profile *profile, size_t thread)
{
	size_t before = thread;

	while (before > 0 && !profile->threads.items[--before].runs.count)
		continue;
	return thread - before;
}

static uint64_t ready_share(const struct ss_profile *profile, size_t thread,
			    const struct ss_profile_run *run)
{
	double time_ns = (double)run->cpu_ns + (double)run->ready_ns;
	enum ss_recording_scope scope =
		ss_profile_recording_of(profile, &profile->threads.items[thread])->scope;

	if (run->state != 'R' || scope == SS_SCOPE_CPUS || time_ns == 0)
		return 0;
	return (uint64_t)((double)run->ready_ns * 1000 / time_ns);
}

/* A number + 1; 0: SS_ID_NONE. */
static uint64_t plus_one(uint32_t number)
{
	return number == SS_ID_NONE ? 0 : number + UINT64_C(1);
}

static uint64_t run_value(const struct ss_profile *profile, size_t thread, size_t index,
			  enum run_column column, bool lines)
{
	static const struct ss_profile_event no_event = { .probe = SS_ID_NONE };
	static const struct ss_profile_wait no_wait;
	const struct ss_profile_run *run =
		&profile->threads.items[thread].runs.items[index];
	const struct ss_profile_event *event =
		run->event ? ss_profile_event_of(profile, run) : &no_event;
	const struct ss_profile_wait *wait =
		run->wait == SS_ID_NONE ? &no_wait : &profile->waits.items[run->wait];

	switch (column) {
	case RUN_THREAD:
		return index ? 0 : thread_distance(profile, thread);
	case RUN_TICK:
		return index ? run->tick - (run[-1].tick + run[-1].count) : run->tick;
	case RUN_COUNT:
		return run->count;
	case RUN_STACK:
		return lines ? run->call : profile->node_of.items[run->call];
	case RUN_WAIT:
		return plus_one(run->wait);
	case RUN_DETAIL:
		return run->detail;
	case RUN_LOCK:
		return run->lock;
	case RUN_DESCRIPTOR:
		return wait->argument == SS_WAIT_DESCRIPTOR ?
			       (uint32_t)run->argument + UINT64_C(1) :
			       0;
	case RUN_FUNCTION:
		return run->wait == SS_ID_NONE ?
			       0 :
			       plus_one(ss_waiting_function_name(profile, run->call));
	case RUN_READY:
		return ready_share(profile, thread, run);
	case RUN_DURATION:
		return event->duration_ns;
	case RUN_WEIGHT:
		return ss_profile_weight(profile, run);
	case RUN_DEPTH:
		return event->depth;
	default:
		return plus_one(event->probe);
	}
}

/* A string with one letter for each run. */
static void write_states(struct ss_json *json, const struct ss_profile *profile)
{
	(void)fputs(",\"state\":\"", json->out);
	for (size_t t = 0; t < profile->threads.count; t++) {
		for (size_t r = 0; r < profile->threads.items[t].runs.count; r++)
			(void)fputc_unlocked(
				ss_profile_state(
					&profile->threads.items[t].runs.items[r]),
				json->out);
	}
	(void)fputc('"', json->out);
}

static void write_runs(struct ss_json *json, const struct ss_profile *profile)
{
	static const char *const keys[RUN_COLUMNS] = {
		"thread",   "tick",   "count",	    "stack",	"wait",
		"detail",   "lock",   "descriptor", "function", "ready",
		"duration", "weight", "depth",	    "probe",
	};
	const size_t columns = profile->events.count ? RUN_COLUMNS : RUN_DURATION;
	const bool lines = has_lines(profile);

	for (size_t i = 0; i < columns; i++) {
		ss_json_open(json, keys[i], '[');
		for (size_t t = 0; t < profile->threads.count; t++) {
			size_t count = profile->threads.items[t].runs.count;
			for (size_t r = 0; r < count; r++)
				ss_json_unsigned(json, NULL,
						 run_value(profile, t, r,
							   (enum run_column)i, lines));
		}
		ss_json_close(json, ']');
	}
	write_states(json, profile);
}

/* The names of system calls that threads waited in. */
static void write_system_calls(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->waits.count; i++)
		ss_json_text(json, NULL, profile->waits.items[i].name);
}

/* What threads of recordings waited for, as [kind, text]. */
static void write_details(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->details.count; i++) {
		const struct ss_wait *wait = profile->details.items[i];
		ss_json_open(json, NULL, '[');
		ss_json_text(json, NULL, ss_wait_kind_name(wait->kind));
		ss_json_wait_text(json, NULL, wait);
		ss_json_close(json, ']');
	}
}

/* Locks of applications, as [function, description]. */
static void write_locks(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->locks.count; i++) {
		ss_json_open(json, NULL, '[');
		ss_json_text(json, NULL, profile->locks.items[i].function);
		ss_json_text(json, NULL, profile->locks.items[i].words);
		ss_json_close(json, ']');
	}
}

static void write_waits(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *t = &profile->threads.items[i];
		if (!t->in_wait_graph)
			continue;
		ss_json_open(json, NULL, '{');
		ss_json_unsigned(json, "thread", i);
		ss_json_signed(json, "owner", (int64_t)t->owner - 1);
		ss_json_text(json, "kind", ss_wait_kind_name(t->wait->kind));
		ss_json_wait_text(json, "text", t->wait);
		ss_json_bool(json, "cycle", t->in_cycle);
		ss_json_close(json, '}');
	}
}

static void write_notes(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->notes.count; i++)
		ss_json_text(json, NULL, profile->notes.items[i]);
}

static void write_probes(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->probes.count; i++)
		ss_json_text(json, NULL, ss_profile_probe_at(profile, i)->name);
}

static void write_data(const struct ss_profile *profile, FILE *out)
{
	static const struct {
		const char *key;
		const char *brackets;
		void (*write)(struct ss_json *json, const struct ss_profile *profile);
	} members[] = {
		{ "notes", "[]", write_notes },
		{ "recordings", "[]", write_recordings },
		{ "processes", "[]", ss_json_processes },
		{ "threads", "[]", ss_json_threads },
		{ "modules", "[]", ss_json_modules },
		{ "waits", "[]", write_waits },
		{ "waits_for", "[]", write_details },
		{ "locks", "[]", write_locks },
		{ "lifetimes", "[]", write_lifetimes },
		{ "functions", "{}", write_functions },
		{ "nodes", "{}", write_nodes },
		{ "frames", "{}", write_frames },
		{ "calls", "{}", write_calls },
		{ "system_calls", "[]", write_system_calls },
		{ "probes", "[]", write_probes },
		{ "runs", "{}", write_runs },
	};
	struct ss_json json = { .out = out };

	ss_json_open(&json, NULL, '{');
	write_title(&json, profile);
	if (profile->events.count)
		ss_json_text(&json, "unit", profile->by_time ? "ns" : "hits");
	for (size_t i = 0; i < SS_ARRAY_SIZE(members); i++) {
		ss_json_open(&json, members[i].key, members[i].brackets[0]);
		members[i].write(&json, profile);
		ss_json_close(&json, members[i].brackets[1]);
	}
	ss_json_close(&json, '}');
}

static struct ss_error *write_profile(const struct ss_profile *profile,
				      const struct ss_format_options *options, FILE *out)
{
	(void)options;
	(void)fwrite(ss_page_before, 1, ss_page_before_size, out);
	FILE *data = ss_gzip_open(out, true);
	if (!data)
		return ss_error_no_memory();
	write_data(profile, data);
	if (fclose(data) != 0)
		return ss_error_no_memory();
	(void)fwrite(ss_page_after, 1, ss_page_after_size, out);
	return NULL;
}

const struct ss_format ss_format_html = {
	.name = "html",
	.description = "interactive page: timeline, flame graph, call tree",
	.write_profile = write_profile,
};
