#include "output/trace.h"

#include <string.h>

#include "base/cleanup.h"

static const struct ss_trace_format *const formats[] = { &ss_trace_text, &ss_trace_json,
							 &ss_trace_folded };

const struct ss_trace_format *ss_trace_format_at(size_t index)
{
	return index < SS_ARRAY_SIZE(formats) ? formats[index] : NULL;
}

static const struct ss_trace_format *find(const struct ss_trace_format *const *table,
					  size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	}
	return NULL;
}

const struct ss_trace_format *ss_trace_format_find(const char *name)
{
	return find(formats, SS_ARRAY_SIZE(formats), name);
}

const struct ss_trace_format *ss_growth_format_find(const char *name)
{
	static const struct ss_trace_format *const growth[] = {
		&ss_growth_text, &ss_growth_json, &ss_growth_folded, &ss_growth_pprof
	};

	return find(growth, SS_ARRAY_SIZE(growth), name);
}
