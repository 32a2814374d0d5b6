#include "report/quantity.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct ss_quantity ss_quantity_count(uint64_t count)
{
	struct ss_quantity ret = {};

	if (count >= 1000)
		(void)snprintf(ret.text, sizeof(ret.text), "%.32s,%03" PRIu64,
			       ss_quantity_count(count / 1000).text, count % 1000);
	else
		(void)snprintf(ret.text, sizeof(ret.text), "%" PRIu64, count);
	return ret;
}

struct ss_quantity ss_quantity_things(uint64_t count, const char *thing)
{
	struct ss_quantity ret = {};
	size_t size = strlen(thing);
	bool hisses = size > 1 &&
		      (thing[size - 1] == 's' || strcmp(thing + size - 2, "ch") == 0);
	const char *plural = hisses ? "es" : "s";

	(void)snprintf(ret.text, sizeof(ret.text), "%.32s %.28s%s",
		       ss_quantity_count(count).text, thing, count == 1 ? "" : plural);
	return ret;
}

struct ss_quantity ss_quantity_time(uint64_t time_ns)
{
	struct ss_quantity ret = {};
	double ms = (double)time_ns / 1e6;

	if (ms >= 1000)
		(void)snprintf(ret.text, sizeof(ret.text), "%.2f s", ms / 1000);
	else
		(void)snprintf(ret.text, sizeof(ret.text), "%.*f ms", ms < 0.1 ? 3 : 2,
			       ms);
	return ret;
}

struct ss_quantity ss_quantity_date(uint64_t time_ns)
{
	enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };
	struct ss_quantity ret = {};
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm = {};
	char text[32] = "";

	if (localtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%F %T", &tm) > 0)
		(void)snprintf(ret.text, sizeof(ret.text), "%s.%03u", text,
			       (unsigned)(time_ns % NS_PER_S / NS_PER_MS));
	return ret;
}

struct ss_quantity ss_quantity_size(uint64_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB" };
	struct ss_quantity ret = {};
	double value = (double)size;
	size_t unit = 0;

	while (value >= 1024 && unit < 3) {
		value /= 1024;
		unit++;
	}
	double rest = value - (double)(uint64_t)value;
	(void)snprintf(ret.text, sizeof(ret.text), "%.*f %s", rest > 0.05 ? 1 : 0, value,
		       units[unit]);
	return ret;
}
