#include "report/quantity.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

void ss_quantity_write_count(uint64_t count, FILE *out)
{
	if (count >= 1000) {
		ss_quantity_write_count(count / 1000, out);
		(void)fprintf(out, ",%03" PRIu64, count % 1000);
	} else {
		(void)fprintf(out, "%" PRIu64, count);
	}
}

void ss_quantity_write_things(uint64_t count, const char *thing, FILE *out)
{
	ss_quantity_write_count(count, out);
	size_t size = strlen(thing);
	bool hisses = size > 1 &&
		      (thing[size - 1] == 's' || strcmp(thing + size - 2, "ch") == 0);
	const char *plural = hisses ? "es" : "s";
	(void)fprintf(out, " %s%s", thing, count == 1 ? "" : plural);
}

void ss_quantity_write_time(uint64_t time_ns, FILE *out)
{
	double ms = (double)time_ns / 1e6;

	if (ms >= 1000)
		(void)fprintf(out, "%.2f s", ms / 1000);
	else
		(void)fprintf(out, "%.*f ms", ms < 0.1 ? 3 : 2, ms);
}

void ss_quantity_write_date(uint64_t time_ns, FILE *out)
{
	enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm = {};
	char text[64] = "";

	if (localtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%F %T", &tm) > 0)
		(void)fprintf(out, "%s.%03u", text,
			      (unsigned)(time_ns % NS_PER_S / NS_PER_MS));
}

void ss_quantity_write_size(uint64_t size, FILE *out)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB" };
	double value = (double)size;
	size_t unit = 0;

	while (value >= 1024 && unit < 3) {
		value /= 1024;
		unit++;
	}
	double rest = value - (double)(uint64_t)value;
	(void)fprintf(out, "%.*f %s", rest > 0.05 ? 1 : 0, value, units[unit]);
}

enum { COLUMN_MAX = 32 };

/* Writes what write writes of a number right-aligned. */
static void write_column(void (*write)(uint64_t, FILE *), uint64_t number, int width,
			 FILE *out)
{
	char text[COLUMN_MAX] = "";
	FILE *column = fmemopen(text, sizeof(text), "w");

	if (!column)
		return;
	write(number, column);
	(void)fclose(column); /* it writes to text, and fits */
	(void)fprintf(out, "%*s", width, text);
}

void ss_quantity_write_size_column(uint64_t size, int width, FILE *out)
{
	write_column(ss_quantity_write_size, size, width, out);
}

void ss_quantity_write_count_column(uint64_t count, int width, FILE *out)
{
	write_column(ss_quantity_write_count, count, width, out);
}
