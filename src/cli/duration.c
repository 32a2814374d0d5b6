#include "cli/duration.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "", 1000000000 },   { "ms", 1000000 },      { "s", 1000000000 },
	{ "m", 60000000000 }, { "h", 3600000000000 },
};

static const uint64_t year_ns = UINT64_C(366) * 24 * 3600000000000;

bool ss_duration_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t value = 0;
	uint64_t ns;
	const char *at = text;

	for (; isdigit((unsigned char)*at); at++) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (value > year_ns)
			return false;
	}
	if (at == text)
		return false;
	for (size_t i = 0; i < SS_ARRAY_SIZE(units); i++) {
		if (strcmp(at, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].ns, &ns) || ns > year_ns ||
		    ns == 0)
			return false;
		*ret_ns = ns;
		return true;
	}
	return false;
}
