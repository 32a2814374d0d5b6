#include "view_sample.h"

#include <stdlib.h>

#include "base/cleanup.h"

TEST(test_layout)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame stack[12];

	for (size_t i = 0; i < SS_ARRAY_SIZE(stack); i++)
		stack[i] =
			sample_frame(snapshot, SAMPLE_LIBC, i * 16, i == 2 ? NULL : "f");
	stack[1].inlined = true; /* left out: the numbers go on without it */
	sample_add_thread(snapshot, 100, "shop", stack, 12, SS_END_ROOT);
	sample_add_thread(snapshot, 101, "shop", NULL, 0, SS_END_RUNNING);
	_cleanup_free_ char *text = sample_render(&ss_format_eu, snapshot, NULL);
	assert_string_equal(text, "PID 100 - process\n"
				  "TID 100:\n"
				  "#0  0x00007f0000000000 f\n"
				  "#1  0x00007f0000000020 libc.so.6+0x20\n"
				  "#2  0x00007f0000000030 f\n"
				  "#3  0x00007f0000000040 f\n"
				  "#4  0x00007f0000000050 f\n"
				  "#5  0x00007f0000000060 f\n"
				  "#6  0x00007f0000000070 f\n"
				  "#7  0x00007f0000000080 f\n"
				  "#8  0x00007f0000000090 f\n"
				  "#9  0x00007f00000000a0 f\n"
				  "#10 0x00007f00000000b0 f\n"
				  "TID 101:\n");
}
