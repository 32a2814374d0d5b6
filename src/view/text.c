/*
 * For a person at three in the morning: what it is and how long it was held, then
 * the main thread, then the stacks that most threads share.
 */
#include "view/text.h"

#include <inttypes.h>
#include <time.h>

#include "view/escape.h"
#include "view/mode.h"
#include "view/quantity.h"
#include "view/style.h"

static void write_time(uint64_t time_ns, FILE *out)
{
	enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm = {};
	char text[64] = "";

	if (!localtime_r(&seconds, &tm) ||
	    strftime(text, sizeof(text), "%F %T", &tm) == 0)
		return;
	(void)fprintf(out, ", %s.%03u", text, (unsigned)(time_ns % NS_PER_S / NS_PER_MS));
}

static void write_process(const struct ss_process *process, bool color, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, color, out);
	ss_escape_write(process->name, NULL, out);
	ss_style_write(SS_STYLE_NONE, color, out);
	(void)fprintf(out, ", pid %d", process->pid);
	if (process->inner_pid && process->inner_pid != process->pid)
		(void)fprintf(out, "[%d in its pid namespace]", process->inner_pid);
	if (process->executable) {
		(void)fputs_unlocked(", ", out);
		ss_escape_write(process->executable, NULL, out);
	}
	write_time(process->time_ns, out);
	(void)fputc_unlocked('\n', out);
}

static void write_pause(const struct ss_process *process, FILE *out)
{
	if (process->threads_stopped == 0) {
		(void)fputs_unlocked("none was stopped", out);
		return;
	}
	(void)fputs_unlocked("stopped for ", out);
	ss_quantity_write_time(process->stopped_ns, out);
	if (process->running_stopped_ns) {
		(void)fputs_unlocked(" (what was running: ", out);
		ss_quantity_write_time(process->running_stopped_ns, out);
		(void)fputs_unlocked(" at most)", out);
	}
}

static void write_capture(const struct ss_snapshot *snapshot, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	size_t count = ss_snapshot_thread_count(snapshot);

	ss_quantity_write_count(count, out);
	(void)fputs_unlocked(count == 1 ? " thread, " : " threads, ", out);
	write_pause(process, out);
	(void)fprintf(out, ", mode %s", ss_mode_name(process->mode));
	(void)fputs_unlocked(process->consistent ? ", consistent\n" :
						   ", not all at one moment\n",
			     out);
}

void ss_text_write_frozen(const struct ss_process *process, bool color, FILE *out)
{
	if (!process->frozen)
		return;
	ss_style_write(SS_STYLE_WARN, color, out);
	(void)fputs_unlocked("frozen by the cgroup ", out);
	ss_escape_write(process->frozen, NULL, out);
	(void)fputs_unlocked(": no thread runs until it is thawed\n", out);
	ss_style_write(SS_STYLE_NONE, color, out);
}

static void write_unseen(unsigned count, bool color, FILE *out)
{
	if (count == 0)
		return;
	ss_style_write(SS_STYLE_WARN, color, out);
	ss_quantity_write_count(count, out);
	(void)fprintf(out, " more thread%s there and could not be read\n",
		      count == 1 ? " was" : "s were");
	ss_style_write(SS_STYLE_NONE, color, out);
}

static void write_problem(const char *problem, bool color, FILE *out)
{
	if (!problem)
		return;
	ss_style_write(SS_STYLE_WARN, color, out);
	ss_escape_write(problem, NULL, out);
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_NONE, color, out);
}

static struct ss_error *render_text(const struct ss_snapshot *snapshot,
				    const struct ss_render_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, !options->no_group);
	struct ss_error *error = grouping ? NULL : ss_error_no_memory();

	if (error)
		return error;
	write_process(process, options->color, out);
	write_capture(snapshot, out);
	ss_text_write_frozen(process, options->color, out);
	write_unseen(process->threads_unseen, options->color, out);
	write_problem(options->problem, options->color, out);
	ss_text_write_deadlocks(snapshot, options, out);
	for (size_t i = 0; i < grouping->count && !error; i++) {
		const struct ss_group *group = &grouping->groups[i];
		(void)fputc_unlocked('\n', out);
		error = ss_text_write_threads(snapshot, group, options, out);
		if (!error)
			error = ss_text_write_waits(snapshot, group, options, out);
		ss_text_write_frames(snapshot,
				     ss_snapshot_thread(snapshot, *group->members),
				     options, out);
	}
	return error;
}

const struct ss_renderer ss_renderer_text = {
	.name = "text",
	.summary = "for people; equal stacks are merged",
	.separator = "\n",
	.explains = true,
	.render = render_text,
};
