/*
 * The text of "perf script", with one event for each sample. What reads it takes from the
 * first line of an event name, pid/tid, time, period and event, and from each other line
 * an address, the symbol with "+0x..." behind it, and the module in parentheses; an empty
 * line ends the event. White space in the name of a thread would end it there.
 *
 * Addresses are ELF virtual addresses of the module: the same whatever process it is
 * from.
 */
#include <inttypes.h>

#include "report/report.h"
#include "view/escape.h"

static const struct ss_substitution in_names = { " \t\r\n#", "_____" };
static const struct ss_substitution in_symbols = { "\n\r", "__" };

/* Where a thread is in the ticks of its recording, and the text of its last stack. */
struct place {
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
	const char *path = function->module == SS_NUMBER_NOT ?
				   "[unknown]" :
				   profile->modules.items[function->module].path;

	(void)fprintf(out, "\t%16" PRIx64 " ", frame->offset);
	ss_escape_write(function->name, &in_symbols, out);
	if (frame->named && !frame->inlined)
		(void)fprintf(out, "+0x%" PRIx64, frame->symbol_offset);
	(void)fputs_unlocked(" (", out);
	ss_escape_write(frame->inlined ? "inlined" : path, NULL, out);
	(void)fputs_unlocked(")\n", out);
}

static bool render_stack(const struct ss_profile *profile, uint32_t call,
			 struct place *place)
{
	free(place->text);
	place->text = NULL;
	place->call = call;
	FILE *out = open_memstream(&place->text, &place->size);
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
			struct place *place, uint64_t time_ns, FILE *out)
{
	const struct ss_profile_thread *thread = &profile->threads.items[number];
	const struct ss_profile_process *process =
		&profile->processes.items[thread->process];
	uint64_t period = profile->recordings.items[process->recording].period_ns;
	uint32_t call = thread->runs.items[place->run].call;

	if ((!place->text || place->call != call) && !render_stack(profile, call, place))
		return false;
	ss_escape_write(*thread->name ? thread->name : "?", &in_names, out);
	(void)fprintf(out, " %d/%d %" PRIu64 ".%06" PRIu64 ": %" PRIu64 " wall-clock:\n",
		      process->pid, thread->tid, time_ns / 1000000000,
		      time_ns / 1000 % 1000000, period ? period : 1);
	(void)fwrite_unlocked(place->text, 1, place->size, out); /* ferror() later */
	(void)fputc_unlocked('\n', out);
	return true;
}

/* The thread's sample at this tick, if it has one. */
static bool write_sample(const struct ss_profile *profile, size_t number,
			 struct place *place, size_t tick, uint64_t time_ns, FILE *out)
{
	const struct ss_profile_thread *thread = &profile->threads.items[number];

	while (place->run < thread->runs.count) {
		const struct ss_profile_run *run = &thread->runs.items[place->run];
		if (tick < run->tick)
			return true;
		if (tick - run->tick < run->count)
			return write_event(profile, number, place, time_ns, out);
		place->run++;
	}
	return true;
}

static bool write_recording(const struct ss_profile *profile, size_t index,
			    struct place *places, FILE *out)
{
	const struct ss_profile_recording *recording = &profile->recordings.items[index];

	for (size_t tick = 0; tick < recording->ticks.count; tick++) {
		for (size_t t = 0; t < profile->threads.count; t++) {
			uint32_t process = profile->threads.items[t].process;
			if (profile->processes.items[process].recording == index &&
			    !write_sample(profile, t, &places[t], tick,
					  recording->ticks.items[tick], out))
				return false;
		}
	}
	return true;
}

static struct ss_error *write_perf(const struct ss_profile *profile,
				   const struct ss_report_options *options, FILE *out)
{
	_cleanup_free_ struct place *places =
		calloc(profile->threads.count + 1, sizeof(*places));
	bool whole = places != NULL;

	(void)options;
	for (size_t i = 0; whole && i < profile->recordings.count; i++)
		whole = write_recording(profile, i, places, out);
	for (size_t t = 0; places && t < profile->threads.count; t++)
		free(places[t].text);
	return whole ? NULL : ss_error_no_memory();
}

const struct ss_reporter ss_reporter_perf = {
	.name = "perf",
	.summary = "the text of perf script, one event for each sample",
	.write = write_perf,
};
