#include "cli/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"

bool ss_number_is_digits(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

enum ss_number_result ss_number_parse(const char *text, uint64_t min, uint64_t max,
				      uint64_t *ret)
{
	if (*text == '-' && ss_number_is_digits(text + 1))
		return SS_NUMBER_NEGATIVE;
	if (!ss_number_is_digits(text))
		return SS_NUMBER_NONE;
	errno = 0;
	unsigned long long value = strtoull(text, NULL, 10);
	if (errno == ERANGE || value < min || value > max)
		return SS_NUMBER_RANGE;
	*ret = value;
	return SS_NUMBER_OK;
}

/* Durations ---------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "", 1000000000 },   { "ms", 1000000 },      { "s", 1000000000 },
	{ "m", 60000000000 }, { "h", 3600000000000 },
};

static const uint64_t year_ns = UINT64_C(366) * 24 * 3600000000000;

/* Durations of the command line: 30, 90s, 5m, 2h, 500ms. A duration is more than zero and at most a year. Returns false if text is not one. */
static bool parse_duration(const char *text, uint64_t *ret_ns)
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

/* Times -------------------------------------------------------------------------- */

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

/* For parsers of options ----------------------------------------------------------- */

bool ss_regex_compile(const char *text, regex_t *ret, char why[SS_REGEX_WHY_MAX])
{
	int code = regcomp(ret, text, REG_EXTENDED | REG_NOSUB);

	if (code)
		(void)regerror(code, ret, why, SS_REGEX_WHY_MAX); /* may be truncated */
	return code == 0;
}

void ss_argument_add(const char **slot, const char *text)
{
	if (slot)
		*slot = text;
	else
		ss_usage_fail("out of memory");
}

struct ss_error *ss_argument_open_error(int errnum, const char *path, const char *what)
{
	struct ss_error *error = ss_error_new_errno(errnum, "cannot open '%s'", path);

	return errnum == ENOENT && ss_number_is_digits(path) ?
		       ss_error_with_remedy(error, "if it is a pid: stacksnap %s%s", what,
					    path) :
		       error;
}

uint64_t ss_argument_number(const char *name, const char *text, uint64_t min,
			    uint64_t max)
{
	uint64_t value = min;

	if (ss_number_parse(text, min, max, &value) != SS_NUMBER_OK)
		ss_usage_fail("--%s: '%s' is not a number from %ju to %ju", name, text,
			      (uintmax_t)min, (uintmax_t)max);
	return value;
}

uint64_t ss_argument_duration(const char *name, const char *text)
{
	uint64_t ns = 0;

	if (!parse_duration(text, &ns))
		ss_usage_fail("--%s: '%s' is not a time such as 30, 500ms, 90s, 5m or 2h",
			      name, text);
	return ns;
}

static const char *const color_names[] = {
	[SS_COLOR_AUTO] = "auto",
	[SS_COLOR_ALWAYS] = "always",
	[SS_COLOR_NEVER] = "never",
};

const char *ss_options_color_name(size_t index)
{
	return index < SS_ARRAY_SIZE(color_names) ? color_names[index] : NULL;
}

enum ss_color ss_options_parse_color(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(color_names); i++) {
		if (strcmp(color_names[i], name) == 0)
			return (enum ss_color)i;
	}
	ss_usage_fail("--color: '%s' is not auto, always or never", name);
}
