/*
 * The tasks of a kind of several snapshots, as text or as JSON.
 */
#ifndef SS_TESTS_MERGED_SAMPLE_H
#define SS_TESTS_MERGED_SAMPLE_H

#include "view_sample.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "report/group.h"
#include "report/json.h"
#include "report/text.h"

static inline char *sample_render_merged(const struct ss_snapshots *snapshots,
					 enum ss_task_kind kind, bool changes,
					 size_t groups, bool as_json)
{
	struct ss_format_options options = { .size = sizeof(options) };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct ss_json json = { .out = out };
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(snapshots, kind, true);

	options.groups[kind] = groups;
	assert_non_null(out);
	assert_non_null(merged);
	if (as_json)
		assert_true(ss_json_merged(&json, snapshots, kind, changes, &options));
	else
		assert_null(ss_text_write_groups(snapshots, merged, NULL, changes,
						 &options, out));
	assert_int_equal(fclose(out), 0);
	return text;
}

/* wanted: "", nothing is written. */
static inline void sample_expect_merged(const struct ss_snapshots *snapshots,
					enum ss_task_kind kind, bool changes,
					size_t groups, bool as_json, const char *wanted)
{
	_cleanup_free_ char *text =
		sample_render_merged(snapshots, kind, changes, groups, as_json);

	if (*wanted ? !strstr(text, wanted) : *text != '\0')
		fail_msg("'%s' is not in: %s", wanted, text);
}

#endif
