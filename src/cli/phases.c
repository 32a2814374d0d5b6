#include "cli/phases.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/failure.h"
#include "report/quantity.h"

static const char *const names[] = {
	[SS_PHASE_OPEN] = "open",	  [SS_PHASE_CAPTURE] = "capture",
	[SS_PHASE_UNWIND] = "unwind",	  [SS_PHASE_SYMBOLIZE] = "symbolize",
	[SS_PHASE_DIAGNOSE] = "diagnose", [SS_PHASE_RENDER] = "render",
};

void ss_phases_enter(struct ss_phases *phases, enum ss_phase phase)
{
	uint64_t now = ss_now_ns();

	if (phases->current < SS_PHASE_COUNT)
		phases->spent_ns[phases->current] += now - phases->begun_ns;
	phases->current = phase;
	phases->begun_ns = now;
}

static void write_times(const struct ss_phases *phases, FILE *out)
{
	for (size_t i = 0; i < SS_PHASE_COUNT; i++)
		(void)fprintf(out, "%s%s %s", i ? ", " : "", names[i],
			      ss_quantity_time(phases->spent_ns[i]).text);
}

static void write_copied(const struct ss_process *process, size_t threads, FILE *out)
{
	(void)fprintf(out, "copied %s of the stacks of %zu thread%s, %u stopped",
		      ss_quantity_size(process->copied_bytes).text, threads,
		      threads == 1 ? "" : "s", process->threads_stopped);
}

static void print_modules(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_module_count(snapshot); i++) {
		const struct ss_module *module = ss_snapshot_module(snapshot, i);
		if (module->problem)
			ss_failure_warn("%s: %s", module->path, module->problem);
	}
}

void ss_phases_print(const struct ss_phases *phases, const struct ss_snapshot *snapshot)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	write_times(phases, out);
	(void)fputs("; ", out);
	write_copied(process, ss_snapshot_task_count(snapshot, SS_TASK_THREAD), out);
	if (fclose(out) == 0)
		ss_failure_warn("%d: %s", process->pid, text);
	print_modules(snapshot);
}
