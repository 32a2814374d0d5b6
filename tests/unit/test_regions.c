#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <stdio.h>

#include "data/regions.h"
#include "process/files.h"

static struct ss_buffer text_of(const char *maps)
{
	return (struct ss_buffer){ .bytes = ss_drop_const(maps), .size = strlen(maps) };
}

static struct ss_capture *read_areas(const char *maps)
{
	struct ss_capture *capture = ss_capture_new();
	struct ss_buffer text = text_of(maps);

	assert_non_null(capture);
	assert_null(ss_regions_read(capture, &text));
	return capture;
}

static int32_t module_at(const struct ss_capture *capture, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(capture, address);

	return area ? area->module : -2;
}

#define LIBRARY                                                                          \
	"10000-11000 r--p 00000000 fd:01 7 /lib/a.so\n"                                  \
	"11000-13000 r-xp 00001000 fd:01 7 /lib/a.so\n"                                  \
	"13000-14000 r--p 00003000 fd:01 7 /lib/a.so\n"                                  \
	"14000-15000 rw-p 00003000 fd:01 7 /lib/a.so\n"                                  \
	"15000-17000 rw-p 00000000 00:00 0 \n"

TEST(test_library)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *c =
		read_areas(LIBRARY "20000-21000 r--p 00000000 fd:01 8 /data\n"
				   "30000-31000 r-xp 00000000 00:00 0 [vdso]\n"
				   "40000-41000 r-xp 00000000 00:00 0 \n");

	assert_int_equal(c->modules.count, 2);
	assert_int_equal(c->areas.count, 8);
	assert_int_equal(c->modules.items[0]->mapping_count, 4);
	assert_int_equal(c->modules.items[0]->pub.base, 0x10000);
	assert_int_equal(c->modules.items[0]->pub.size, 0x5000);
	assert_int_equal(module_at(c, 0x12fff), 0);
	assert_int_equal(module_at(c, 0x20000), -1); /* data alone is no module */
	assert_int_equal(module_at(c, 0x30000), 1);
	assert_int_equal(module_at(c, 0x40000), -1);
	assert_int_equal(module_at(c, 0x17000), -2);
	assert_int_equal(module_at(c, 0xfff), -2);
	assert_int_equal(module_at(c, UINT64_MAX), -2);
	assert_string_equal(c->modules.items[1]->pub.path, "[vdso]");
	assert_string_equal(ss_capture_find_area(c, 0x40000)->name, "//anon");
}

TEST(test_loaded_twice)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *c =
		read_areas(LIBRARY "20000-21000 r--p 00000000 fd:01 7 /lib/a.so\n"
				   "21000-23000 r-xp 00001000 fd:01 7 /lib/a.so\n");

	assert_int_equal(c->modules.count, 2);
	assert_int_equal(module_at(c, 0x11000), 0);
	assert_int_equal(module_at(c, 0x21000), 1);
}

/* A program that maps its own symbols, far above: that is not its text. */
TEST(test_part_far_away)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *c = read_areas(
		LIBRARY "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n"
			"7f0000001000-7f0000002000 r--p 00004000 fd:01 7 /lib/a.so\n");

	assert_int_equal(c->modules.count, 1);
	assert_int_equal(c->modules.items[0]->pub.size, 0x5000);
	assert_int_equal(module_at(c, 0x7f0000000000), -1);
}

/* Text that was replaced by anonymous pages lies in its module still. */
TEST(test_text_in_huge_pages)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *c =
		read_areas("10000-11000 r-xp 00000000 fd:01 7 /bin/a\n"
			   "11000-15000 r-xp 00000000 00:00 0 \n"
			   "15000-16000 r-xp 00005000 fd:01 7 /bin/a\n"
			   "16000-17000 rw-p 00000000 00:00 0 \n");

	assert_int_equal(c->modules.count, 1);
	assert_int_equal(module_at(c, 0x12000), 0);
	assert_int_equal(module_at(c, 0x16000), -1);
}

/* maps is not read at one moment: lines may overlap, or repeat. */
TEST(test_overlapping_lines)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *c =
		read_areas("1000-3000 r-xp 0 fd:01 1 /a\n"
			   "2000-5000 r-xp 0 fd:01 2 /b\n"
			   "2000-5000 r-xp 0 fd:01 2 /b\n"
			   "4000-5000 r-xp 1000 fd:01 2 /b\n");
	bool wanted[4] = {};

	for (uint64_t address = 0; address < 0x6000; address += 0x800)
		(void)module_at(c, address);
	assert_int_equal(module_at(c, 0x1000), 0);
	ss_references_mark(c, NULL, wanted);
	ss_regions_clear(c);
	assert_int_equal(c->modules.count, 0);
}

TEST(test_nothing)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *c = read_areas("");

	assert_int_equal(c->areas.count, 0);
	assert_null(ss_capture_find_area(c, 0));
}

static bool conflict(const char *before, const char *after)
{
	struct ss_buffer a = text_of(before);
	struct ss_buffer b = text_of(after);

	return ss_regions_conflict(&a, &b);
}

TEST(test_conflicts)
{
	assert_false(conflict(LIBRARY, LIBRARY));
	assert_false(conflict("", LIBRARY));
	assert_true(conflict(LIBRARY, ""));
	/* Others may come, before and behind, and data may go. */
	assert_false(conflict(LIBRARY "20000-21000 rw-p 0 00:00 0 \n",
			      "1000-2000 r-xp 0 fd:01 9 /b\n" LIBRARY
			      "20000-21000 r-xp 0 fd:01 9 /b\n"));
	/* Something else is where the text was. */
	assert_true(conflict(LIBRARY, "11000-13000 r-xp 00001000 fd:01 8 /lib/b.so\n"));
	assert_true(conflict(LIBRARY, "11000-12000 r-xp 00001000 fd:01 7 /lib/a.so\n"));
	assert_true(conflict(LIBRARY, "11000-13000 r-xp 00002000 fd:01 7 /lib/a.so\n"));
	assert_true(conflict(LIBRARY, "11000-13000 r--p 00001000 fd:01 7 /lib/a.so\n"));
}

TEST(test_references)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *c =
		read_areas("1000-2000 r-xp 0 fd:01 1 /a\n"
			   "2000-3000 r-xp 0 fd:01 2 /b\n"
			   "5000-6000 r-xp 0 fd:01 3 /c\n"
			   "7000-8000 r-xp 0 fd:01 4 /d\n"
			   "9000-a000 r-xp 0 fd:01 5 /e\n");
	/* Only whole words at aligned addresses count: the copy begins at 4 mod 8. */
	uint64_t words[] = { 0x5000, 0x5fff, 0, UINT64_MAX, 0x1fff, 0x3000, 0x9000 };
	bool wanted[5] = {};

	struct ss_capture_thread *thread = ss_vector_push(&c->threads);
	thread->stacks[0] = (struct ss_stack_copy){ .address = 0x10004,
						    .size = sizeof(words) - 4 - 1,
						    .bytes = (uint8_t *)words + 4 };
	ss_regs_set(&thread->regs, 3, 0x7fff);
	thread->regs.value[4] = 0x2000; /* not known */
	ss_references_mark(c, NULL, wanted);
	assert_true(wanted[0]);
	assert_false(wanted[1]);
	assert_true(wanted[2]);
	assert_true(wanted[3]);
	assert_false(wanted[4]); /* its word is cut */
}

/* Hostile: as many areas as there may be, in time that grows with them. */
TEST(test_many_areas)
{
	enum { COUNT = 60000, LINE = 80 };
	_cleanup_free_ char *maps = malloc((size_t)COUNT * LINE);
	size_t used = 0;

	for (unsigned i = 0; i < COUNT; i++)
		used += (size_t)snprintf(maps + used, LINE,
					 "%x-%x r-xp %08x fd:01 7 /lib/a.so\n",
					 0x1000 * (i + 1), 0x1000 * (i + 2),
					 i < COUNT / 2 ? i * 0x1000 : 0);
	_cleanup_(ss_capture_cleanup) struct ss_capture *c = read_areas(maps);
	assert_int_equal(c->areas.count, COUNT);
	assert_int_equal(c->modules.count, 2);
	assert_int_equal(module_at(c, 0x1000 * 30000), 0);
	assert_int_equal(module_at(c, 0x1000 * 30001), 1);
}

TEST(test_paths_below_another_root)
{
	struct ss_capture *capture = ss_capture_new();

	assert_non_null(capture);
	assert_string_equal(ss_capture_path(capture, "/jail/bin/sh", 12), "/jail/bin/sh");
	capture->root = "/jail";
	assert_string_equal(ss_capture_path(capture, "/jail/bin/sh", 12), "/bin/sh");
	assert_string_equal(ss_capture_path(capture, "/jailed/sh", 10), "/jailed/sh");
	assert_string_equal(ss_capture_path(capture, "/jail", 5), "/jail");
	assert_string_equal(ss_capture_path(capture, "[heap]", 6), "[heap]");
	ss_capture_free(capture);
}
