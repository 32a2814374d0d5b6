#include "unit.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "report/print.h"

static char *escaped(const char *text, const struct ss_substitution *substitution)
{
	char *result = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&result, &size);

	assert_non_null(out);
	ss_escape_write(text, substitution, out);
	assert_int_equal(fclose(out), 0);
	return result;
}

static void expect(const char *text, const char *expected)
{
	_cleanup_free_ char *result = escaped(text, NULL);

	assert_string_equal(result, expected);
}

TEST(test_plain_text_is_unchanged)
{
	expect("", "");
	expect("std::vector<int, A>::at(int)~", "std::vector<int, A>::at(int)~");
	expect("Gr\xc3\xb6\xc3\x9f"
	       "e \xe6\xbc\xa2 \xf0\x9f\x98\x80",
	       "Gr\xc3\xb6\xc3\x9f"
	       "e \xe6\xbc\xa2 \xf0\x9f\x98\x80");
}

TEST(test_terminal_escapes_are_shown)
{
	expect("\033[31m\a\n\t\x7f", "\\x1b[31m\\x07\\x0a\\x09\\x7f");
	expect("\xc2\x9b"
	       "31m",
	       "\\xc2\\x9b31m"); /* CSI as one C1 character */
	expect("\\", "\\\\");
}

TEST(test_text_that_reorders_is_shown)
{
	expect("a\xe2\x80\xae"
	       "b",
	       "a\\xe2\\x80\\xae"
	       "b"); /* right-to-left override */
	expect("\xef\xbb\xbfx", "\\xef\\xbb\\xbfx");
}

TEST(test_invalid_utf8_is_shown)
{
	expect("\xff\x80", "\\xff\\x80");
	expect("\xc3", "\\xc3");			    /* cut */
	expect("\xe6\xbc", "\\xe6\\xbc");		    /* cut */
	expect("\xc0\xaf", "\\xc0\\xaf");		    /* overlong */
	expect("\xed\xa0\x80", "\\xed\\xa0\\x80");	    /* surrogate */
	expect("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
}

TEST(test_substitution_comes_first)
{
	const struct ss_substitution substitution = { ";\n", ":_" };
	_cleanup_free_ char *result = escaped("a;b\nc\t", &substitution);

	assert_string_equal(result, "a:b_c\\x09");
}

TEST(test_invalid_bytes_for_json)
{
	_cleanup_free_ char *result = ss_escape_invalid("a\xff\n\\\xc3\xb6");

	assert_string_equal(result, "a\\xff\n\\\xc3\xb6");
	assert_true(ss_escape_is_valid(result));
	assert_false(ss_escape_is_valid("a\xff"));
	assert_true(ss_escape_is_valid(""));
}

TEST(test_truncation_keeps_characters)
{
	assert_int_equal(ss_escape_cut("abc", 3), 3);
	assert_int_equal(ss_escape_cut("abcd", 3), 3);
	assert_int_equal(ss_escape_cut("ab\xe6\xbc\xa2", 4), 2);
	assert_int_equal(ss_escape_cut("ab\xe6\xbc\xa2", 5), 5);
}
