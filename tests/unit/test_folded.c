#include "view_sample.h"

#include <stdlib.h>

#include "base/cleanup.h"

TEST(test_equal_lines_are_counted)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, "main(int, char**)"),
	};
	/* another place in the same functions: the same line */
	const struct ss_frame other[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x11, "poll"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, "main(int, char**)"),
	};

	sample_add_thread(snapshot, 100, "w", stack, 2, SS_END_ROOT);
	sample_add_thread(snapshot, 101, "w", stack, 2, SS_END_ROOT);
	sample_add_thread(snapshot, 102, "w", other, 2, SS_END_ROOT);
	sample_add_thread(snapshot, 103, "v", stack, 2, SS_END_ROOT);
	_cleanup_free_ char *text = sample_render(&ss_format_folded, snapshot, NULL);
	assert_string_equal(text, "shop;v;main(int, char**);poll 1\n"
				  "shop;w;main(int, char**);poll 3\n");
}

TEST(test_separators_in_names)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = { sample_frame(snapshot, SAMPLE_LIBC, 0x10,
						       "f;g\nh") };

	snapshot->process.name = "my shop;\n";
	sample_add_thread(snapshot, 100, "a;b c\033", stack, 1, SS_END_LOOP);
	_cleanup_free_ char *text = sample_render(&ss_format_folded, snapshot, NULL);
	assert_string_equal(text, "my_shop:_;a:b_c\\x1b;[loop];f:g\\x0ah 1\n");
}

TEST(test_threads_without_a_stack)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	sample_add_thread(snapshot, 100, "w", NULL, 0, SS_END_RUNNING);
	_cleanup_free_ char *text = sample_render(&ss_format_folded, snapshot, NULL);
	assert_string_equal(text, "shop;w;[running] 1\n");
}
