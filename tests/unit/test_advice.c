#include "view_sample.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "report/advice.h"

static void assert_advice(const struct ss_snapshot *snapshot,
			  const struct ss_advice_options *options, const char *expected)
{
	_cleanup_free_ char *text = ss_advice_new(snapshot, options);

	if (!expected) {
		assert_null(text);
		return;
	}
	assert_non_null(text);
	assert_string_equal(text, expected);
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
