#include "view/quantity.h"

#include <inttypes.h>

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
	(void)fprintf(out, " %s%s", thing, count == 1 ? "" : "s");
}

void ss_quantity_write_time(uint64_t time_ns, FILE *out)
{
	double ms = (double)time_ns / 1e6;

	if (ms >= 1000)
		(void)fprintf(out, "%.2f s", ms / 1000);
	else
		(void)fprintf(out, "%.*f ms", ms < 0.1 ? 3 : 2, ms);
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
