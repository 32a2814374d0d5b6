#include "view_sample.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text_stream.h"
#include "report/advice.h"

/* The line of a text, which is freed. */
static void assert_line(char *items, const char *expected)
{
	_cleanup_free_ char *owned = items;
	struct ss_text_stream line;

	assert_non_null(owned);
	assert_true(ss_text_stream_open(&line));
	ss_advice_write(owned, line.out);
	_cleanup_free_ char *text = ss_text_stream_close(&line);
	assert_string_equal(text, expected);
}

static void assert_advice(const struct ss_snapshot *snapshot,
			  const struct ss_advice_options *options, const char *expected)
{
	char *items = ss_advice_new(snapshot, options);

	if (expected)
		assert_line(items, expected);
	else
		assert_null(items);
}

TEST(test_names)
{
	const struct ss_advice_options plain = { .privileged = true };
	const struct ss_advice_options asked = { .privileged = true, .debuginfod = true };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame named = sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll");
	struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x11, NULL),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, NULL),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, NULL),
		sample_frame(snapshot, SAMPLE_NOWHERE, 0x40, NULL),
	};

	stack[3].area = "[jit]";
	sample_add_thread(snapshot, 100, "shop", &named, 1, SS_END_ROOT);
	assert_advice(snapshot, &plain, NULL);
	sample_add_thread(snapshot, 101, "shop", stack, 1, SS_END_ROOT);
	assert_advice(snapshot, &plain,
		      "missing: names in libc.so.6 (build-id abcd), "
		      "or use --debuginfod");
	sample_add_thread(snapshot, 102, "shop", stack, 4, SS_END_ROOT);
	assert_advice(snapshot, &asked,
		      "missing: names in shop (it has no build-id), libc.so.6 (build-id "
		      "abcd); names of JIT code (needs a perf map, see stacksnap(1))");
}

TEST(test_root)
{
	const struct ss_advice_options user = { 0 };
	const struct ss_advice_options root = { .privileged = true };
	const struct ss_descriptor pipe = { .kind = SS_FD_PIPE,
					    .peers_searched = true,
					    .peers_incomplete = true };
	const struct ss_wait wait = { .kind = SS_WAIT_READ, .descriptor = &pipe };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	sample_add_thread(snapshot, 100, "shop", NULL, 0, SS_END_ROOT)->wait = &wait;
	assert_advice(snapshot, &root, NULL);
	assert_advice(snapshot, &user,
		      "missing: other ends of pipes and sockets (run as root)");
	sample_add_thread(snapshot, 101, "shop", NULL, 0, SS_END_ROOT)->state = 'D';
	assert_advice(snapshot, &user,
		      "missing: kernel functions, other ends of pipes and sockets (run "
		      "as root)");
}

/* A snapshot with a frame in each of the first modules. */
static char *advice_of(const char *const *paths, size_t count, bool root)
{
	const struct ss_advice_options options = { .privileged = root };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	for (size_t i = 0; i < count; i++) {
		sample_add_module(snapshot, paths[i], 0x1000000 * (i + 1),
				  i == 0 ? "\xab\xcd" : NULL);
		const struct ss_frame frame =
			sample_frame(snapshot, SAMPLE_LIBC + 1 + (int)i, 0x11, NULL);
		sample_add_thread(snapshot, 100 + (pid_t)i, "shop", &frame, 1,
				  SS_END_ROOT)
			->state = 'D';
	}
	return ss_advice_new(snapshot, &options);
}

/* What several have in common is written once; a module that one only counts and another one names is
   not counted. */
TEST(test_merged)
{
	static const char *const paths[] = { "/lib/a.so", "/lib/b.so", "/lib/c.so",
					     "/lib/d.so", "/lib/e\n\x1e\x1f.so" };
	_cleanup_free_ char *first = advice_of(paths, 4, true);
	_cleanup_free_ char *second = advice_of(paths + 3, 2, false);
	_cleanup_free_ char *third = advice_of(paths + 4, 1, false);
	char *all = NULL;

	assert_non_null(first);
	assert_non_null(second);
	assert_non_null(third);
	assert_true(asprintf(&all, "%s%s", third, third) > 0);
	assert_line(all, "missing: names in e\\x0a??.so (build-id abcd), or use "
			 "--debuginfod; kernel functions (run as root)");
	assert_true(asprintf(&all, "%s%s", first, first) > 0);
	assert_line(all, "missing: names in a.so (build-id abcd), b.so (it has no "
			 "build-id), c.so (it has no build-id) and 1 more, or use "
			 "--debuginfod");
	assert_true(asprintf(&all, "%s%s", first, second) > 0);
	assert_line(all, "missing: names in a.so (build-id abcd), b.so (it has no "
			 "build-id), c.so (it has no build-id) and 2 more, or use "
			 "--debuginfod; kernel functions (run as root)");
}
