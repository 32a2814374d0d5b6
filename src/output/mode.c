#include "output/mode.h"

#include <string.h>

#include "base/cleanup.h"

static const char *const names[] = {
	[SS_MODE_DEFAULT] = "default", [SS_MODE_STOP] = "stop", [SS_MODE_LIVE] = "live",
	[SS_MODE_NO_STOP] = "no-stop", [SS_MODE_AUTO] = "auto", [SS_MODE_CORE] = "core",
};

const char *ss_mode_name(enum ss_mode mode)
{
	return (size_t)mode < SS_ARRAY_SIZE(names) ? names[mode] : "unknown";
}

bool ss_mode_find(const char *name, enum ss_mode *ret)
{
	for (size_t i = SS_MODE_STOP; i <= SS_MODE_AUTO; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum ss_mode)i;
			return true;
		}
	}
	return false;
}
