#include "report/format.h"

#include <string.h>

#include "data/snapshot.h"

static const struct ss_format *const formats[] = {
	&ss_format_text,       &ss_format_json,	  &ss_format_brief, &ss_format_folded,
	&ss_format_gdb,	       &ss_format_eu,	  &ss_format_dot,   &ss_format_html,
	&ss_format_speedscope, &ss_format_pprof,  &ss_format_perf,  &ss_format_recording,
#if SS_CRASH
	&ss_format_minidump,
#endif
	&ss_format_satyr,      &ss_format_apport, &ss_format_rows,
};

static bool can_write(const struct ss_format *format, enum ss_format_input input)
{
	switch (input) {
	case SS_FORMAT_SNAPSHOT:
		return format->write_snapshot;
	case SS_FORMAT_HANG:
		return format->write_hang;
	case SS_FORMAT_PROFILE:
		return format->write_profile;
	case SS_FORMAT_SERIES:
		return format->write_snapshots || format->write_profile;
	case SS_FORMAT_DIFF:
		return format->write_diff;
	case SS_FORMAT_HEAP:
		return format->write_heap;
	case SS_FORMAT_TOTALS:
		return format->totals;
	}
	return false;
}

const struct ss_format *ss_format_at(enum ss_format_input input, size_t index)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(formats); i++) {
		if (can_write(formats[i], input) && index-- == 0)
			return formats[i];
	}
	return NULL;
}

const struct ss_format *ss_format_find(enum ss_format_input input, const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(formats); i++) {
		if (can_write(formats[i], input) && strcmp(formats[i]->name, name) == 0)
			return formats[i];
	}
	return NULL;
}

void ss_format_write_names(enum ss_format_input input, const char *separator, FILE *out)
{
	const struct ss_format *format = NULL;

	for (size_t i = 0; (format = ss_format_at(input, i)); i++)
		(void)fprintf(out, "%s%s", i ? separator : "", format->name);
}

void ss_format_write_help(enum ss_format_input input, FILE *out)
{
	const struct ss_format *format = NULL;

	(void)fputs("Formats:\n", out);
	for (size_t i = 0; (format = ss_format_at(input, i)); i++)
		(void)fprintf(out, "  %-10s %s\n", format->name, format->description);
}

struct ss_error *ss_snapshot_write(const struct ss_snapshot *snapshot, const char *name,
				   unsigned flags, FILE *out)
{
	const struct ss_format *format = ss_format_find(SS_FORMAT_SNAPSHOT, name);
	const struct ss_format_options options = {
		.size = sizeof(options),
		.all = flags & SS_WRITE_ALL,
		.verbose = flags & SS_WRITE_VERBOSE,
		.groups = { [SS_TASK_GOROUTINE] = SS_FORMAT_TASK_GROUPS,
			    [SS_TASK_ASYNCIO] = SS_FORMAT_TASK_GROUPS },
		.problem = snapshot->problem,
	};

	if (!format)
		return ss_error_new(SS_ERROR_INVALID, "there is no format \"%s\"", name);
	if (format->confined)
		return ss_error_new(SS_ERROR_INVALID,
				    "the format \"%s\" needs the capture", name);
	return format->write_snapshot(snapshot, &options, out);
}
