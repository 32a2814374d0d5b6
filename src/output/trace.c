#include "output/trace.h"

#include <string.h>

#include "base/cleanup.h"

static const struct ss_trace_format *const formats[] = { &ss_trace_text, &ss_trace_json,
							 &ss_trace_folded };

const struct ss_trace_format *ss_trace_format_at(size_t index)
{
	return index < SS_ARRAY_SIZE(formats) ? formats[index] : NULL;
}

const struct ss_trace_format *ss_trace_format_find(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(formats); i++) {
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	}
	return NULL;
}
