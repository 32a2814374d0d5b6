/*
 * stacksnap-report-diff/1, see stacksnap-report-json(5).
 */
#include <stdlib.h>

#include "output/json_document.h"
#include "output/profile_diff.h"

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
static bool write_frames(struct ss_json *json, const char *key,
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
		whole = write_frames(json, "frames", diff->profile, diff->stacks[i].node);
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
			whole = write_frames(json, keys[set], profile, d->node[set]);
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
