#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/format.h"
#include "view_sample.h"

static const enum ss_format_input inputs[] = { SS_FORMAT_SNAPSHOT, SS_FORMAT_HANG,
					       SS_FORMAT_PROFILE };

static bool has_writer(const struct ss_format *format, enum ss_format_input input)
{
	return input == SS_FORMAT_SNAPSHOT ? format->write_snapshot != NULL :
	       input == SS_FORMAT_HANG	   ? format->write_hang != NULL :
					     format->write_profile != NULL;
}

TEST(test_every_format_is_found_by_its_name)
{
	const struct ss_format *format = NULL;

	for (size_t k = 0; k < SS_ARRAY_SIZE(inputs); k++) {
		assert_ptr_equal(ss_format_at(inputs[k], 0), &ss_format_text);
		for (size_t i = 0; (format = ss_format_at(inputs[k], i)); i++) {
			assert_true(has_writer(format, inputs[k]));
			assert_ptr_equal(ss_format_find(inputs[k], format->name), format);
			assert_true(format->description && *format->description);
			/* "a, b" in messages and "a b" in completions need plain words. */
			assert_int_equal(
				strspn(format->name, "abcdefghijklmnopqrstuvwxyz"),
				strlen(format->name));
		}
	}
}

TEST(test_formats_of_each_input)
{
	assert_null(ss_format_find(SS_FORMAT_HANG, "gdb"));
	assert_null(ss_format_find(SS_FORMAT_PROFILE, "gdb"));
	assert_null(ss_format_find(SS_FORMAT_SNAPSHOT, "html"));
	assert_null(ss_format_find(SS_FORMAT_SNAPSHOT, "Text"));
	assert_null(ss_format_find(SS_FORMAT_SNAPSHOT, ""));
}

TEST(test_names_and_help_come_from_the_table)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	ss_format_write_names(SS_FORMAT_HANG, ", ", out);
	(void)fputc('\n', out);
	ss_format_write_help(SS_FORMAT_HANG, out);
	assert_int_equal(fclose(out), 0);
	assert_memory_equal(text, "text, json, brief, rows\nFormats:\n  text       ",
			    strlen("text, json, brief, rows\nFormats:\n  text       "));
	assert_non_null(strstr(text, "\n  json       "));
}

TEST(test_all_formats_name_a_frame_alike)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll"),
	};
	const struct ss_format *format = NULL;

	sample_add_thread(snapshot, 100, "shop", stack, 1, SS_END_ROOT);
	for (size_t i = 0; (format = ss_format_at(SS_FORMAT_SNAPSHOT, i)); i++) {
		if (format->binary || format == &ss_format_dot ||
		    format == &ss_format_apport)
			continue;
		_cleanup_free_ char *text = sample_render(format, snapshot, NULL);
		assert_non_null(strstr(text, "poll"));
	}
}
