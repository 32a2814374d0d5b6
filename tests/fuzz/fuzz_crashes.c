/* Crash reports, grouped, as text and JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "crash/cli/core.h"
#include "fuzz.h"

static void require_json(const char *text, size_t size)
{
	/* its integers have 63 bits */
	json_t *json = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, NULL);

	FUZZ_REQUIRE(json != NULL);
	json_decref(json);
}

static void write_groups(struct ss_crash_reports *reports, bool json)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	ss_error_free(json ? ss_crash_groups_write_json(reports, out) :
			     ss_crash_groups_write_text(reports, 2, out));
	FUZZ_REQUIRE(fclose(out) == 0);
	if (json)
		require_json(text, size);
	else
		FUZZ_REQUIRE(!memchr(text, '\033', size));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_crash_reader reader;

	if (!ss_crash_reader_init(&reader))
		return 0;
	if (ss_crash_reader_add(&reader, (const char *)data, size, 1)) {
		write_groups(&reader.reports, false);
		write_groups(&reader.reports, true);
	}
	ss_crash_reader_deinit(&reader);
	return 0;
}
