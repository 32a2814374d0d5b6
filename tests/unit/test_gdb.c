#include "view_sample.h"

#include <regex.h>
#include <stdlib.h>

#include "base/cleanup.h"

static struct ss_snapshot *snapshot_with_all_kinds(void)
{
	struct ss_snapshot *snapshot = sample_new();
	struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "pause"),
		sample_frame(snapshot, SAMPLE_LIBC, 0x20, "__restore_rt"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "inner"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "ns::outer(int, char*)"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x40, NULL),
	};

	stack[1].signal_frame = true;
	stack[2].inlined = true;
	stack[2].file = stack[3].file = "shop.c";
	stack[2].line = 7;
	stack[3].line = 9;
	sample_add_thread(snapshot, 100, "shop", stack, 5, SS_END_ROOT);
	sample_add_thread(snapshot, 101, "w\033", stack, 1, SS_END_LIMIT)
		->thread_pointer = 0x7f12;
	return snapshot;
}

TEST(test_layout)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot =
		snapshot_with_all_kinds();
	_cleanup_free_ char *text = sample_render(&ss_format_gdb, snapshot, NULL);

	assert_string_equal(text,
			    "\n"
			    "Thread 2 (Thread 0x7f12 (LWP 101) \"w\\x1b\"):\n"
			    "#0  0x00007f0000000010 in pause () from /usr/lib/libc.so.6\n"
			    "Backtrace stopped: limit\n"
			    "\n"
			    "Thread 1 (Thread 0x0 (LWP 100) \"shop\"):\n"
			    "#0  0x00007f0000000010 in pause () from /usr/lib/libc.so.6\n"
			    "#1  <signal handler called>\n"
			    "#2  0x0000000000400030 in inner () at shop.c:7\n"
			    "#3  ns::outer(int, char*) () at shop.c:9\n"
			    "#4  0x0000000000400040 in shop+0x40 ()\n");
}

/* What scripts take for a frame: at least four words, the first of which is an
   address that "in" follows, or else a function. */
static void expect_frame(const regex_t *four_words, const char *line)
{
	char address[64] = "";
	char in[8] = "";

	if (strstr(line, "<signal handler called>"))
		return; /* gdb's own line has three words too */
	assert_int_equal(regexec(four_words, line, 0, NULL, 0), 0);
	assert_int_equal(sscanf(line, "#%*u %63s %7s", address, in), 2);
	if (strncmp(address, "0x", 2) == 0)
		assert_string_equal(in, "in");
}

TEST(test_scripts_can_read_it)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot =
		snapshot_with_all_kinds();
	_cleanup_free_ char *text = sample_render(&ss_format_gdb, snapshot, NULL);
	regex_t four_words;
	size_t threads = 0;
	char *rest = text;

	assert_int_equal(regcomp(&four_words, "^#[0-9]+ +[^ ]* [^ ]* [^ ]*( |$)",
				 REG_EXTENDED | REG_NOSUB),
			 0);
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		threads += strncmp(line, "Thread ", 7) == 0;
		if (line[0] == '#')
			expect_frame(&four_words, line);
	}
	assert_int_equal(threads, 2);
	regfree(&four_words);
}

TEST(test_unsourced_inline_keeps_its_address)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "inner"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "outer"),
	};

	stack[0].inlined = true;
	sample_add_thread(snapshot, 100, "shop", stack, 2, SS_END_ROOT);
	_cleanup_free_ char *text = sample_render(&ss_format_gdb, snapshot, NULL);
	assert_non_null(strstr(text, "#1  0x0000000000400030 in outer ()\n"));
}
