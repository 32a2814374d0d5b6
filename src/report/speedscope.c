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

/* Outermost first. path is room for the deepest stack. */
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

static void write_samples(const struct ss_profile *profile,
			  const struct ss_profile_thread *thread, uint32_t *path,
			  FILE *out)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(profile, thread);

	(void)fputs("\"samples\":[", out);
	for (size_t i = 0; i < thread->runs.count; i++) {
		(void)fputs_unlocked(i ? "," : "", out);
		write_stack(profile, thread->runs.items[i].call, path, out);
	}
	(void)fputs("],\"weights\":[", out);
	for (size_t i = 0; i < thread->runs.count; i++) {
		const struct ss_profile_run *run = &thread->runs.items[i];
		uint64_t end = ss_profile_run_end(recording, run);
		(void)fprintf(out, "%s%" PRIu64, i ? "," : "",
			      end - recording->ticks.items[run->tick]);
	}
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
