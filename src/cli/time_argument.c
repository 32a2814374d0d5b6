#include "cli/time_argument.h"

#include <string.h>

#include "base/cleanup.h"

enum { DIGITS_MAX = 9, SECONDS_MAX = 1000000000 };

#define SECOND_NS UINT64_C(1000000000)

/* Parses an optional fraction. Returns its end. */
static const char *parse_fraction(const char *text, uint64_t *ret)
{
	uint64_t scale = SECOND_NS / 10;

	*ret = 0;
	if (*text != '.')
		return text;
	text++;
	for (; *text >= '0' && *text <= '9'; text++) {
		*ret += (uint64_t)(*text - '0') * scale;
		scale /= 10;
	}
	return text;
}

static bool parse_seconds(const char *text, struct ss_time_argument *ret)
{
	uint64_t seconds = 0;
	uint64_t fraction = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9' && at - text <= DIGITS_MAX; at++)
		seconds = seconds * 10 + (uint64_t)(*at - '0');
	bool digits = at > text || (*at == '.' && at[1]);
	at = parse_fraction(at, &fraction);
	if (*at == 's')
		at++;
	if (!digits || *at || seconds > SECONDS_MAX)
		return false;
	*ret = (struct ss_time_argument){ .is_set = true,
					  .is_relative = true,
					  .nanoseconds = seconds * SECOND_NS + fraction };
	return true;
}

bool ss_time_argument_parse(const char *text, struct ss_time_argument *ret)
{
	static const char *const formats[] = {
		"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%H:%M:%S",
		"%Y-%m-%d %H:%M",    "%Y-%m-%dT%H:%M",	  "%H:%M",
	};

	if (parse_seconds(text, ret))
		return true;
	for (size_t i = 0; i < SS_ARRAY_SIZE(formats); i++) {
		struct tm clock = { .tm_isdst = -1 };
		uint64_t fraction = 0;
		const char *end = strptime(text, formats[i], &clock);
		if (end)
			end = parse_fraction(end, &fraction);
		if (!end || *end)
			continue;
		*ret = (struct ss_time_argument){ .is_set = true,
						  .has_date = formats[i][1] == 'Y',
						  .clock = clock,
						  .nanoseconds = fraction };
		return true;
	}
	return false;
}

uint64_t ss_time_argument_resolve(const struct ss_time_argument *argument,
				  uint64_t begin_ns)
{
	time_t begin = (time_t)(begin_ns / SECOND_NS);
	struct tm clock = argument->clock;
	struct tm date = {};

	if (!argument->is_set)
		return 0;
	if (argument->is_relative)
		return begin_ns + argument->nanoseconds;
	if (!argument->has_date && localtime_r(&begin, &date)) {
		clock.tm_year = date.tm_year;
		clock.tm_mon = date.tm_mon;
		clock.tm_mday = date.tm_mday;
	}
	clock.tm_isdst = -1;
	time_t time = mktime(&clock);
	if (!argument->has_date && time < begin) { /* past midnight */
		clock = argument->clock;
		clock.tm_year = date.tm_year;
		clock.tm_mon = date.tm_mon;
		clock.tm_mday = date.tm_mday + 1;
		clock.tm_isdst = -1;
		time = mktime(&clock);
	}
	return time > 0 ? (uint64_t)time * SECOND_NS + argument->nanoseconds : 1;
}
