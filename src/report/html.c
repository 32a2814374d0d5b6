/*
 * One page that needs nothing beside it. The data is JSON, packed and in base64, so that
 * nothing that is in it can be taken for a part of the page; the script of the page shows
 * names as text only. Its keys are private to the page: the format "json" is for others.
 */
#include <inttypes.h>
#include <time.h>

#include "report/condense.h"
#include "report/jsontext.h"
#include "report/packed.h"
#include "report/page.h"
#include "report/report.h"

enum { US = 1000 };

static const char *comma(size_t index)
{
	return index ? "," : "";
}

static void write_title(const struct ss_profile *profile, FILE *out)
{
	const struct ss_profile_process *process = profile->processes.items;
	_cleanup_free_ char *title = NULL;
	int size = profile->processes.count == 1 ?
			   asprintf(&title, "%s, pid %d", process->name, process->pid) :
			   asprintf(&title, "%zu processes", profile->processes.count);

	ss_json_write_member("title", size < 0 ? "stacksnap" : title, out);
	if (size < 0)
		title = NULL;
}

static void write_start(uint64_t time_ns, FILE *out)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm tm = {};
	char text[64] = "";

	if (localtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm);
	ss_json_write_member("start", text, out);
}

static void write_recordings(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->recordings.count; i++) {
		const struct ss_profile_recording *r = &profile->recordings.items[i];
		uint64_t last = 0;
		(void)fprintf(out, "%s{", comma(i));
		ss_json_write_member("file", r->file, out);
		(void)fputc(',', out);
		ss_json_write_member("host", r->host, out);
		(void)fputc(',', out);
		write_start(r->start_ns, out);
		(void)fprintf(out, ",\"period\":%" PRIu64 ",\"ticks\":[",
			      r->period_ns / US);
		for (size_t t = 0; t < r->ticks.count; t++) {
			uint64_t now = r->ticks.items[t] / US;
			(void)fprintf(out, "%s%" PRIu64, comma(t), now - last);
			last = now;
		}
		(void)fputs("]}", out);
	}
}

static void write_processes(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->processes.count; i++) {
		const struct ss_profile_process *p = &profile->processes.items[i];
		(void)fprintf(out, "%s{\"recording\":%" PRIu32 ",\"pid\":%d,", comma(i),
			      p->recording, p->pid);
		ss_json_write_member("name", p->name, out);
		(void)fputc('}', out);
	}
}

static void write_threads(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *t = &profile->threads.items[i];
		(void)fprintf(out, "%s{\"process\":%" PRIu32 ",\"tid\":%d,", comma(i),
			      t->process, t->tid);
		ss_json_write_member("name", t->name, out);
		(void)fputc('}', out);
	}
}

static void write_modules(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_profile_module *m = &profile->modules.items[i];
		(void)fprintf(out, "%s{", comma(i));
		ss_json_write_member("path", m->path, out);
		(void)fputc(',', out);
		ss_json_write_member("build_id", m->build_id, out);
		(void)fputc(',', out);
		ss_json_write_member("missing", m->problem, out);
		(void)fputc('}', out);
	}
}

static void write_lifetimes(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->lifetimes.count; i++) {
		const struct ss_profile_lifetime *l = &profile->lifetimes.items[i];
		(void)fprintf(out,
			      "%s{\"module\":%" PRIu32 ",\"process\":%" PRIu32
			      ",\"base\":\"0x%" PRIx64 "\",\"from\":%" PRId64 ",\"to\":",
			      comma(i), l->module, l->process, l->base, l->from_ns / US);
		if (l->to_ns == INT64_MAX)
			(void)fputs("null}", out);
		else
			(void)fprintf(out, "%" PRId64 "}", l->to_ns / US);
	}
}

/* Which functions have no name. Without memory the page lists each of them. */
static void write_places(const struct ss_profile *profile, FILE *out)
{
	_cleanup_free_ bool *places = ss_condensed_find_places(profile);
	size_t at = 0;

	for (size_t i = 0; places && i < profile->functions.count; i++) {
		if (places[i])
			(void)fprintf(out, "%s%zu", comma(at++), i);
	}
}

static void write_functions(const struct ss_profile *profile, FILE *out)
{
	(void)fputs("\"name\":[", out);
	for (size_t i = 0; i < profile->functions.count; i++) {
		(void)fputs(comma(i), out);
		ss_json_write_text(ss_profile_function_at(profile, i)->name, out);
	}
	(void)fputs("],\"module\":[", out);
	for (size_t i = 0; i < profile->functions.count; i++) {
		uint64_t module = ss_profile_function_at(profile, i)->module;
		(void)fprintf(out, "%s%" PRId64, comma(i),
			      module == SS_NUMBER_NOT ? -1 : (int64_t)module);
	}
	(void)fputs("],\"places\":[", out);
	write_places(profile, out);
	(void)fputc(']', out);
}

/* A parent as the distance to it, which packs better. */
static void write_nodes(const struct ss_profile *profile, FILE *out)
{
	(void)fputs("\"parent\":[0", out);
	for (size_t i = 1; i < profile->nodes.count; i++)
		(void)fprintf(out, ",%zu", i - ss_profile_node_at(profile, i)->parent);
	(void)fputs("],\"function\":[0", out);
	for (size_t i = 1; i < profile->nodes.count; i++)
		(void)fprintf(out, ",%" PRIu32, ss_profile_node_at(profile, i)->function);
	(void)fputc(']', out);
}

/* One column of all runs. */
typedef void run_writer(const struct ss_profile *profile, size_t thread, size_t run,
			FILE *out);

static void write_column(const struct ss_profile *profile, const char *key,
			 run_writer *write, FILE *out)
{
	size_t at = 0;

	(void)fprintf(out, "\"%s\":[", key);
	for (size_t t = 0; t < profile->threads.count; t++) {
		for (size_t r = 0; r < profile->threads.items[t].runs.count; r++) {
			(void)fputs_unlocked(comma(at++), out);
			write(profile, t, r, out);
		}
	}
	(void)fputs("],", out);
}

/* Since the run before: its thread, and ticks since its end. */
static void write_run_thread(const struct ss_profile *profile, size_t thread, size_t run,
			     FILE *out)
{
	size_t step = 0;

	for (size_t t = thread; run == 0 && t > 0; t--) {
		step++;
		if (profile->threads.items[t - 1].runs.count)
			break;
	}
	(void)fprintf(out, "%zu", step);
}

static void write_run_tick(const struct ss_profile *profile, size_t thread, size_t run,
			   FILE *out)
{
	const struct ss_profile_run *r = &profile->threads.items[thread].runs.items[run];

	(void)fprintf(out, "%" PRIu32,
		      run ? r->tick - (r[-1].tick + r[-1].count) : r->tick);
}

static void write_run_count(const struct ss_profile *profile, size_t thread, size_t run,
			    FILE *out)
{
	(void)fprintf(out, "%" PRIu32,
		      profile->threads.items[thread].runs.items[run].count);
}

static void write_run_node(const struct ss_profile *profile, size_t thread, size_t run,
			   FILE *out)
{
	uint32_t call = profile->threads.items[thread].runs.items[run].call;

	(void)fprintf(out, "%" PRIu32, profile->node_of.items[call]);
}

static void write_runs(const struct ss_profile *profile, FILE *out)
{
	write_column(profile, "thread", write_run_thread, out);
	write_column(profile, "tick", write_run_tick, out);
	write_column(profile, "count", write_run_count, out);
	write_column(profile, "node", write_run_node, out);
	(void)fputs("\"state\":\"", out);
	for (size_t t = 0; t < profile->threads.count; t++) {
		for (size_t r = 0; r < profile->threads.items[t].runs.count; r++) {
			char state = profile->threads.items[t].runs.items[r].state;
			bool letter = (state >= 'A' && state <= 'Z') || state == 't';
			(void)fputc_unlocked(letter ? state : '?', out);
		}
	}
	(void)fputc('"', out);
}

static void write_links(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->links.count; i++) {
		const struct ss_profile_link *link = &profile->links.items[i];
		(void)fprintf(out, "%s{\"thread\":%" PRIu32 ",\"owner\":%" PRId64 ",",
			      comma(i), link->thread,
			      link->owner == SS_NUMBER_NOT ? -1 : (int64_t)link->owner);
		ss_json_write_member("kind", link->kind, out);
		(void)fputc(',', out);
		ss_json_write_member("text", link->text, out);
		(void)fprintf(out, ",\"circle\":%s}", link->in_circle ? "true" : "false");
	}
}

static void write_notes(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->notes.count; i++) {
		(void)fputs(comma(i), out);
		ss_json_write_text(profile->notes.items[i], out);
	}
}

static void write_data(const struct ss_profile *profile, FILE *out)
{
	static const struct {
		const char *key;
		const char *brackets;
		void (*write)(const struct ss_profile *profile, FILE *out);
	} members[] = {
		{ "notes", "[]", write_notes },
		{ "recordings", "[]", write_recordings },
		{ "processes", "[]", write_processes },
		{ "threads", "[]", write_threads },
		{ "modules", "[]", write_modules },
		{ "links", "[]", write_links },
		{ "lifetimes", "[]", write_lifetimes },
		{ "functions", "{}", write_functions },
		{ "nodes", "{}", write_nodes },
		{ "runs", "{}", write_runs },
	};

	(void)fputc('{', out);
	write_title(profile, out);
	for (size_t i = 0; i < SS_ARRAY_SIZE(members); i++) {
		(void)fprintf(out, ",\"%s\":%c", members[i].key, members[i].brackets[0]);
		members[i].write(profile, out);
		(void)fputc(members[i].brackets[1], out);
	}
	(void)fputc('}', out);
}

static struct ss_error *write_html(const struct ss_profile *profile,
				   const struct ss_report_options *options, FILE *out)
{
	(void)options;
	(void)fwrite(ss_page_before, 1, ss_page_before_size, out);
	FILE *data = ss_packed_open(out, true);
	if (!data)
		return ss_error_no_memory();
	write_data(profile, data);
	if (fclose(data) != 0)
		return ss_error_no_memory();
	(void)fwrite(ss_page_after, 1, ss_page_after_size, out);
	return NULL;
}

const struct ss_reporter ss_reporter_html = {
	.name = "html",
	.summary = "one page to look at in a browser: flame graph, time, functions",
	.write = write_html,
};
