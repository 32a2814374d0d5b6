/*
 * The layout of "perf script", one event per sample. The first line of an event has
 * thread name, pid/tid, time, period and event name; each other line has an address, a
 * symbol with "+0x..." and the module in parentheses; an empty line ends the event. A
 * thread name must not contain white space.
 *
 * Addresses are ELF virtual addresses in the module, which do not depend on the process.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/search.h"
#include "report/format.h"
#include "report/print.h"

static const struct ss_substitution in_names = { " \t\r\n#", "_____" };
static const struct ss_substitution in_symbols = { "\n\r", "__" };

/* The current run of a thread, and the text of the stack that was written last. */
struct position {
	size_t run;
	uint32_t call;
	char *text;
	size_t size;
};

static void write_frame(const struct ss_profile *profile,
			const struct ss_profile_frame *frame, FILE *out)
{
	const struct ss_profile_function *function =
		ss_profile_function_at(profile, frame->function);
	const bool native = function->kind == SS_FRAME_NATIVE;
	const char *path = function->module != SS_ID_NONE ?
				   profile->modules.items[function->module].path :
			   function->file ? function->file :
					    "[unknown]";

	(void)fprintf(out, "\t%16" PRIx64 " ", frame->offset);
	ss_escape_write(function->name, &in_symbols, out);
	/* Readers remove the last "+0x...". Without one, all functions of a module that have no
	   name would be the same for them. */
	if (native && !frame->inlined)
		(void)fprintf(out, "+0x%" PRIx64, frame->symbol_offset);
	(void)fputs_unlocked(" (", out);
	ss_escape_write(frame->inlined ? "inlined" : path, NULL, out);
	(void)fputs_unlocked(")\n", out);
}

static bool render_stack(const struct ss_profile *profile, uint32_t call,
			 struct position *position)
{
	free(position->text);
	position->text = NULL;
	position->call = call;
	FILE *out = open_memstream(&position->text, &position->size);
	if (!out)
		return false;
	while (call != 0) {
		const struct ss_profile_call *c = ss_profile_call_at(profile, call);
		write_frame(profile, ss_profile_frame_at(profile, c->frame), out);
		call = c->parent;
	}
	return fclose(out) == 0;
}

static bool write_event(const struct ss_profile *profile, size_t number,
			struct position *position, uint64_t time_ns, FILE *out)
{
	const struct ss_profile_thread *thread = &profile->threads.items[number];
	const struct ss_profile_process *process =
		&profile->processes.items[thread->process];
	uint64_t period = profile->recordings.items[process->recording].period_ns;
	const struct ss_profile_run *run = &thread->runs.items[position->run];
	const struct ss_profile_event *event = ss_profile_event_of(profile, run);
	uint32_t call = run->call;

	if ((!position->text || position->call != call) &&
	    !render_stack(profile, call, position))
		return false;
	ss_escape_write(*thread->name ? thread->name : "?", &in_names, out);
	if (profile->by_time)
		period = event ? event->self_ns : 0;
	(void)fprintf(out, " %d/%d %" PRIu64 ".%06" PRIu64 ": %" PRIu64 " ", process->pid,
		      thread->tid, time_ns / 1000000000, time_ns / 1000 % 1000000,
		      period ? period : 1);
	if (event)
		ss_escape_write(ss_profile_probe_at(profile, event->probe)->name,
				&in_names, out);
	else
		(void)fputs("wall-clock", out);
	(void)fputs(":\n", out);
	(void)fwrite_unlocked(position->text, 1, position->size, out);
	(void)fputc_unlocked('\n', out);
	return true;
}

/* Writes the sample of a thread at this tick, if there is one. */
static bool write_sample(const struct ss_profile *profile, size_t number,
			 struct position *position, size_t tick, uint64_t time_ns,
			 FILE *out)
{
	const struct ss_profile_thread *thread = &profile->threads.items[number];

	while (position->run < thread->runs.count) {
		const struct ss_profile_run *run = &thread->runs.items[position->run];
		if (tick < run->tick)
			return true;
		if (tick - run->tick < run->count)
			return write_event(profile, number, position, time_ns, out);
		position->run++;
	}
	return true;
}

static uint32_t recording_of(const struct ss_profile *profile, uint32_t thread)
{
	return profile->processes.items[profile->threads.items[thread].process].recording;
}

static int compare_recordings(const void *a, const void *b, void *data)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return SS_COMPARE(recording_of(data, x), recording_of(data, y)) ?:
									  SS_COMPARE(x, y);
}

/* The threads are those of the recording. */
static bool write_recording(const struct ss_profile *profile, size_t index,
			    const uint32_t *threads, size_t count,
			    struct position *positions, FILE *out)
{
	const struct ss_profile_recording *recording = &profile->recordings.items[index];

	for (size_t tick = 0; tick < recording->ticks.count; tick++) {
		for (size_t t = 0; t < count; t++) {
			if (!write_sample(profile, threads[t], &positions[threads[t]],
					  tick, recording->ticks.items[tick], out))
				return false;
		}
	}
	return true;
}

static struct ss_error *write_profile(const struct ss_profile *profile,
				      const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ struct position *positions =
		calloc(profile->threads.count + 1, sizeof(*positions));
	_cleanup_free_ uint32_t *threads =
		calloc(profile->threads.count + 1, sizeof(*threads));
	bool whole = positions && threads;

	(void)options;
	for (uint32_t t = 0; whole && t < profile->threads.count; t++)
		threads[t] = t;
	if (whole)
		qsort_r(threads, profile->threads.count, sizeof(*threads),
			compare_recordings, ss_drop_const(profile));
	for (size_t i = 0, first = 0, end = 0; whole && i < profile->recordings.count;
	     i++, first = end) {
		while (end < profile->threads.count &&
		       recording_of(profile, threads[end]) == i)
			end++;
		whole = write_recording(profile, i, threads + first, end - first,
					positions, out);
	}
	for (size_t t = 0; positions && t < profile->threads.count; t++)
		free(positions[t].text);
	return whole ? NULL : ss_error_no_memory();
}

const struct ss_format ss_format_perf = {
	.name = "perf",
	.description = "the layout of perf script, one event per sample",
	.write_profile = write_profile,
};
