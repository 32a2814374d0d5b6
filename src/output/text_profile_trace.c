/*
 * The traced functions of a profile: how often each was hit, and how long its scopes took.
 */
#include <string.h>

#include "output/durations.h"
#include "output/escape.h"
#include "output/quantity.h"
#include "output/text_profile.h"

struct counts {
	uint64_t events;
	uint64_t left; /* scopes that ended without a return, */
	uint64_t open; /* or did not end */
};

static void write_probe(const struct ss_profile *profile,
			const struct ss_profile_probe *probe, const struct counts *counts,
			FILE *out)
{
	const char *path = probe->module == SS_ID_NONE ?
				   NULL :
				   profile->modules.items[probe->module].path;
	const char *slash = path ? strrchr(path, '/') : NULL;

	(void)fputs("  ", out);
	ss_quantity_write_things(counts->events, "hit", out);
	(void)fputs(" of ", out);
	ss_escape_write(probe->name, NULL, out);
	if (path) {
		(void)fputs(" (", out);
		ss_escape_write(slash ? slash + 1 : path, NULL, out);
		(void)fputc(')', out);
	}
	if (counts->left) {
		(void)fputs(", ", out);
		ss_quantity_write_count(counts->left, out);
		(void)fputs(" left without a return", out);
	}
	if (counts->open) {
		(void)fputs(", ", out);
		ss_quantity_write_count(counts->open, out);
		(void)fputs(" still open at the end", out);
	}
	(void)fputc('\n', out);
}

static struct counts *count_events(const struct ss_profile *profile)
{
	struct counts *counts = calloc(profile->probes.count + 1, sizeof(*counts));

	for (size_t i = 0; counts && i < profile->events.count; i++) {
		const struct ss_profile_event *event = &profile->events.items[i];
		counts[event->probe].events++;
		counts[event->probe].left += event->kind == SS_TRACE_LEFT;
		counts[event->probe].open += event->kind == SS_TRACE_OPEN ||
					     event->kind == SS_TRACE_ENTER;
	}
	return counts;
}

static void write_totals(const struct ss_profile *profile, FILE *out)
{
	for (size_t i = 0; i < profile->traces.count; i++) {
		const struct ss_trace_summary *totals = &profile->traces.items[i].totals;
		(void)fputs("  ", out);
		if (profile->recordings.count > 1) {
			ss_escape_write(profile->recordings
						.items[profile->traces.items[i].recording]
						.file,
					NULL, out);
			(void)fputs(": ", out);
		}
		ss_trace_write_totals(totals, out);
	}
}

bool ss_text_profile_trace(const struct ss_profile *profile,
			   const struct ss_format_options *options, FILE *out)
{
	_cleanup_free_ struct counts *counts = count_events(profile);
	_cleanup_free_ struct ss_durations *durations = ss_profile_durations(profile);

	if (!counts || !durations)
		return false;
	if (profile->events.count == 0)
		return true;
	ss_text_profile_heading("Traced functions", options, out);
	for (size_t i = 0; i < profile->probes.count; i++) {
		if (!counts[i].events)
			continue;
		write_probe(profile, ss_profile_probe_at(profile, i), &counts[i], out);
		if (!durations[i].count)
			continue;
		(void)fputs("  ", out);
		ss_durations_write_line(&durations[i], out);
		ss_durations_write(&durations[i], out);
	}
	write_totals(profile, out);
	return true;
}
