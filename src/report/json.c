/*
 * stacksnap-report/1, see stacksnap-report-json(5): everything that a report has, as
 * tables that refer to each other by index. Written row by row.
 */
#include <inttypes.h>

#include "report/jsontext.h"
#include "report/report.h"

static void begin_row(size_t index, FILE *out)
{
	(void)fputs_unlocked(index ? ",\n{" : "\n{", out); /* ferror() later, as all */
}

static void write_module_index(uint64_t module, FILE *out)
{
	if (module == SS_NUMBER_NOT)
		(void)fputs_unlocked("\"module\":null", out);
	else
		(void)fprintf(out, "\"module\":%" PRIu64, module);
}

static void write_recordings(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->recordings.count; i++) {
		const struct ss_profile_recording *r = &profile->recordings.items[i];
		begin_row(i, out);
		ss_json_write_member("file", r->file, out);
		(void)fputc(',', out);
		ss_json_write_member("host", r->host, out);
		(void)fputc(',', out);
		ss_json_write_member("machine", r->machine, out);
		(void)fputc(',', out);
		ss_json_write_member("problem", r->problem, out);
		(void)fprintf(out,
			      ",\"time_ns\":%" PRIu64 ",\"period_ns\":%" PRIu64
			      ",\"missed\":%" PRIu64 ",\"ticks_ns\":[",
			      r->start_ns, r->period_ns, r->missed);
		for (size_t t = 0; t < r->ticks.count; t++)
			(void)fprintf(out, "%s%" PRIu64, t ? "," : "", r->ticks.items[t]);
		(void)fputs("]}", out);
	}
}

static void write_processes(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->processes.count; i++) {
		const struct ss_profile_process *p = &profile->processes.items[i];
		begin_row(i, out);
		(void)fprintf(out, "\"recording\":%" PRIu32 ",\"pid\":%d,", p->recording,
			      p->pid);
		ss_json_write_member("name", p->name, out);
		(void)fputc(',', out);
		ss_json_write_member("executable", p->executable, out);
		(void)fputc('}', out);
	}
}

static void write_threads(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *t = &profile->threads.items[i];
		begin_row(i, out);
		(void)fprintf(out, "\"process\":%" PRIu32 ",\"tid\":%d,", t->process,
			      t->tid);
		ss_json_write_member("name", t->name, out);
		(void)fputc('}', out);
	}
}

static void write_modules(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_profile_module *m = &profile->modules.items[i];
		begin_row(i, out);
		ss_json_write_member("path", m->path, out);
		(void)fputc(',', out);
		ss_json_write_member("build_id", m->build_id, out);
		(void)fputc(',', out);
		ss_json_write_member("problem", m->problem, out);
		(void)fputc('}', out);
	}
}

static void write_lifetimes(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->lifetimes.count; i++) {
		const struct ss_profile_lifetime *l = &profile->lifetimes.items[i];
		begin_row(i, out);
		(void)fprintf(out,
			      "\"module\":%" PRIu32 ",\"process\":%" PRIu32
			      ",\"base\":\"0x%" PRIx64 "\",\"size\":%" PRIu64
			      ",\"loaded_ns\":%" PRId64 ",\"unloaded_ns\":",
			      l->module, l->process, l->base, l->size, l->from_ns);
		if (l->to_ns == INT64_MAX)
			(void)fputs("null}", out);
		else
			(void)fprintf(out, "%" PRId64 "}", l->to_ns);
	}
}

static void write_frames(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->frames.count; i++) {
		const struct ss_profile_frame *f = ss_profile_frame_at(profile, i);
		const struct ss_profile_function *function =
			ss_profile_function_at(profile, f->function);
		begin_row(i, out);
		ss_json_write_member("name", function->name, out);
		(void)fprintf(out, ",\"named\":%s,", f->named ? "true" : "false");
		write_module_index(function->module, out);
		(void)fprintf(out,
			      ",\"offset\":\"0x%" PRIx64 "\",\"symbol_offset\":%" PRIu64
			      ",\"inlined\":%s,",
			      f->offset, f->symbol_offset, f->inlined ? "true" : "false");
		ss_json_write_member("file", f->file, out);
		if (f->line)
			(void)fprintf(out, ",\"line\":%" PRIu64 "}", f->line);
		else
			(void)fputs_unlocked(",\"line\":null}", out);
	}
}

/* Calls, but for the root, which callers name by null. */
static void write_calls(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 1; i < profile->calls.count; i++) {
		const struct ss_profile_call *c = ss_profile_call_at(profile, i);
		(void)fputs_unlocked(i > 1 ? ",\n" : "\n", out);
		if (c->parent)
			(void)fprintf(out, "[%" PRIu32 ",%" PRIu32 "]", c->parent - 1,
				      c->frame);
		else
			(void)fprintf(out, "[null,%" PRIu32 "]", c->frame);
	}
}

static void write_wait(const struct ss_profile *profile, const struct ss_profile_run *run,
		       FILE *out)
{
	const struct ss_profile_wait *wait =
		run->wait == SS_NUMBER_NOT ? NULL : &profile->waits.items[run->wait];

	ss_json_write_member("wait", wait ? wait->name : NULL, out);
	if (wait && wait->argument == SS_WAIT_DESCRIPTOR)
		(void)fprintf(out, ",\"fd\":%d,\"address\":null", (int)run->argument);
	else if (wait && wait->argument == SS_WAIT_ADDRESS)
		(void)fprintf(out, ",\"fd\":null,\"address\":\"0x%" PRIx64 "\"",
			      run->argument);
	else
		(void)fputs_unlocked(",\"fd\":null,\"address\":null", out);
}

static void write_run(const struct ss_profile *profile, size_t thread,
		      const struct ss_profile_run *run, FILE *out)
{
	bool letter = (run->state >= 'A' && run->state <= 'Z') || run->state == 't';

	(void)fprintf(out,
		      "\"thread\":%zu,\"tick\":%" PRIu32 ",\"count\":%" PRIu32
		      ",\"call\":",
		      thread, run->tick, run->count);
	if (run->call)
		(void)fprintf(out, "%" PRIu32, run->call - 1);
	else
		(void)fputs_unlocked("null", out);
	(void)fprintf(out, ",\"state\":\"%c\",\"cpu_ns\":%" PRIu64 ",",
		      letter ? run->state : '?', run->cpu_ns);
	write_wait(profile, run, out);
	(void)fputc_unlocked('}', out);
}

static void write_samples(const struct ss_profile *profile, FILE *out)
{
	size_t at = 0;

	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			begin_row(at++, out);
			write_run(profile, t, &thread->runs.items[r], out);
		}
	}
}

/* Who waits for whom. */
static void write_waits(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->links.count; i++) {
		const struct ss_profile_link *l = &profile->links.items[i];
		begin_row(i, out);
		(void)fprintf(out, "\"thread\":%" PRIu32 ",\"owner\":", l->thread);
		if (l->owner == SS_NUMBER_NOT)
			(void)fputs("null,", out);
		else
			(void)fprintf(out, "%" PRIu32 ",", l->owner);
		ss_json_write_member("kind", l->kind, out);
		(void)fputc(',', out);
		ss_json_write_member("text", l->text, out);
		(void)fprintf(out, ",\"deadlock\":%s}", l->in_circle ? "true" : "false");
	}
}

static void write_notes(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->notes.count; i++) {
		(void)fputs(i ? "," : "", out);
		ss_json_write_text(profile->notes.items[i], out);
	}
}

static struct ss_error *write_json(const struct ss_profile *profile,
				   const struct ss_report_options *options, FILE *out)
{
	static const struct {
		const char *key;
		void (*write)(const struct ss_profile *profile, FILE *out);
	} members[] = {
		{ "recordings", write_recordings }, { "processes", write_processes },
		{ "threads", write_threads },	    { "modules", write_modules },
		{ "lifetimes", write_lifetimes },   { "frames", write_frames },
		{ "calls", write_calls },	    { "samples", write_samples },
		{ "waits", write_waits },	    { "notes", write_notes },
	};

	(void)options;
	(void)fprintf(out, "{\"schema\":\"stacksnap-report/1\",\"time_ns\":%" PRIu64,
		      profile->start_ns);
	for (size_t i = 0; i < SS_ARRAY_SIZE(members); i++) {
		(void)fprintf(out, ",\n\"%s\":[", members[i].key);
		members[i].write(profile, out);
		(void)fputc(']', out);
	}
	(void)fputs("}\n", out);
	return NULL;
}

const struct ss_reporter ss_reporter_json = {
	.name = "json",
	.summary = "for programs, see stacksnap-report-json(5)",
	.write = write_json,
};
