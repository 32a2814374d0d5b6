#include "view/render.h"

#include <string.h>

static const struct ss_renderer *const renderers[] = {
	&ss_renderer_text,   &ss_renderer_json, &ss_renderer_gdb,	&ss_renderer_eu,
	&ss_renderer_folded, &ss_renderer_dot,	&ss_renderer_recording,
};

const struct ss_renderer *ss_renderer_at(size_t index)
{
	return index < SS_ARRAY_SIZE(renderers) ? renderers[index] : NULL;
}

const struct ss_renderer *ss_renderer_find(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(renderers); i++) {
		if (strcmp(renderers[i]->name, name) == 0)
			return renderers[i];
	}
	return NULL;
}
