/*
 * stacksnap-report/1, see stacksnap-report-json(5): tables that refer to each other by
 * index, one row per line.
 */
#include <stdlib.h>

#include "data/recording_format.h"
#include "report/diff.h"
#include "report/json.h"
#include "report/durations.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

static const char *scope_name(enum ss_recording_scope scope)
{
	static const char *const names[] = {
		[SS_SCOPE_THREADS] = "threads",
		[SS_SCOPE_CPUS] = "cpus",
		[SS_SCOPE_RUNNING] = "running",
		[SS_SCOPE_EVENTS] = "events",
	};

	return names[scope];
}

static void begin_row(struct ss_json *json)
{
	ss_json_new_line(json);
	ss_json_open(json, NULL, '{');
}

/* SS_ID_NONE: null. */
static void write_module(struct ss_json *json, uint64_t index)
{
	ss_json_signed_if(json, "module", index != SS_ID_NONE, (int64_t)index);
}

static void write_recordings(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->recordings.count; i++) {
		const struct ss_profile_recording *r = &profile->recordings.items[i];
		begin_row(json);
		ss_json_text(json, "file", r->file);
		ss_json_text(json, "host", r->host);
		ss_json_text(json, "machine", r->machine);
		ss_json_text(json, "problem", r->problem);
		ss_json_unsigned(json, "time_ns", r->start_ns);
		ss_json_unsigned(json, "period_ns", r->period_ns);
		ss_json_text(json, "scope", scope_name(r->scope));
		ss_json_unsigned(json, "missed", r->missed);
		ss_json_unsigned(json, "unsampled", r->unsampled);
		ss_json_open(json, "ticks_ns", '[');
		for (size_t t = 0; t < r->ticks.count; t++)
			ss_json_unsigned(json, NULL, r->ticks.items[t]);
		ss_json_close(json, ']');
		ss_json_close(json, '}');
	}
}

void ss_json_processes(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->processes.count; i++) {
		const struct ss_profile_process *p = &profile->processes.items[i];
		begin_row(json);
		ss_json_unsigned(json, "recording", p->recording);
		ss_json_signed(json, "pid", p->pid);
		ss_json_text(json, "name", p->name);
		ss_json_text(json, "executable", p->executable);
		ss_json_close(json, '}');
	}
}

/* How long it was on a CPU, and waited for one. */
static void write_times(struct ss_json *json, const struct ss_profile_thread *thread)
{
	uint64_t cpu_ns = 0;
	uint64_t ready_ns = 0;

	for (size_t r = 0; r < thread->runs.count; r++) {
		cpu_ns += thread->runs.items[r].cpu_ns;
		ready_ns += thread->runs.items[r].ready_ns;
	}
	ss_json_unsigned(json, "cpu_ns", cpu_ns);
	ss_json_unsigned(json, "ready_ns", ready_ns);
}

void ss_json_threads(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *t = &profile->threads.items[i];
		begin_row(json);
		ss_json_unsigned(json, "process", t->process);
		ss_json_signed(json, "tid", t->tid);
		ss_json_text(json, "name", t->name);
		ss_json_signed_if(json, "goroutine", t->kind == SS_TASK_GOROUTINE,
				  (int64_t)t->id);
		ss_json_text(json, "task", t->task);
		write_times(json, t);
		ss_json_close(json, '}');
	}
}

void ss_json_modules(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_module *m = &profile->modules.items[i];
		begin_row(json);
		ss_json_text(json, "path", m->path);
		ss_json_text(json, "build_id", m->build_id);
		ss_json_text(json, "file_hash", m->file.hash);
		ss_json_bool(json, "by_file", m->by_file);
		ss_json_text(json, "problem", m->problem);
		ss_json_close(json, '}');
	}
}

static void write_lifetimes(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->lifetimes.count; i++) {
		const struct ss_profile_lifetime *l = &profile->lifetimes.items[i];
		begin_row(json);
		ss_json_unsigned(json, "module", l->module);
		ss_json_unsigned(json, "process", l->process);
		ss_json_hex(json, "base", l->base);
		ss_json_unsigned(json, "size", l->size);
		ss_json_signed(json, "loaded_ns", l->from_ns);
		ss_json_signed_if(json, "unloaded_ns", l->to_ns != INT64_MAX, l->to_ns);
		ss_json_close(json, '}');
	}
}

static void write_frames(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->frames.count; i++) {
		const struct ss_profile_frame *f = ss_profile_frame_at(profile, i);
		const struct ss_profile_function *function =
			ss_profile_function_at(profile, f->function);
		begin_row(json);
		ss_json_text(json, "name", function->name);
		ss_json_text(json, "kind",
			     ss_frame_kind_name((enum ss_frame_kind)function->kind));
		ss_json_bool(json, "named", f->named);
		write_module(json, function->module);
		ss_json_hex(json, "offset", f->offset);
		ss_json_unsigned(json, "symbol_offset", f->symbol_offset);
		ss_json_bool(json, "inlined", f->inlined);
		ss_json_text(json, "file", f->file);
		ss_json_signed_if(json, "line", f->line, (int64_t)f->line);
		ss_json_close(json, '}');
	}
}

/* Each is [CALLER, FRAME]. The root is not in the table: its index would be -1. */
static void write_calls(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 1; i < profile->calls.count; i++) {
		const struct ss_profile_call *c = ss_profile_call_at(profile, i);
		ss_json_new_line(json);
		ss_json_open(json, NULL, '[');
		ss_json_signed_if(json, NULL, c->parent, (int64_t)c->parent - 1);
		ss_json_unsigned(json, NULL, c->frame);
		ss_json_close(json, ']');
	}
}

static void write_event(struct ss_json *json, const struct ss_profile *profile,
			const struct ss_profile_event *event)
{
	ss_json_open(json, "event", '{');
	ss_json_unsigned(json, "probe", event->probe);
	ss_json_text(json, "kind", ss_trace_kind_name((enum ss_trace_kind)event->kind));
	ss_json_unsigned(json, "depth", event->depth);
	ss_json_unsigned(json, "duration_ns", event->duration_ns);
	ss_json_unsigned(json, "self_ns", event->self_ns);
	ss_json_open(json, "arguments", '[');
	for (size_t i = 0; i < event->arg_count; i++)
		ss_json_hex(json, NULL, profile->event_args.items[event->args + i]);
	ss_json_close(json, ']');
	ss_json_close(json, '}');
}

static void write_run(struct ss_json *json, const struct ss_profile *profile,
		      size_t thread, const struct ss_profile_run *run)
{
	static const struct ss_profile_wait no_wait;
	const struct ss_profile_wait *wait =
		run->wait == SS_ID_NONE ? &no_wait : &profile->waits.items[run->wait];
	const char state[] = { ss_profile_state(run), '\0' };

	begin_row(json);
	ss_json_unsigned(json, "thread", thread);
	ss_json_unsigned(json, "tick", run->tick);
	ss_json_unsigned(json, "count", run->count);
	ss_json_signed_if(json, "call", run->call, (int64_t)run->call - 1);
	ss_json_text(json, "state", state);
	ss_json_unsigned(json, "cpu_ns", run->cpu_ns);
	ss_json_unsigned(json, "ready_ns", run->ready_ns);
	ss_json_text(json, "wait", wait->name);
	ss_json_signed_if(json, "fd", wait->argument == SS_WAIT_DESCRIPTOR,
			  (int)run->argument);
	ss_json_hex_if(json, "address", wait->argument == SS_WAIT_ADDRESS, run->argument);
	ss_json_signed_if(json, "application_lock", run->lock, (int64_t)run->lock - 1);
	ss_json_signed_if(json, "wait_detail", run->detail, (int64_t)run->detail - 1);
	if (run->event)
		write_event(json, profile, ss_profile_event_of(profile, run));
	ss_json_close(json, '}');
}

static void write_samples(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++)
			write_run(json, profile, t, &thread->runs.items[r]);
	}
}

static void write_locks(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->locks.count; i++) {
		begin_row(json);
		ss_json_text(json, "function", profile->locks.items[i].function);
		ss_json_text(json, "description", profile->locks.items[i].words);
		ss_json_close(json, '}');
	}
}

/* What threads of recordings waited for. */
static void write_wait_details(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->details.count; i++) {
		const struct ss_wait *wait = profile->details.items[i];
		begin_row(json);
		ss_json_text(json, "kind", ss_wait_kind_name(wait->kind));
		ss_json_wait_text(json, "text", wait);
		ss_json_wait(json, "data", wait);
		ss_json_close(json, '}');
	}
}

static void write_waits(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *t = &profile->threads.items[i];
		if (!t->wait)
			continue;
		begin_row(json);
		ss_json_unsigned(json, "thread", i);
		ss_json_signed_if(json, "owner", t->owner, (int64_t)t->owner - 1);
		ss_json_text(json, "kind", ss_wait_kind_name(t->wait->kind));
		ss_json_wait_text(json, "text", t->wait);
		ss_json_bool(json, "deadlock", t->in_cycle);
		ss_json_wait(json, "data", t->wait);
		ss_json_close(json, '}');
	}
}

static void write_probes(struct ss_json *json, const struct ss_profile *profile)
{
	static const char *const kinds[] = {
		[SS_PROBE_OF_FUNCTION] = "function",
		[SS_PROBE_OF_USDT] = "usdt",
		[SS_PROBE_OF_LINE] = "line",
	};
	_cleanup_free_ struct ss_durations *durations = ss_profile_durations(profile);

	for (size_t i = 0; i < profile->probes.count; i++) {
		const struct ss_profile_probe *probe = ss_profile_probe_at(profile, i);
		begin_row(json);
		ss_json_text(json, "function", probe->name);
		write_module(json, probe->module);
		ss_json_hex(json, "offset", probe->offset);
		ss_json_text(json, "kind", kinds[probe->kind]);
		if (durations && durations[i].count)
			ss_json_durations(json, &durations[i]);
		ss_json_close(json, '}');
	}
}

static void write_traces(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->traces.count; i++) {
		begin_row(json);
		ss_json_unsigned(json, "recording", profile->traces.items[i].recording);
		ss_json_members(json, &ss_record_schemas[SS_DEFINE_TRACE],
				&profile->traces.items[i].totals, 0);
		ss_json_close(json, '}');
	}
}

static void write_notes(struct ss_json *json, const struct ss_profile *profile)
{
	for (size_t i = 0; i < profile->notes.count; i++)
		ss_json_text(json, NULL, profile->notes.items[i]);
}

struct ss_error *ss_json_write_profile(const struct ss_profile *profile,
				       const struct ss_format_options *options, FILE *out)
{
	static const struct {
		const char *key;
		void (*write)(struct ss_json *json, const struct ss_profile *profile);
	} tables[] = {
		{ "recordings", write_recordings },
		{ "processes", ss_json_processes },
		{ "threads", ss_json_threads },
		{ "modules", ss_json_modules },
		{ "lifetimes", write_lifetimes },
		{ "frames", write_frames },
		{ "calls", write_calls },
		{ "samples", write_samples },
		{ "application_locks", write_locks },
		{ "wait_details", write_wait_details },
		{ "waits", write_waits },
		{ "probes", write_probes },
		{ "traces", write_traces },
		{ "notes", write_notes },
	};
	struct ss_json json = { .out = out };

	(void)options;
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-report/1");
	ss_json_unsigned(&json, "time_ns", profile->start_ns);
	for (size_t i = 0; i < SS_ARRAY_SIZE(tables); i++) {
		ss_json_new_line(&json);
		ss_json_open(&json, tables[i].key, '[');
		tables[i].write(&json, profile);
		ss_json_close(&json, ']');
	}
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return NULL;
}

/*
 * stacksnap-report-diff/1, see stacksnap-report-json(5).
 */

static void write_counts(struct ss_json *json, const char *key,
			 const struct ss_set_counts *counts)
{
	ss_json_open(json, key, '[');
	ss_json_unsigned(json, NULL, counts->of[SS_BEFORE]);
	ss_json_unsigned(json, NULL, counts->of[SS_AFTER]);
	ss_json_close(json, ']');
}

static const char *name_of(const struct ss_profile *profile, uint32_t node)
{
	return ss_profile_function_at(profile,
				      ss_profile_node_at(profile, node)->function)
		->name;
}

/* Outermost first. False without memory. */
static bool write_diff_frames(struct ss_json *json, const char *key,
			      const struct ss_profile *profile, uint32_t node)
{
	SS_VECTOR(uint32_t) path = {};
	bool whole = true;

	for (; whole && node != 0; node = ss_profile_node_at(profile, node)->parent) {
		uint32_t *slot = ss_vector_push(&path);
		whole = slot;
		if (slot)
			*slot = node;
	}
	ss_json_open(json, key, '[');
	for (size_t i = path.count; i-- > 0;)
		ss_json_text(json, NULL, name_of(profile, path.items[i]));
	ss_json_close(json, ']');
	ss_vector_free(&path);
	return whole;
}

static void write_functions(struct ss_json *json, const struct ss_profile_diff *diff)
{
	ss_json_open(json, "functions", '[');
	for (size_t i = 0; i < diff->function_count; i++) {
		const struct ss_function_difference *f = &diff->functions[i];
		ss_json_new_line(json);
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "name",
			     ss_profile_function_at(diff->profile, f->function)->name);
		write_counts(json, "self", &f->self);
		write_counts(json, "total", &f->total);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
}

static bool write_stacks(struct ss_json *json, const struct ss_profile_diff *diff)
{
	bool whole = true;

	ss_json_open(json, "stacks", '[');
	for (size_t i = 0; i < diff->stack_count && whole; i++) {
		ss_json_new_line(json);
		ss_json_open(json, NULL, '{');
		write_counts(json, "samples", &diff->stacks[i].samples);
		whole = write_diff_frames(json, "frames", diff->profile,
					  diff->stacks[i].node);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
	return whole;
}

static bool write_thread(struct ss_json *json, const struct ss_profile_diff *diff,
			 const struct ss_thread_difference *d)
{
	static const char *const keys[] = { "before", "after" };
	const struct ss_profile *profile = diff->profile;
	uint32_t one = d->thread[d->thread[SS_AFTER] == SS_ID_NONE ? 0 : 1];
	const struct ss_profile_thread *thread = &profile->threads.items[one];
	bool whole = true;

	ss_json_new_line(json);
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "change", ss_change_name(d->change));
	ss_json_text(json, "host", ss_profile_recording_of(profile, thread)->host);
	ss_json_signed(json, "pid", profile->processes.items[thread->process].pid);
	ss_json_signed(json, "tid", thread->tid);
	ss_json_text(json, "name", thread->name);
	ss_json_text(json, "task", thread->task);
	for (size_t set = 0; set < SS_SET_COUNT && whole; set++) {
		if (d->thread[set] == SS_ID_NONE)
			ss_json_null(json, keys[set]);
		else
			whole = write_diff_frames(json, keys[set], profile, d->node[set]);
	}
	ss_json_close(json, '}');
	return whole;
}

struct ss_error *ss_json_write_profile_diff(const struct ss_profile *profile,
					    const struct ss_format_options *options,
					    FILE *out)
{
	_cleanup_(ss_profile_diff_cleanup) struct ss_profile_diff *diff =
		ss_profile_diff_new(profile);
	struct ss_json json = { .out = out };
	bool whole = true;

	(void)options;
	if (!diff)
		return ss_error_no_memory();
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-report-diff/1");
	write_counts(&json, "recordings", &diff->recordings);
	write_counts(&json, "samples", &diff->samples);
	write_functions(&json, diff);
	whole = write_stacks(&json, diff);
	ss_json_open(&json, "threads", '[');
	for (size_t i = 0; i < diff->thread_count && whole; i++)
		whole = write_thread(&json, diff, &diff->threads[i]);
	ss_json_close(&json, ']');
	ss_json_open(&json, "notes", '[');
	for (size_t i = 0; i < profile->notes.count; i++)
		ss_json_text(&json, NULL, profile->notes.items[i]);
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return whole ? NULL : ss_error_no_memory();
}
