#include "report/report.h"

#include <string.h>

static const struct ss_reporter *const reporters[] = {
	&ss_reporter_text, &ss_reporter_folded,	    &ss_reporter_json,
	&ss_reporter_html, &ss_reporter_speedscope, &ss_reporter_pprof,
	&ss_reporter_perf,
};

const struct ss_reporter *ss_reporter_at(size_t index)
{
	return index < SS_ARRAY_SIZE(reporters) ? reporters[index] : NULL;
}

const struct ss_reporter *ss_reporter_find(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(reporters); i++) {
		if (strcmp(reporters[i]->name, name) == 0)
			return reporters[i];
	}
	return NULL;
}
