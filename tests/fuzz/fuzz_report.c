/* A recording, in every format of a report. JSON formats must be valid. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_file.h"
#include "report/profile_load.h"
#include "report/format.h"
#include "stacksnap/record.h"

/* More would take long and test nothing new. */
enum { SAMPLES_MAX = 2000 };

static bool is_small(const struct ss_recording *recording)
{
	const struct ss_recording_info *info = ss_recording_info(recording);
	size_t frames = 0;

	for (size_t i = 0; i < ss_recording_stack_count(recording); i++)
		frames += ss_recording_stack(recording, i)->count;
	return info->samples <= SAMPLES_MAX && info->ticks <= SAMPLES_MAX &&
	       frames <= 100 * SAMPLES_MAX;
}

static bool selects_all(void *data, const char *path)
{
	(void)data;
	(void)fuzz_touch(path, strlen(path));
	return true;
}

static void require_json(const char *text, size_t size)
{
	json_error_t error;
	/* its integers have 63 bits */
	json_t *json = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, &error);

	if (!json)
		(void)fprintf(stderr, "%s at %d\n", error.text, error.position);
	FUZZ_REQUIRE(json != NULL);
	json_decref(json);
}

static void write_one(const struct ss_profile *profile, const struct ss_format *format,
		      bool verbose)
{
	const struct ss_format_options options = {
		.size = sizeof(options), .threshold = 1, .rows = 20, .verbose = verbose
	};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	ss_error_free(format->write_profile(profile, &options, out));
	FUZZ_REQUIRE(fclose(out) == 0);
	if (format == &ss_format_json || format == &ss_format_speedscope)
		require_json(text, size);
	if (format == &ss_format_text)
		FUZZ_REQUIRE(!memchr(text, '\033', size));
	free(text);
}

static void report(struct ss_recording *recording, bool raw)
{
	struct ss_profile *profile = ss_profile_new();
	const struct ss_load_options options = { .size = sizeof(options),
						 .selects_module = raw ? selects_all :
									 NULL,
						 .raw = raw };

	if (!profile)
		return;
	profile->start_ns = ss_recording_info(recording)->begin_ns;
	ss_error_free(ss_load_recording(profile, recording, "file", &options));
	for (size_t i = 0; ss_format_at(SS_FORMAT_PROFILE, i) && profile->samples; i++)
		write_one(profile, ss_format_at(SS_FORMAT_PROFILE, i), raw);
	ss_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_recording *recording = fuzz_file_open(data, size);

	if (recording && is_small(recording)) {
		report(recording, true);
		report(recording, false);
	}
	ss_recording_close(recording);
	return 0;
}
