/* What a process that is not trusted wrote, as it is printed. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/io.h"
#include "cli/output.h"

/* The bytes as they are relayed; freed by the caller. */
static char *relay(const char *bytes, size_t size, bool color)
{
	_cleanup_close_ int fd = memfd_create("relay", MFD_CLOEXEC);
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert_true(fd >= 0 && out);
	assert_int_equal(ss_io_write_all(fd, bytes, size), 0);
	assert_null(ss_escaped_copy(fd, color, out));
	assert_int_equal(fclose(out), 0);
	return text;
}

static void check(const char *bytes, bool color, const char *expected)
{
	_cleanup_free_ char *text = relay(bytes, strlen(bytes), color);

	assert_string_equal(text, expected);
}

TEST(passes_text)
{
	check("", false, "");
	check("#0  poll+0x3 (libc.so.6)\n\tdone\n", false,
	      "#0  poll+0x3 (libc.so.6)\n\tdone\n");
	check("a \\x1b that was escaped \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8c", false,
	      "a \\x1b that was escaped \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8c");
}

TEST(escapes_controls)
{
	check("\033[2J", false, "\\x1b[2J");
	check("\r\b\a\x7f", false, "\\x0d\\x08\\x07\\x7f");
	check("\xc2\x9b"
	      "2J",
	      false, "\\xc2\\x9b2J");			 /* CSI, one character */
	check("\xe2\x80\xae", false, "\\xe2\\x80\\xae"); /* reorders what follows */
	check("\xff\xc3", false, "\\xff\\xc3");
}

TEST(passes_colors_only_if_told)
{
	check("\033[1mx\033[0m", true, "\033[1mx\033[0m");
	check("\033[1mx\033[0m", false, "\\x1b[1mx\\x1b[0m");
	check("\033[2J\033]0;title\a\033[1;2;3;4;5;6;7;8;9m\033[", true,
	      "\\x1b[2J\\x1b]0;title\\x07\\x1b[1;2;3;4;5;6;7;8;9m\\x1b[");
}

TEST(escapes_nul)
{
	_cleanup_free_ char *text = relay("a\0b", 3, false);

	assert_string_equal(text, "a\\x00b");
}

/* Characters and sequences that lie across the pieces in which a file is read. */
TEST(joins_pieces)
{
	enum { COUNT = 100000 };
	static const char piece[] = "\xe2\x82\xac\033[33m";
	const size_t size = sizeof(piece) - 1;
	_cleanup_free_ char *bytes = malloc(COUNT * size + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < COUNT; i++)
		memcpy(bytes + i * size, piece, size + 1);
	for (size_t shift = 0; shift < size; shift++) {
		_cleanup_free_ char *text =
			relay(bytes + shift * size, (COUNT - shift) * size, true);
		assert_memory_equal(text, bytes, (COUNT - shift) * size);
	}
}
