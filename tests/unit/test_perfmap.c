#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/perfmap.h"

static struct ss_perfmap *make(const char *text)
{
	struct ss_perfmap *map = ss_perfmap_new(text, strlen(text), UINT64_MAX);

	assert_non_null(map);
	return map;
}

static void assert_name(const struct ss_perfmap *map, uint64_t address, const char *name,
			uint64_t start)
{
	struct ss_symbol symbol = {};

	assert_true(ss_perfmap_find(map, address, &symbol));
	assert_string_equal(symbol.name, name);
	assert_int_equal(symbol.start, start);
}

static void assert_nothing(const struct ss_perfmap *map, uint64_t address)
{
	struct ss_symbol symbol;

	assert_false(ss_perfmap_find(map, address, &symbol));
}

TEST(test_lines)
{
	struct ss_perfmap *map =
		make("7fbaf6fc5b80 11c JS:^hot /tmp/n.js:2:13\n"
		     "0x00007f9890940b80 0x0000000000017de0 Interpreter\n"
		     "1000 10 int java.lang.Object.hashCode()\n");

	assert_name(map, 0x7fbaf6fc5b80, "JS:^hot /tmp/n.js:2:13", 0x7fbaf6fc5b80);
	assert_name(map, 0x7fbaf6fc5b80 + 0x11b, "JS:^hot /tmp/n.js:2:13",
		    0x7fbaf6fc5b80);
	assert_nothing(map, 0x7fbaf6fc5b80 + 0x11c);
	assert_name(map, 0x7f9890940b80, "Interpreter", 0x7f9890940b80);
	assert_name(map, 0x100f, "int java.lang.Object.hashCode()", 0x1000);
	assert_nothing(map, 0xfff);
	assert_nothing(map, 0x1010);
	ss_perfmap_free(map);
	ss_perfmap_free(NULL);
}

/* Lines that were added while the process was looked at: what was there at which moment
   cannot be told where names differ. */
TEST(test_changes)
{
	static const char before[] = "1000 100 old\n"
				     "1000 80 newer\n"
				     "3000 100 same\n"
				     "5000 100 gone\n";
	static const char after[] = "2000 100 fresh\n"
				    "3000 100 same\n"
				    "4000 100 one\n"
				    "4080 100 other\n"
				    "4100 200 one\n"
				    "5040 10 instead\n";
	char text[sizeof(before) + sizeof(after)];

	(void)snprintf(text, sizeof(text), "%s%s", before, after);
	struct ss_perfmap *map = ss_perfmap_new(text, strlen(text), sizeof(before) - 1);
	assert_name(map, 0x1010, "newer", 0x1000);
	assert_name(map, 0x1090, "old", 0x1000);
	assert_name(map, 0x2010, "fresh", 0x2000);
	assert_name(map, 0x3010, "same", 0x3000);
	assert_nothing(map, 0x4090);
	assert_nothing(map, 0x4110);
	assert_name(map, 0x4010, "one", 0x4000);
	assert_name(map, 0x4190, "one", 0x4100);
	assert_name(map, 0x5010, "gone", 0x5000);
	assert_nothing(map, 0x5048);
	ss_perfmap_free(map);
}

/* Memory that was used again belongs to the last line, wherever it begins. */
TEST(test_overlaps)
{
	struct ss_perfmap *map = make("200 40 inner\n"
				      "100 300 outer again\n"
				      "380 100 next\n"
				      "110 8 small\n"
				      "500 10 one\n"
				      "500 10 two\n");

	assert_name(map, 0x100, "outer again", 0x100);
	assert_name(map, 0x110, "small", 0x110);
	assert_name(map, 0x118, "outer again", 0x100);
	assert_name(map, 0x210, "outer again", 0x100);
	assert_name(map, 0x37f, "outer again", 0x100);
	assert_name(map, 0x380, "next", 0x380);
	assert_name(map, 0x47f, "next", 0x380);
	assert_nothing(map, 0x480);
	assert_name(map, 0x505, "two", 0x500);
	ss_perfmap_free(map);
}

TEST(test_invalid_lines)
{
	struct ss_perfmap *map = make("\n"
				      "x 10 letters\n"
				      "1000\n"
				      "1000 10\n"
				      "1000 10 \n"
				      "1000  10 two spaces\n"
				      "0x 10 no digits\n"
				      "1000 0 nothing\n"
				      "10000000000000000 1 seventeen digits\n"
				      "fffffffffffffff0 20 beyond the end\n"
				      "2000 10 still being wri");

	assert_nothing(map, 0);
	assert_nothing(map, 0x1000);
	assert_nothing(map, 0x2000);
	assert_nothing(map, UINT64_MAX);
	ss_perfmap_free(map);
	map = ss_perfmap_new(NULL, 0, UINT64_MAX);
	assert_nothing(map, 0);
	ss_perfmap_free(map);
}

/* Of a file that is too large the end is read, from the first whole line of it on. */
TEST(test_large_file)
{
	static const char line[] = "1000 10 name\n";
	FILE *file = tmpfile();
	struct ss_module_impl *module = ss_module_new("/tmp/perf-1.map", 0, 0);
	size_t comparisons = SS_PERFMAP_COMPARISONS;

	assert_true(file && module);
	assert_true(fputs("9000 10 too early\n", file) >= 0);
	for (size_t written = 0; written < SS_PERFMAP_MAX; written += sizeof(line) - 1)
		assert_true(fputs(line, file) >= 0);
	assert_true(fputs("2000 10 last\n", file) >= 0 && fflush(file) == 0);
	module->fd = dup(fileno(file));
	struct ss_perfmap *map = ss_perfmap_read(module, UINT64_MAX, &comparisons);
	assert_non_null(map);
	assert_nothing(map, 0x9000);
	assert_nothing(map, 0x100); /* the end of a line that was cut: "00 10 name" */
	assert_name(map, 0x1000, "name", 0x1000);
	ss_perfmap_free(map);
	ss_module_unref(module);
	(void)fclose(file);
}

TEST(test_no_file)
{
	struct ss_module_impl *module = ss_module_new("/tmp/perf-1.map", 0, 0);
	size_t comparisons = SS_PERFMAP_COMPARISONS;

	assert_null(ss_perfmap_read(module, UINT64_MAX, &comparisons));
	ss_module_unref(module);
}

/* What many maps, or long names, may cost altogether is bounded: then changes have no
   names, and what was there before has. */
TEST(test_comparisons)
{
	static const char text[] = "1000 10 before\n"
				   "2000 100 name\n"
				   "2010 10 name\n";
	struct ss_module_impl *module = ss_module_new("/tmp/perf-1.map", 0, 0);
	size_t comparisons = 4; /* three at the first of the pieces, one at the other */

	assert_non_null(module);
	module->bytes = (uint8_t *)strdup(text);
	module->size = strlen(text);
	struct ss_perfmap *map = ss_perfmap_read(module, 15, &comparisons);
	assert_non_null(map);
	assert_name(map, 0x2018, "name", 0x2010);
	assert_int_equal(comparisons, 0);
	ss_perfmap_free(map);
	map = ss_perfmap_read(module, 15, &comparisons);
	assert_non_null(map);
	assert_name(map, 0x1000, "before", 0x1000);
	assert_nothing(map, 0x2018);
	ss_perfmap_free(map);
	ss_module_unref(module);
}
